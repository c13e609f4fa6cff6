//! Carries out operations: one exchange with a broker per claim, then the operation is given back.
//!
//! Polls hold no worker: an operation that waits is a row with a due time. What an answer means is decided in
//! `lifecycle/`; a run reads, asks the rules, commits, sends what was written down, and commits the answer.
//!
//! Read `instance_run.rs` first; `binding_run.rs`, `orphan_run.rs` have the same shape. `run_error.rs` is what stops a
//! run without an answer, `retry_wait.rs` how long it waits.

mod answer_commits;
mod binding_run;
mod broker_answer;
mod exchange;
mod instance_run;
mod orphan_run;
mod poll_times;
mod request_material;
mod retry_wait;
mod run_error;
mod sent_secrets;
#[cfg(test)]
mod tests;

pub(crate) use instance_run::{
    after_commit as instance_committed, bindings_of, decide as decide_instance, plan_of,
};

use crate::context::PlatformContext;
use crate::periodic::{give_up_task, run_task};
use crate::records::{BINDING, BROKER_STATE, CATALOG_SYNC, INSTANCE, ORPHAN};
use async_trait::async_trait;
use run_error::RunError;
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::{Executor, Lost, Run, RunResult};
use sutler_records::SINGLETON;

/// Wait before an operation is tried again whose records or broker could not be read.
const AFTER_FAULT: Duration = Duration::from_secs(2);
/// Wait of an operation that only replicas of a newer version can carry out.
const NEWER_VERSION: Duration = Duration::from_secs(30);

/// Carries out the operations of the platform.
pub(crate) struct PlatformExecutor {
    context: Arc<PlatformContext>,
}

/// Whether an operation was taken over too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takeovers {
    /// No.
    Few,
    /// Yes: it may end its processes.
    TooMany,
}

impl PlatformExecutor {
    /// An executor over these parts.
    pub(crate) fn new(context: Arc<PlatformContext>) -> Self {
        Self { context }
    }

    async fn run(&self, run: &Arc<Run>, takeovers: Takeovers) -> Result<RunResult, Lost> {
        let lane = run.operation().row.lane.clone();
        let context = self.context.as_ref();
        let result = match lane.kind() {
            kind if kind == INSTANCE.as_str() => {
                instance_run::run_instance(context, run, takeovers).await
            }
            kind if kind == BINDING.as_str() => {
                binding_run::run_binding(context, run, takeovers).await
            }
            kind if kind == ORPHAN.as_str() => orphan_run::run_orphan(context, run).await,
            kind if kind == BROKER_STATE.as_str() => Ok(self.probe(run.clone(), takeovers).await?),
            kind if kind == CATALOG_SYNC.as_str() => Ok(self.sync(run.clone(), takeovers).await?),
            kind if kind == SINGLETON.as_str() => Ok(self.periodic(run, takeovers).await?),
            _ => Err(RunError::UnknownKind),
        };
        match result {
            Ok(result) => Ok(result),
            Err(RunError::Lost(Lost)) => Err(Lost),
            Err(error) => {
                let wait = error.wait();
                tracing::warn!(operation.id = %run.id(), error = &error as &dyn std::error::Error, "the operation is tried again");
                Ok(RunResult::Yield(wait))
            }
        }
    }
}

impl PlatformExecutor {
    async fn probe(&self, run: Arc<Run>, takeovers: Takeovers) -> Result<RunResult, Lost> {
        match takeovers {
            Takeovers::Few => self.context.brokers.execute_probe(run).await,
            Takeovers::TooMany => self.context.brokers.give_up_probe(run).await,
        }
    }

    async fn sync(&self, run: Arc<Run>, takeovers: Takeovers) -> Result<RunResult, Lost> {
        match takeovers {
            Takeovers::Few => self.context.brokers.execute_sync(run).await,
            Takeovers::TooMany => self.context.brokers.give_up_sync(run).await,
        }
    }

    async fn periodic(&self, run: &Run, takeovers: Takeovers) -> Result<RunResult, Lost> {
        match takeovers {
            Takeovers::Few => run_task(&self.context, run).await,
            Takeovers::TooMany => give_up_task(&self.context, run).await,
        }
    }
}

#[async_trait]
impl Executor for PlatformExecutor {
    async fn execute(&self, run: Arc<Run>) -> Result<RunResult, Lost> {
        self.run(&run, Takeovers::Few).await
    }

    async fn give_up(&self, run: Arc<Run>) -> Result<RunResult, Lost> {
        self.run(&run, Takeovers::TooMany).await
    }
}
