//! Pages and orders of whoever builds on this framework, below the administration's prefix.

use super::answer::Fault;
use crate::broker::Running;
use crate::error::{Error, Kind, Result};
use async_trait::async_trait;
use serde_json::Value;
use std::sync::Arc;

/// What is shown and ordered under `{prefix}/v1/`, where the API itself has nothing. It must hold no secret.
#[async_trait]
pub trait Pages: Send + Sync + 'static {
    /// Answers a read; `None`: there is nothing at this path.
    async fn read(&self, path: &[String]) -> Option<Result<Value>>;

    /// Carries an order out; `None`: there is none at this path. It is written into the audit before.
    async fn order(&self, path: &[String]) -> Option<Result<Value>>;

    /// Whether there is an order at this path.
    fn has_order(&self, path: &[String]) -> bool;
}

impl Running {
    /// Shows these pages to operators from now on, where there is administration. The first ones stay.
    pub fn show(&self, pages: Arc<dyn Pages>) {
        if let Some(admin) = &self.0.admin {
            let _ = admin.more.set(pages);
        }
    }
}

/// An error of a page, as operators are told it.
pub(super) fn fault(error: Error) -> Fault {
    match error.kind {
        Kind::Refused(refusal) => refusal.into(),
        Kind::Failed | Kind::Transient | Kind::Lost => Fault::internal(&format!("{error:?}")),
    }
}
