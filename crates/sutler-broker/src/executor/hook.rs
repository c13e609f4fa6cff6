//! Calls the hooks of a service, with a deadline, flushed progress and caught panics.

use super::{HookCall, HookOutcome, classify_hook_error};
use crate::error::{Error, Result as HookResult};
use crate::hook_context::PROGRESS_EVERY;
use crate::lifecycle::binding::{self, Binding, BindingData};
use crate::lifecycle::instance::{self, Instance};
use crate::lifecycle::{AuthorState, End, Verb};
use crate::operation_log;
use crate::realm_context::RealmContext;
use crate::resources::{Detail, ResourceKeys as _};
use crate::service::{Bound, Predecessor, Provisioned, Update};
use std::future::Future;
use std::time::Duration;
use sutler_journal::{Fence, Lost, Run, catch_panic};
use sutler_osb::{BindResponse, Requires};
use tracing::Instrument as _;

const HALTED: &str = "The creation was halted by a delete.";

/// Runs an instance's verb.
pub(super) async fn instance(
    realm_context: &RealmContext,
    job: &HookCall,
    run: &Run,
    verb: Verb,
    at: &Instance,
) -> Result<HookOutcome<instance::HookOutput>, Lost> {
    let Some(instance_data) = at.data() else {
        return Ok(halted());
    };
    let (cx, service) = (&job.cx, &job.service);
    let state = instance_data.state.clone();
    let ran = match (verb, at) {
        (Verb::Provision, _) if run.cancelled().is_cancelled() && never_ran(run) => {
            return Ok(halted());
        }
        (Verb::Provision, _) => {
            let hook = service.provision(cx, instance_data.spec.parameters.clone());
            guarded(realm_context, job, run, hook).await?.map(made)
        }
        (Verb::Update, Instance::Updating { change, .. }) => {
            // The framework stores the context; a service without `update` is not called.
            if change.is_context_only() && !service.updates() {
                return Ok(succeeded(instance::HookOutput::default()));
            }
            let update = match update_of(realm_context, instance_data, change).await {
                Ok(update) => update,
                Err(error) => return classify_hook_error(error, &job.policy, run),
            };
            guarded(realm_context, job, run, service.update(cx, state, update))
                .await?
                .map(made)
        }
        (Verb::Deprovision, _) => {
            let hook = service.deprovision(cx, state);
            guarded(realm_context, job, run, hook)
                .await?
                .map(|()| instance::HookOutput::default())
        }
        (Verb::Update | Verb::Bind | Verb::Unbind, _) => return Ok(halted()),
    };
    ran.map_or_else(
        |error| classify_hook_error(error, &job.policy, run),
        |made| Ok(succeeded(made)),
    )
}

/// Runs a binding's verb.
pub(super) async fn binding(
    realm_context: &RealmContext,
    job: &HookCall,
    run: &Run,
    verb: Verb,
    binding_data: &BindingData,
    state: Option<AuthorState>,
) -> Result<HookOutcome<binding::HookOutput>, Lost> {
    let (cx, service) = (&job.cx, &job.service);
    let ran = match verb {
        Verb::Bind if run.cancelled().is_cancelled() && never_ran(run) => return Ok(halted()),
        Verb::Bind => {
            let bound = match predecessor(realm_context, cx.instance_id(), binding_data).await {
                Ok(None) => guarded(realm_context, job, run, service.bind(cx, state)).await?,
                Ok(Some(it)) => {
                    guarded(realm_context, job, run, service.rotate(cx, state, it)).await?
                }
                Err(error) => Err(error),
            };
            bound.and_then(|bound| checked_output(bound, &job.plan.pinned.requires))
        }
        Verb::Unbind => {
            let hook = service.unbind(cx, state);
            guarded(realm_context, job, run, hook)
                .await?
                .map(|()| binding::HookOutput::default())
        }
        Verb::Provision | Verb::Update | Verb::Deprovision => return Ok(halted()),
    };
    ran.map_or_else(
        |error| classify_hook_error(error, &job.policy, run),
        |made| Ok(succeeded(made)),
    )
}

/// Polls a hook to its end or to the verb's deadline, and writes its progress on the way.
async fn guarded<T>(
    realm_context: &RealmContext,
    job: &HookCall,
    run: &Run,
    hook: impl Future<Output = HookResult<T>>,
) -> Result<HookResult<T>, Lost> {
    let left = time_left(realm_context, job, run).await?;
    if left.is_zero() {
        // Otherwise a hook that fails at once would be tried without a limit.
        return Ok(Err(overdue(job.policy.deadline)));
    }
    let deadline = tokio::time::sleep(left);
    let mut hook = std::pin::pin!(catch_panic(hook.instrument(operation_log::hook_span(run))));
    let mut deadline = std::pin::pin!(deadline);
    loop {
        tokio::select! {
            biased;
            ended = &mut hook => return Ok(ended.unwrap_or_else(|()| Err(panicked()))),
            () = &mut deadline => return Ok(Err(overdue(job.policy.deadline))),
            () = tokio::time::sleep(PROGRESS_EVERY) => job.cx.flush_progress().await?,
        }
    }
}

/// The deadline counts from acceptance, over all attempts.
async fn time_left(
    realm_context: &RealmContext,
    job: &HookCall,
    run: &Run,
) -> Result<Duration, Lost> {
    let row = &run.operation().row;
    if row.fence == Fence(1) && row.attempt == 1 {
        return Ok(job.policy.deadline);
    }
    match realm_context.records.store.now().await {
        Ok(now) => Ok(job.policy.deadline.saturating_sub(now.since(row.accepted))),
        Err(cause) => {
            run.wait_for_store(&cause, Duration::from_millis(200))
                .await?;
            Ok(job.policy.deadline)
        }
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

fn succeeded<T>(made: T) -> HookOutcome<T> {
    HookOutcome::Ended(End::Succeeded(made), Detail::default())
}

fn halted<T>() -> HookOutcome<T> {
    let detail = Detail {
        description: Some(HALTED.to_owned()),
        ..Detail::default()
    };
    HookOutcome::Ended(End::Failed, detail)
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

async fn predecessor(
    realm_context: &RealmContext,
    instance: &sutler_osb::InstanceId,
    binding_data: &BindingData,
) -> HookResult<Option<Predecessor>> {
    let Some(id) = &binding_data.spec.predecessor else {
        return Ok(None);
    };
    let key = realm_context.records.binding_key(instance, id);
    let state = match realm_context.records.load::<Binding>(&key).await?.state {
        Binding::Live { data: binding_data } => binding_data.state,
        _ => return Err(Error::failed("The service binding to succeed is gone.")),
    };
    Ok(Some(Predecessor {
        binding_id: id.clone(),
        state,
    }))
}

async fn update_of(
    realm_context: &RealmContext,
    instance_data: &instance::InstanceData,
    change: &instance::Change,
) -> HookResult<Update<sutler_osb::Parameters>> {
    let (previous, _) = realm_context.served(&instance_data.spec.plan).await?;
    Ok(Update {
        params: instance_data.spec.changed_by(change).parameters,
        sent: change.parameters.clone().unwrap_or_default(),
        previous_plan: previous.pinned.as_ref().clone(),
        maintenance_version: change.maintenance_version.clone(),
        previous_maintenance_version: instance_data.spec.maintenance_version.clone(),
        context_only: change.is_context_only(),
    })
}
