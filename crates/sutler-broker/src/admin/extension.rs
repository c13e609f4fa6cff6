//! Pages and commands of an extension in the administration API.

use super::response::AdminError;
use crate::broker::BrokerHandle;
use crate::error::{Error, ErrorKind, Result};
use async_trait::async_trait;
use serde_json::Value;
use std::sync::Arc;

/// Pages and commands under `{prefix}/v1/`; paths of the API itself take precedence. Must reveal no secret.
#[async_trait]
pub trait AdminExtension: Send + Sync + 'static {
    /// Returns the page at a path; `None` if there is none.
    async fn read(&self, path: &[String]) -> Option<Result<Value>>;

    /// Runs the command at a path; `None` if there is none. Its audit entry is written before.
    async fn run_command(&self, path: &[String]) -> Option<Result<Value>>;

    /// Whether there is a command at this path.
    fn has_command(&self, path: &[String]) -> bool;
}

impl BrokerHandle {
    /// Adds an extension to the administration API, if that is served. Only the first call has an effect.
    pub fn extend_admin(&self, pages: Arc<dyn AdminExtension>) {
        if let Some(admin) = &self.0.admin {
            let _ = admin.extension.set(pages);
        }
    }
}

/// Maps an error of an extension to an error of the API.
pub(super) fn to_admin_error(error: Error) -> AdminError {
    match error.kind {
        ErrorKind::Refused(refusal) => refusal.into(),
        ErrorKind::Failed | ErrorKind::Transient | ErrorKind::Lost => {
            AdminError::internal(&format!("{error:?}"))
        }
    }
}
