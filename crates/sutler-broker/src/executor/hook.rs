//! Calls the hooks of a service, with a deadline, flushed progress and caught panics.

use super::RunOutcome;
use crate::catalog::OfferedPlan;
use crate::error::{Error, ErrorKind, Result as HookResult};
use crate::hook_context::{Cx, PROGRESS_EVERY};
use crate::lifecycle::binding::{self, Binding, BindingData};
use crate::lifecycle::instance::{self, Change, Instance, InstanceData};
use crate::lifecycle::{AuthorState, End, Verb};
use crate::operation_log;
use crate::realm_context::RealmContext;
use crate::refusal::Refusal;
use crate::resources::{Detail, RefusedAs, ResourceKeys as _};
use crate::service::{Bound, Policy, Predecessor, Provisioned, UntypedService, Update};
use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use sutler_journal::{Fence, Lost, Run, StoreTime, catch_panic};
use sutler_osb::{BindResponse, Parameters, Requires};
use tokio::time::Instant;
use tracing::Instrument as _;

/// Maximum wait between attempts.
const BACKOFF_MAX: Duration = Duration::from_secs(300);

/// Wait before the store is asked for the time again.
const NOW_AGAIN: Duration = Duration::from_millis(200);

/// Maximum length of a hook's message for callers, in characters.
const MESSAGE_CHARS_MAX: usize = 4000;

const HALTED: &str = "The creation was halted by a delete.";

/// A call of a hook: its operation, service and context.
pub(super) struct HookCall<'a> {
    pub realm_context: &'a RealmContext,
    pub run: &'a Run,
    pub verb: Verb,
    pub cx: Cx,
    pub plan: Arc<OfferedPlan>,
    pub service: Arc<dyn UntypedService>,
    pub policy: Policy,
    /// When the hook was called in this attempt.
    pub called: OnceLock<Instant>,
    /// The moment from which the deadline counts, by the clock of the store, if an earlier attempt recorded it.
    pub first_call: OnceLock<StoreTime>,
}

impl HookCall<'_> {
    /// Runs an instance's verb.
    pub(super) async fn run_instance_hook(
        &self,
        at: &Instance,
    ) -> Result<RunOutcome<instance::HookOutput>, Lost> {
        let Some(instance_data) = at.data() else {
            return Ok(halted());
        };
        let (cx, service) = (&self.cx, &self.service);
        let ran = match (self.verb, at) {
            (Verb::Provision, _) if self.is_halted() => return Ok(halted()),
            (Verb::Provision, _) => {
                let hook = service.provision(cx, instance_data.spec.parameters.clone());
                self.guard(hook).await?.map(made)
            }
            (Verb::Update, Instance::Updating { change, .. }) => {
                // The framework stores the context; a service without `update` is not called.
                if change.is_context_only() && !service.updates() {
                    return Ok(succeeded(instance::HookOutput::default()));
                }
                let state = instance_data.state.clone();
                let update = self.update_input(instance_data, change).await?;
                let hook = service.update(cx, state, update);
                self.guard(hook).await?.map(made)
            }
            (Verb::Deprovision, _) => {
                let state = instance_data.state.clone();
                let hook = service.deprovision(cx, state);
                self.guard(hook)
                    .await?
                    .map(|()| instance::HookOutput::default())
            }
            (Verb::Update | Verb::Bind | Verb::Unbind, _) => return Ok(halted()),
        };
        self.outcome(ran).await
    }

    /// Runs a binding's verb.
    pub(super) async fn run_binding_hook(
        &self,
        binding_data: &BindingData,
        state: Option<AuthorState>,
    ) -> Result<RunOutcome<binding::HookOutput>, Lost> {
        let (cx, service) = (&self.cx, &self.service);
        let ran = match self.verb {
            Verb::Bind if self.is_halted() => return Ok(halted()),
            Verb::Bind => {
                let bound = match self.predecessor(binding_data).await? {
                    Ok(None) => self.guard(service.bind(cx, state)).await?,
                    Ok(Some(it)) => self.guard(service.rotate(cx, state, it)).await?,
                    Err(error) => Err(error),
                };
                bound.and_then(|bound| checked_output(bound, &self.plan.pinned.requires))
            }
            Verb::Unbind => {
                let hook = service.unbind(cx, state);
                self.guard(hook)
                    .await?
                    .map(|()| binding::HookOutput::default())
            }
            Verb::Provision | Verb::Update | Verb::Deprovision => return Ok(halted()),
        };
        self.outcome(ran).await
    }

    /// Polls a hook to its end or to the verb's deadline, and writes its progress on the way.
    async fn guard<T>(
        &self,
        hook: impl Future<Output = HookResult<T>>,
    ) -> Result<HookResult<T>, Lost> {
        let left = self.time_left().await?;
        if left.is_zero() {
            // Otherwise a hook that fails at once would be tried without a limit.
            return Ok(Err(overdue(self.policy.deadline)));
        }
        self.run.confirm_claim().await?;
        if matches!(self.verb, Verb::Provision | Verb::Bind) && self.is_halted() {
            return Ok(Err(Error::failed(HALTED)));
        }
        let _ = self.called.set(Instant::now());
        let span = operation_log::hook_span(self.run);
        let hook = catch_panic(hook.instrument(span));
        tokio::select! {
            biased;
            ended = hook => Ok(ended.unwrap_or_else(|()| Err(panicked()))),
            () = tokio::time::sleep(left) => Ok(Err(overdue(self.policy.deadline))),
            // Concurrently: a store that is slow to write progress delays neither hook nor deadline.
            Lost = self.write_progress() => Err(Lost),
        }
    }

    /// Writes progress from time to time, until the claim is lost.
    async fn write_progress(&self) -> Lost {
        loop {
            tokio::time::sleep(PROGRESS_EVERY).await;
            if let Err(lost) = self.cx.flush_progress().await {
                return lost;
            }
        }
    }

    /// The deadline counts from the first call of the hook, over all attempts: the time before, in which the
    /// operation waited for others, is not the hook's.
    async fn time_left(&self) -> Result<Duration, Lost> {
        let row = &self.run.operation().row;
        // Right after the acceptance: the store need not be asked.
        if row.fence == Fence(1) {
            return Ok(self.policy.deadline);
        }
        let now = self.store_time().await?;
        let Some(first_call) = self.cx.first_call(now).await else {
            return Ok(self.policy.deadline);
        };
        let _ = self.first_call.set(first_call);
        Ok(self.policy.deadline.saturating_sub(now.since(first_call)))
    }

    async fn store_time(&self) -> Result<StoreTime, Lost> {
        loop {
            match self.realm_context.records.store.now().await {
                Ok(now) => return Ok(now),
                Err(cause) => self.run.wait_for_store(&cause, NOW_AGAIN).await?,
            }
        }
    }

    /// Ends this attempt. Records when the hook was called first, and when it is to be called again.
    async fn retry<T>(&self, wait: Duration) -> Result<RunOutcome<T>, Lost> {
        // Before the store is asked: a slow answer is not the hook's time.
        let passed = self.called.get().map_or(Duration::ZERO, Instant::elapsed);
        let now = self.store_time().await?;
        let first_call = match self.first_call.get() {
            Some(first_call) => *first_call,
            None => now.minus(passed),
        };
        let due = now.plus(wait);
        let progress = self.cx.record_first_call(first_call, due).await;
        Ok(RunOutcome::Retry(wait, Some(progress)))
    }

    /// Whether the operation was cancelled before its hook was called.
    fn is_halted(&self) -> bool {
        self.run.cancelled().is_cancelled() && never_ran(self.run)
    }

    async fn predecessor(
        &self,
        binding_data: &BindingData,
    ) -> Result<HookResult<Option<Predecessor>>, Lost> {
        let Some(id) = &binding_data.spec.predecessor else {
            return Ok(Ok(None));
        };
        let records = &self.realm_context.records;
        let key = records.binding_key(self.cx.instance_id(), id);
        let loaded = records.load_for_run::<Binding>(self.run, &key).await?;
        let state = match loaded.state {
            Binding::Live { data: binding_data } => binding_data.state,
            _ => {
                let gone = Error::failed("The service binding to succeed is gone.");
                return Ok(Err(gone));
            }
        };
        Ok(Ok(Some(Predecessor {
            binding_id: id.clone(),
            state,
        })))
    }

    async fn update_input(
        &self,
        instance_data: &InstanceData,
        change: &Change,
    ) -> Result<Update<Parameters>, Lost> {
        let spec = &instance_data.spec;
        let served = self.realm_context.served_for_run(self.run, &spec.plan);
        let (previous, _) = served.await?;
        Ok(Update {
            params: self.cx.parameters().clone(),
            sent: change.parameters.clone().unwrap_or_default(),
            previous_plan: previous.pinned.as_ref().clone(),
            maintenance_version: change.maintenance_version.clone(),
            previous_maintenance_version: spec.maintenance_version.clone(),
            context_only: change.is_context_only(),
        })
    }

    /// Outcome of a hook that returned.
    async fn outcome<T>(&self, ran: HookResult<T>) -> Result<RunOutcome<T>, Lost> {
        let error = match ran {
            Ok(output) => return Ok(succeeded(output)),
            Err(error) if error.kind == ErrorKind::Lost => return Err(Lost),
            Err(error) => error,
        };
        let row = &self.run.operation().row;
        tracing::warn!(operation.id = %row.id, verb = %row.verb, attempt = row.attempt, ?error, "a hook did not succeed");
        let stopping = self.run.cancelled().is_cancelled();
        let policy = &self.policy;
        if error.kind == ErrorKind::Transient && row.attempt < policy.attempts_max && !stopping {
            let factor = 2u32.saturating_pow(row.attempt - 1);
            let wait = policy.backoff.saturating_mul(factor).min(BACKOFF_MAX);
            return self.retry(wait).await;
        }
        let refused = match &error.kind {
            ErrorKind::Refused(Refusal::RequiresApp) => Some(RefusedAs::RequiresApp),
            ErrorKind::Refused(Refusal::Invalid(_)) => Some(RefusedAs::Invalid),
            ErrorKind::Refused(_) => Some(RefusedAs::Unsupported),
            ErrorKind::Failed | ErrorKind::Transient | ErrorKind::Lost => None,
        };
        let detail = Detail {
            description: Some(error.message.chars().take(MESSAGE_CHARS_MAX).collect()),
            instance_usable: error.instance_usable,
            update_repeatable: error.update_repeatable,
            retry_after: None,
            refused,
        };
        let end = match refused {
            Some(_) => End::Refused,
            None => End::Failed,
        };
        Ok(RunOutcome::Ended(end, detail))
    }
}

fn never_ran(run: &Run) -> bool {
    let row = &run.operation().row;
    row.attempt == 1 && row.takeovers == 0 && run.operation().progress.is_empty()
}

fn overdue(limit: Duration) -> Error {
    Error::failed(format!(
        "The operation did not end within {} seconds.",
        limit.as_secs()
    ))
}

fn panicked() -> Error {
    Error::failed("The operation failed. The operator of the service broker can see why.")
        .because("the hook panicked; the panic message is on standard error")
}

fn made(made: Provisioned<AuthorState>) -> instance::HookOutput {
    instance::HookOutput {
        state: Some(made.state),
        metadata: made.metadata,
    }
}

fn succeeded<T>(made: T) -> RunOutcome<T> {
    RunOutcome::Ended(End::Succeeded(made), Detail::default())
}

fn halted<T>() -> RunOutcome<T> {
    let detail = Detail {
        description: Some(HALTED.to_owned()),
        ..Detail::default()
    };
    RunOutcome::Ended(End::Failed, detail)
}

/// B-192, B-193, B-194: a bind must not return features that the catalog does not announce.
fn checked_output(bound: Bound, requires: &[Requires]) -> HookResult<binding::HookOutput> {
    let BindResponse {
        syslog_drain_url,
        route_service_url,
        volume_mounts,
        ..
    } = &bound.given;
    let needs = [
        (
            syslog_drain_url.is_some(),
            Requires::SyslogDrain,
            "syslog_drain",
        ),
        (
            route_service_url.is_some(),
            Requires::RouteForwarding,
            "route_forwarding",
        ),
        (
            volume_mounts.is_some(),
            Requires::VolumeMount,
            "volume_mount",
        ),
    ];
    for (has, permission, word) in needs {
        if has && !requires.contains(&permission) {
            let cause = format!("the offering must list {word:?} under `requires` in the catalog");
            return Err(
                Error::failed("The service broker is not set up for such bindings.").because(cause),
            );
        }
    }
    Ok(binding::HookOutput {
        state: bound.state,
        given: Box::new(bound.given),
    })
}
