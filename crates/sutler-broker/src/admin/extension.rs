//! Pages and orders of whoever builds on this framework, below the administration's prefix.

use super::response::AdminError;
use crate::broker::BrokerHandle;
use crate::error::{Error, ErrorKind, Result};
use async_trait::async_trait;
use serde_json::Value;
use std::sync::Arc;

/// What is shown and ordered under `{prefix}/v1/`, where the API itself has nothing. It must hold no secret.
#[async_trait]
pub trait AdminExtension: Send + Sync + 'static {
    /// Answers a read; `None`: there is nothing at this path.
    async fn read(&self, path: &[String]) -> Option<Result<Value>>;

    /// Carries an order out; `None`: there is none at this path. It is written into the audit before.
    async fn run_command(&self, path: &[String]) -> Option<Result<Value>>;

    /// Whether there is an order at this path.
    fn has_command(&self, path: &[String]) -> bool;
}

impl BrokerHandle {
    /// Shows these pages to operators from now on, where there is administration. The first ones stay.
    pub fn extend_admin(&self, pages: Arc<dyn AdminExtension>) {
        if let Some(admin) = &self.0.admin {
            let _ = admin.extension.set(pages);
        }
    }
}

/// An error of a page, as operators are told it.
pub(super) fn to_admin_error(error: Error) -> AdminError {
    match error.kind {
        ErrorKind::Refused(refusal) => refusal.into(),
        ErrorKind::Failed | ErrorKind::Transient | ErrorKind::Lost => {
            AdminError::internal(&format!("{error:?}"))
        }
    }
}
