//! Rekey of the store by the running broker: everything is sealed with the current key, in a task of its own.
//!
//! At most one run at a time; the connection of the operator does not matter to it. It ends at the shut-down of the
//! broker, and the next run continues: a rekey needs no memory (`sutler_journal::rekey`). Audited like an import: one
//! entry before the first write, one about the end. Only the first entry: the broker was stopped. The JSON and its
//! sentences are in `key_view.rs`.

use super::key_view::{RekeyState, RekeyView, sentence};
use super::response::AdminError;
use crate::audit::{AuditAction, AuditSubject, TrailEntry};
use crate::requests::{RequestError, RequestHandler};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use sutler_journal::rekey::{RekeyProgress, RekeyReport, expected_records, rekey};
use sutler_journal::{KeyRing, StoreError, catch_panic};
use sutler_records::{Actor, AuditResult};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

/// The last run of this process, and how to start another one.
pub(crate) struct RekeyTask {
    last: Arc<Mutex<Option<LastRekey>>>,
    shut_down: CancellationToken,
}

/// A run: its state and progress.
struct LastRekey {
    state: RekeyState,
    keys: Arc<KeyRing>,
    progress: watch::Receiver<RekeyProgress>,
    expected: Arc<AtomicU64>,
}

/// Everything that a run needs.
struct RekeyRun {
    requests: RequestHandler,
    by: Actor,
    last: Arc<Mutex<Option<LastRekey>>>,
    progress: watch::Sender<RekeyProgress>,
    expected: Arc<AtomicU64>,
    shut_down: CancellationToken,
}

impl RekeyTask {
    pub(crate) fn new(shut_down: CancellationToken) -> Self {
        Self {
            last: Arc::default(),
            shut_down,
        }
    }

    /// Starts a run unless one runs already, after its audit entry was written; returns the state of the run.
    pub(crate) async fn start(
        &self,
        requests: &RequestHandler,
        by: Actor,
    ) -> Result<RekeyView, AdminError> {
        match self.begin(requests, &by) {
            Some(run) => {
                let (begun, has_begun) = oneshot::channel();
                tokio::spawn(run.run(begun));
                // A run that broke off before has set its state.
                has_begun.await.unwrap_or(Ok(()))?;
            }
            None => {
                let entry = entry(&by, AuditResult::NothingToDo);
                requests
                    .file(&entry.with_message("a rekey runs already"))
                    .await?;
            }
        }
        Ok(self.view())
    }

    /// The state of the last run.
    pub(crate) fn view(&self) -> RekeyView {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(last) = last.as_ref() else {
            return RekeyView::none();
        };
        let (progress, expected) = (*last.progress.borrow(), &last.expected);
        let expected = expected.load(Ordering::Relaxed);
        RekeyView::of(&last.state, &last.keys.current(), progress, expected)
    }

    /// A new run; `None` if one runs already.
    fn begin(&self, requests: &RequestHandler, by: &Actor) -> Option<RekeyRun> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let runs = |it: &LastRekey| matches!(it.state, RekeyState::Running);
        if last.as_ref().is_some_and(runs) {
            return None;
        }
        let (progress, receiver) = watch::channel(RekeyProgress::default());
        let expected = Arc::new(AtomicU64::new(0));
        *last = Some(LastRekey {
            state: RekeyState::Running,
            keys: requests.realm_context.records.keys.clone(),
            progress: receiver,
            expected: expected.clone(),
        });
        Some(RekeyRun {
            requests: requests.clone(),
            by: by.clone(),
            last: self.last.clone(),
            progress,
            expected,
            shut_down: self.shut_down.clone(),
        })
    }
}

impl RekeyRun {
    async fn run(self, begun: oneshot::Sender<Result<(), RequestError>>) {
        let worked = catch_panic(self.work(begun)).await;
        let state = worked.unwrap_or_else(|()| {
            tracing::error!("a rekey broke off by a panic");
            RekeyState::Failed
        });
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = last.as_mut() {
            last.state = state;
        }
    }

    /// Runs between two audit entries.
    async fn work(&self, begun: oneshot::Sender<Result<(), RequestError>>) -> RekeyState {
        let noted = self
            .requests
            .file(&entry(&self.by, AuditResult::Started))
            .await;
        let is_noted = noted.is_ok();
        // The client may have disconnected.
        let _ = begun.send(noted);
        if !is_noted {
            return RekeyState::Failed;
        }
        let state = tokio::select! {
            () = self.shut_down.cancelled() => RekeyState::Interrupted,
            ended = self.seal_all() => ended.map_or_else(failed, RekeyState::Ended),
        };
        self.note_end(&state).await;
        state
    }

    async fn seal_all(&self) -> Result<RekeyReport, StoreError> {
        let records = &self.requests.realm_context.records;
        let expected = expected_records(records.store.as_ref()).await?;
        self.expected.store(expected, Ordering::Relaxed);
        rekey(&records.store, &records.keys, &self.progress).await
    }

    async fn note_end(&self, state: &RekeyState) {
        let result = match state {
            RekeyState::Ended(report) if report.is_complete() => AuditResult::Done,
            RekeyState::Ended(_) | RekeyState::Failed => AuditResult::Refused,
            RekeyState::Running | RekeyState::Interrupted => return,
        };
        let key = self.requests.realm_context.records.keys.current();
        let message = sentence(state, &key, *self.progress.borrow());
        let entry = entry(&self.by, result).with_message(message);
        if self.requests.file(&entry).await.is_err() {
            tracing::error!("the audit entry about the end of a rekey could not be written");
        }
    }
}

fn failed(error: StoreError) -> RekeyState {
    let cause = &error as &dyn std::error::Error;
    tracing::error!(error = cause, "a rekey broke off; start it again");
    RekeyState::Failed
}

fn entry(by: &Actor, result: AuditResult) -> TrailEntry {
    TrailEntry::new(AuditAction::Rekey, AuditSubject::broker(), by, result)
}
