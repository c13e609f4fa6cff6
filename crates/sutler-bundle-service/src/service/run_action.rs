//! Runs one action of one bundle for one operation: builds the run, drives it, returns the outcome.
//!
//! The hooks (`hooks.rs`) choose the inputs and use the result.

use super::BundleService;
use super::build_run::{self, RunInputs};
use super::missing_runner::MissingRunner;
use super::outcome::{Ending, NO_SUCH_ACTION, Outcome, conclude};
use super::run_driver::{RunTask, drive_run};
use super::state::{BindingState, BundlePin, ChangeOrigin, InstanceState};
use super::vars::ActionInputs;
use crate::version_store::{Bundle, VersionStoreError};
use jiff::Timestamp;
use std::sync::Arc;
use sutler_broker::{AuthorState, Cx, Error, Result};
use sutler_bundle::Action;
use sutler_runner::{Exit, RunName, RunResult};

/// Description for users when the operator must act.
const FOR_OPERATORS: &str =
    "The service cannot be run at present. The operator of the service broker can see why.";
/// Memo with the host on which an attempt runs.
const HOST_STEP: &str = "host";
/// Fence of the first claim: no earlier worker can have started a run.
const FIRST_CLAIM: u64 = 1;

/// State of the instance, if there is any.
pub(super) fn remembered(state: Option<&AuthorState>) -> Result<Option<InstanceState>> {
    let read = state.map(InstanceState::read).transpose();
    read.map_err(|fault| Error::failed(FOR_OPERATORS).because(fault))
}

/// State of the binding.
pub(super) fn remembered_binding(cx: &Cx) -> Result<BindingState> {
    let kept: Option<AuthorState> = cx.binding_state()?;
    let read = kept.as_ref().map(BindingState::read).transpose();
    let read = read.map_err(|fault| Error::failed(FOR_OPERATORS).because(fault))?;
    Ok(read.unwrap_or_default())
}

/// Origin of a change of state.
pub(super) fn by(cx: &Cx, action: Action) -> ChangeOrigin {
    ChangeOrigin {
        operation: cx.operation_id().0,
        action,
        at: Timestamp::now(),
    }
}

/// Pin of an instance to this version.
pub(super) fn pin(bundle: &Bundle) -> BundlePin {
    BundlePin {
        name: bundle.manifest.name.clone(),
        version: bundle.manifest.bundle_version.clone(),
        digest: bundle.digest.clone(),
    }
}

/// Inputs that every action gets from its operation.
pub(super) fn action_inputs<'a>(cx: &'a Cx, bundle: &'a Bundle) -> ActionInputs<'a> {
    let plan = cx.plan();
    ActionInputs {
        plan_name: plan.plan_name.as_str(),
        plan_id: plan.plan_id.as_str(),
        service_id: plan.service_id.as_str(),
        instance_id: cx.instance_id().as_str(),
        binding_id: cx.binding_id().map(|id| id.as_str()),
        bundle_version: bundle.manifest.bundle_version.as_deref(),
        identity: cx.originating_identity(),
        context: cx.context().or(cx.instance_context()),
        parameters: Some(&cx.instance_parameters().0),
        ..ActionInputs::default()
    }
}

/// Converts an outcome that is not a success to an error of the framework.
pub(super) fn unsuccessful(outcome: Outcome) -> Error {
    match outcome {
        Outcome::Failed { sentence, .. } => Error::failed(sentence),
        Outcome::Unsupported(sentence) => Error::unsupported(sentence),
        Outcome::Again { sentence, .. } => Error::transient(sentence),
        Outcome::Done(_) | Outcome::NothingToDo => Error::failed(FOR_OPERATORS),
    }
}

impl BundleService {
    /// The bundle version that an instance is bound to: the one that made it.
    pub(super) async fn bundle(
        &self,
        cx: &Cx,
        state: Option<&InstanceState>,
    ) -> Result<Arc<Bundle>> {
        let pinned = state.map(|it| it.bundle.digest.clone());
        let pinned = pinned.filter(|digest| !digest.is_empty());
        let Some(digest) = pinned.or_else(|| cx.plan().origin.clone()) else {
            let cause = "the plan comes from no bundle: it was offered by another configuration";
            return Err(Error::failed(FOR_OPERATORS).because(cause));
        };
        self.stored_version(digest).await
    }

    pub(super) async fn stored_version(&self, digest: String) -> Result<Arc<Bundle>> {
        let version_store = self.parts.version_store.clone();
        let found = tokio::task::spawn_blocking(move || version_store.get(&digest)).await;
        let fault: VersionStoreError = match found {
            Ok(Ok(bundle)) => return Ok(bundle),
            Ok(Err(fault)) => fault,
            Err(_) => return Err(Error::failed(FOR_OPERATORS).because("a task was cut short")),
        };
        if let VersionStoreError::Missing(digest, _) = &fault {
            match self.archived(digest).await {
                Ok(Some(bundle)) => return Ok(bundle),
                Ok(None) => {}
                Err(why) => return Err(Error::transient(FOR_OPERATORS).because(why)),
            }
        }
        Err(Error::failed(FOR_OPERATORS).because(fault))
    }

    /// Runs an action and returns its outcome.
    pub(super) async fn act(
        &self,
        cx: &Cx,
        action: Action,
        bundle: &Bundle,
        inputs: ActionInputs<'_>,
    ) -> Result<Outcome> {
        let name = RunName {
            operation: cx.operation_id().0,
            attempt: cx.attempt(),
        };
        let on_lost = bundle.manifest.rules(action).on_lost;
        let end = |ending, result| conclude(action, name, ending, result, on_lost);
        let Some(runnable) = build_run::runnable(bundle, action) else {
            let ending = Ending::Exited(Exit::Code(NO_SUCH_ACTION));
            return Ok(end(ending, RunResult::default()));
        };
        if let Some(why) = self.elsewhere(cx).await? {
            return Ok(end(Ending::Unreachable(why), RunResult::default()));
        }
        let absent;
        let runner = match self.parts.runners.of(&runnable) {
            Ok(runner) => runner.as_ref(),
            Err(why) if cx.fence() == FIRST_CLAIM => {
                return Err(Error::failed(FOR_OPERATORS).because(why));
            }
            // Another worker may have started it while a runner was configured: wait for it.
            Err(why) => {
                absent = MissingRunner(why);
                &absent
            }
        };
        let redaction =
            build_run::secrets_of(&bundle.manifest, &inputs, &self.parts.secrets).redaction();
        let task = RunTask {
            name,
            deadline: build_run::limits(bundle, action, &self.parts.limits).deadline,
            redaction: &redaction,
        };
        let wanted = RunInputs {
            name,
            action,
            bundle,
            runnable,
            inputs,
            kept: &self.parts.secrets,
            ceiling: &self.parts.limits,
            idempotency_key: cx.idempotency_key(action.as_str()),
        };
        let _active = self.cleanup.watch(name);
        let make = || build_run::build_run_spec(wanted.clone());
        let (ending, result) = drive_run(runner, &task, make, cx).await?;
        if let Ending::Lost(why) | Ending::Unreachable(why) = &ending {
            tracing::error!(run = %name, %why, "a run is lost");
        }
        Ok(end(ending, result))
    }

    /// Reason why the run cannot be found on this host, if several share a store: it is on another.
    async fn elsewhere(&self, cx: &Cx) -> Result<Option<String>> {
        let Some(own) = &self.parts.host else {
            return Ok(None);
        };
        // Stored before the start, so that a takeover knows the host.
        let step = format!("{HOST_STEP} {}", cx.attempt());
        let host: String = cx.step(&step, || async { Ok(own.clone()) }).await?;
        Ok((host != *own).then(|| format!("it was started on the host {host}")))
    }
}
