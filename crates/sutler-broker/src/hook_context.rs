//! Context of a hook: its input, and functions to store progress, steps and state.
//!
//! Progress is coalesced, steps are memoised across restarts and attempts, state can be saved during an operation.
//! All writes need the claim: a worker that lost it writes nothing. A [`Cx`] (short for context) is built by
//! `executor.rs`; `hook_context/log.rs` stores output, `hook_context/instance_state.rs` has the state of a binding's
//! instance.

mod instance_state;
mod log;

pub(crate) use log::{Piece, log_from};

use crate::error::{Error, Result};
use crate::lifecycle::AuthorState;
use crate::lifecycle::binding::BindingSpec;
use crate::lifecycle::instance::InstanceSpec;
use crate::resources::{Detail, FirstCall, PlannedAttempt, Request, SaveResult, Steps, save_state};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use sutler_journal::{Lost, OperationId, Run, StoreTime};
use sutler_osb::{
    BindResource, BindingId, Context, InstanceId, OriginatingIdentity, Parameters, PinnedPlan,
    RequestIdentity,
};
use sutler_records::Documents;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Minimum interval between writes of progress texts.
pub(crate) const PROGRESS_EVERY: Duration = Duration::from_millis(500);
/// Maximum length of a progress text, in characters.
const PROGRESS_CHARS_MAX: usize = 1000;
/// Maximum bytes of all memos together; a commit has at most a megabyte.
const STEPS_BYTES_MAX: usize = 512 * 1024;
/// Maximum memoised steps of one operation.
const STEPS_MAX: usize = 1000;

/// Input of a hook. Requests and documents share it.
pub(crate) struct HookInput {
    pub instance_id: InstanceId,
    /// The instance as it is stored.
    pub instance: Arc<InstanceSpec>,
    /// The instance that the operation leads to; differs only in an update.
    pub target: Arc<InstanceSpec>,
    /// The binding, if the operation has one.
    pub binding: Option<BindingInput>,
    pub request: Arc<Request>,
}

/// Input of a binding's hook.
pub(crate) struct BindingInput {
    pub id: Option<BindingId>,
    pub spec: Arc<BindingSpec>,
    pub state: Option<AuthorState>,
}

/// Context of a hook.
pub struct Cx {
    input: HookInput,
    plan: Arc<PinnedPlan>,
    run: Arc<Run>,
    records: Arc<Documents>,
    steps: tokio::sync::Mutex<Steps>,
    progress: Mutex<Progress>,
    progress_writes: tokio::sync::Mutex<()>,
    retry_after: Option<Duration>,
    /// End of the log of this attempt, once it is known.
    logged: tokio::sync::Mutex<Option<u64>>,
}

#[derive(Default)]
struct Progress {
    unwritten: Option<String>,
    written: Option<Instant>,
}

impl Cx {
    pub(crate) fn new(
        input: HookInput,
        plan: Arc<PinnedPlan>,
        run: Arc<Run>,
        records: Arc<Documents>,
        steps: Steps,
        retry_after: Option<Duration>,
    ) -> Self {
        Self {
            input,
            plan,
            run,
            records,
            steps: tokio::sync::Mutex::new(steps),
            progress: Mutex::default(),
            progress_writes: tokio::sync::Mutex::default(),
            retry_after,
            logged: tokio::sync::Mutex::default(),
        }
    }

    /// Id of the instance.
    pub fn instance_id(&self) -> &InstanceId {
        &self.input.instance_id
    }

    /// Id of the binding, if the operation has one.
    pub fn binding_id(&self) -> Option<&BindingId> {
        self.input.binding.as_ref()?.id.as_ref()
    }

    /// The plan, as of the creation or the last update of the instance.
    pub fn plan(&self) -> &PinnedPlan {
        &self.plan
    }

    /// The parameters: of the binding if there is one, otherwise of the instance.
    pub fn parameters(&self) -> &Parameters {
        match &self.input.binding {
            Some(binding) => &binding.spec.parameters,
            None => &self.input.target.parameters,
        }
    }

    /// The parameters as a type of the author.
    ///
    /// # Errors
    /// They do not match the type; the caller gets 400.
    pub fn parameters_as<T: DeserializeOwned>(&self) -> Result<T> {
        let value = Value::Object(self.parameters().0.clone());
        serde_json::from_value(value).map_err(|_| Error::invalid("The parameters do not fit."))
    }

    /// Platform context.
    pub fn context(&self) -> Option<&Context> {
        match &self.input.binding {
            Some(binding) => binding.spec.context.as_ref(),
            None => self.input.target.context.as_ref(),
        }
    }

    /// Bind resource: an application or a route.
    pub fn bind_resource(&self) -> Option<&BindResource> {
        self.input.binding.as_ref()?.spec.bind_resource.as_ref()
    }

    /// The bound application, from `bind_resource` or from the deprecated field.
    pub fn app_guid(&self) -> Option<&str> {
        self.input.binding.as_ref()?.spec.app_guid.as_deref()
    }

    /// The user that caused the operation.
    pub fn originating_identity(&self) -> Option<&OriginatingIdentity> {
        self.input.request.identity.as_ref()
    }

    /// The platform's id of the request that caused the operation.
    pub fn request_identity(&self) -> Option<&RequestIdentity> {
        self.input.request.request_identity.as_ref()
    }

    /// Id of the operation.
    pub fn operation_id(&self) -> OperationId {
        self.run.id()
    }

    /// Number of the attempt, from 1.
    pub fn attempt(&self) -> u32 {
        self.run.operation().row.attempt
    }

    /// Number of the claim: it grows when another worker takes the operation over. Pass it to external systems that
    /// reject a number smaller than an earlier one: then a worker that was frozen has no effect there, as it cannot
    /// write here.
    pub fn fence(&self) -> u64 {
        self.run.fence().0
    }

    /// The binding's own state, as saved by its bind.
    ///
    /// # Errors
    /// The state does not match the type.
    pub fn binding_state<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        let state = self.input.binding.as_ref().and_then(|it| it.state.clone());
        state
            .map(|state| serde_json::from_value(state.0))
            .transpose()
            .map_err(|_| Error::failed("The stored state of the service binding cannot be read."))
    }

    /// Cancelled when the operation should stop, because its resource is being deleted.
    pub fn cancellation(&self) -> &CancellationToken {
        self.run.cancelled()
    }

    /// Whether the operation should stop.
    pub fn is_cancelled(&self) -> bool {
        self.run.cancelled().is_cancelled()
    }

    /// A key that is the same for every attempt of this step: pass it to the external system, so that the step takes
    /// effect once.
    pub fn idempotency_key(&self, step: &str) -> String {
        let mut digest = Sha256::new();
        digest.update(self.run.id().0.as_bytes());
        digest.update(step.as_bytes());
        digest.finalize()[..16]
            .iter()
            .fold(String::with_capacity(32), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            })
    }

    /// Sets the description for polls. Written at most twice a second; the last one is kept.
    ///
    /// # Errors
    /// The claim was lost.
    pub async fn progress(&self, text: impl Into<String>) -> Result<()> {
        let text: String = text.into().chars().take(PROGRESS_CHARS_MAX).collect();
        let due = {
            let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
            progress.unwritten = Some(text);
            progress
                .written
                .is_none_or(|at| at.elapsed() >= PROGRESS_EVERY)
        };
        if due {
            self.flush_progress().await.map_err(|Lost| Error::lost())
        } else {
            Ok(())
        }
    }

    /// The moment from which the deadline of the hook counts, if an earlier attempt recorded it. A takeover since then
    /// has all the time again: takeovers are bounded. New progress sets their number back, which is not a takeover.
    /// The time for which the present attempt was due and did not run is not the hook's, also if claims were put back
    /// meanwhile. But if a restart ended another claim, part of the time was the hook's, and all of it counts.
    pub(crate) async fn first_call(&self, now: StoreTime) -> Option<StoreTime> {
        let row = &self.run.operation().row;
        let first = self.steps.lock().await.first_call;
        let first = first.filter(|first| first.takeovers >= row.takeovers)?;
        let planned = first.next.filter(|next| next.fence == row.fence.0);
        let waited = planned.map_or(Duration::ZERO, |next| now.since(StoreTime(next.due)));
        Some(StoreTime(first.at).plus(waited))
    }

    /// Progress that records the first call of the hook and when the next attempt is due, to be written together with the
    /// end of the attempt.
    pub(crate) async fn record_first_call(&self, at: StoreTime, due: StoreTime) -> Bytes {
        let row = &self.run.operation().row;
        let mut steps = self.steps.lock().await;
        steps.first_call = Some(FirstCall {
            at: at.0,
            next: Some(PlannedAttempt {
                due: due.0,
                fence: row.fence.0 + 1,
            }),
            takeovers: row.takeovers,
        });
        self.records.seal_progress(self.run.id(), &*steps)
    }

    /// Writes progress that was not written yet.
    pub(crate) async fn flush_progress(&self) -> std::result::Result<(), Lost> {
        // One write at a time, so that the last text is the one that stays.
        let _writing = self.progress_writes.lock().await;
        let text = {
            let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
            progress.written = Some(Instant::now());
            progress.unwritten.take()
        };
        let Some(text) = text else { return Ok(()) };
        let retry_after = self.retry_after.map(|wait| wait.as_secs().max(1));
        let detail = Detail {
            description: Some(text),
            retry_after,
            ..Detail::default()
        };
        self.run
            .save_progress(Some(self.records.seal_detail(self.run.id(), &detail)), None)
            .await
    }

    /// Runs a step once: its result is stored, and later attempts get it without running the step again. At least
    /// once until that is committed; with [`Cx::idempotency_key`] exactly once.
    ///
    /// # Errors
    /// Those of the step, in which case nothing is stored; or the claim was lost.
    pub async fn step<T, F, W>(&self, name: &str, work: F) -> Result<T>
    where
        T: Serialize + DeserializeOwned,
        F: FnOnce() -> W,
        W: Future<Output = Result<T>>,
    {
        if let Some(memo) = self.steps.lock().await.memos.get(name) {
            return serde_json::from_value(memo.clone()).map_err(|_| {
                let cause = format!("the memo of step {name:?} does not fit its type any more");
                Error::failed("The operation cannot be continued.").because(cause)
            });
        }
        let result = work().await?;
        let memo = serde_json::to_value(&result)?;
        let mut steps = self.steps.lock().await;
        if steps.memos.len() >= STEPS_MAX {
            return Err(Error::failed("The operation has too many steps."));
        }
        steps.memos.insert(name.to_owned(), memo);
        let sealed = self.records.seal_progress(self.run.id(), &*steps);
        if sealed.len() > STEPS_BYTES_MAX {
            steps.memos.remove(name);
            return Err(Error::failed(
                "The results of the operation's steps are too large to be kept.",
            ));
        }
        self.run
            .save_progress(None, Some(sealed))
            .await
            .map_err(|Lost| Error::lost())?;
        Ok(result)
    }

    /// Saves state during an operation, for a later attempt or for the cleanup after a failure.
    ///
    /// # Errors
    /// It does not serialise, or the claim was lost.
    pub async fn save_state<T: Serialize>(&self, state: &T) -> Result<()> {
        let state = AuthorState(serde_json::to_value(state)?);
        let saved = save_state(&self.records, &self.run, state).await;
        match saved.map_err(|Lost| Error::lost())? {
            SaveResult::Kept => Ok(()),
            SaveResult::TooLarge => Err(SaveResult::TooLarge.into_error()),
        }
    }
}
