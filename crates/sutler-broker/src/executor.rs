//! Runs accepted operations: builds the context, calls the hook, commits its result.
//!
//! It is called by the journal's engine under a claim and may be called again after a crash. The
//! result and the resource's next state are one commit, decided by `lifecycle/`. Cascades are in
//! `executor/cascade.rs`, calling the hooks in `executor/hook.rs`, scheduled work in `cleanup.rs`.

mod await_plan;
mod cascade;
mod hook;
mod run_end;

use crate::catalog::OfferedPlan;
use crate::cleanup;
use crate::error::{Error, ErrorKind};
use crate::hook_context::{Cx, HookInput};
use crate::lifecycle::binding::Binding;
use crate::lifecycle::instance::{Instance, InstanceSpec};
use crate::lifecycle::{End, Verb};
use crate::operation_log;
use crate::realm_context::RealmContext;
use crate::refusal::Refusal;
use crate::resources::{BINDING, Detail, INSTANCE, RefusedAs, Request, ResourceKeys as _, Steps};
use crate::service::{Policy, UntypedService};
use async_trait::async_trait;
use await_plan::PlanResolution;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::{Executor, Key, Lost, Run, RunResult};
use sutler_osb::{BindingId, InstanceId};
use sutler_records::{
    EndedResource, LoadedDocument, PeriodicTasks, Resource, ResultSender, RunEnd, StartedOperation,
    TASK_VERB,
};
use tracing::Instrument as _;

/// Maximum wait between attempts.
const BACKOFF_MAX: Duration = Duration::from_secs(300);

/// Maximum length of a hook's message for callers, in characters.
const MESSAGE_CHARS_MAX: usize = 4000;

/// An operation of the broker that starts.
type LoadedOperation<S> = StartedOperation<S, Request, Detail>;

/// Runs the operations of one platform.
pub(crate) struct BrokerExecutor(pub Arc<RealmContext>);

/// Runs the operations of every platform, chosen by the realm of the lane.
pub(crate) struct RealmExecutors(pub Vec<BrokerExecutor>, pub Option<Arc<PeriodicTasks>>);

/// Delay before an operation of a platform that is not served is tried again. Its queue is not served, so this
/// applies only to operations that another broker put into a queue of this one.
const STRANGER_AGAIN: Duration = Duration::from_secs(60);

impl RealmExecutors {
    fn of(&self, run: &Run) -> Option<&BrokerExecutor> {
        let realm = run.operation().row.lane.realm();
        let mut all = self.0.iter();
        all.find(|it| it.0.records.realm.as_str() == realm)
    }

    /// The periodic tasks, if the run is one of theirs.
    fn periodic_tasks(&self, run: &Run) -> Option<&Arc<PeriodicTasks>> {
        self.1
            .as_ref()
            .filter(|_| run.operation().row.verb == TASK_VERB)
    }
}

#[async_trait]
impl Executor for RealmExecutors {
    async fn execute(&self, run: Arc<Run>) -> Result<RunResult, Lost> {
        if let Some(tasks) = self.periodic_tasks(&run) {
            return tasks.run(run).await;
        }
        match self.of(&run) {
            Some(executor) => {
                // The catalog source also provides what operations need.
                executor.0.catalog.source.ready().await;
                executor.execute(run).await
            }
            None => Ok(RunResult::Yield(STRANGER_AGAIN)),
        }
    }

    async fn give_up(&self, run: Arc<Run>) -> Result<(), Lost> {
        if let Some(tasks) = self.periodic_tasks(&run) {
            return tasks.give_up(run).await;
        }
        match self.of(&run) {
            Some(executor) => executor.give_up(run).await,
            None => Err(Lost),
        }
    }
}

/// Outcome of a hook.
pub(super) enum HookOutcome<T> {
    /// The hook ended.
    Ended(End<T>, Detail),
    /// The hook failed and is tried again.
    FailedUpdate(Duration),
}

/// Arguments of a hook call.
pub(super) struct HookCall {
    pub cx: Cx,
    pub plan: Arc<OfferedPlan>,
    pub service: Arc<dyn UntypedService>,
    pub policy: Policy,
}

impl BrokerExecutor {
    async fn execute(&self, run: Arc<Run>) -> Result<RunResult, Lost> {
        let row = &run.operation().row;
        match Verb::of(&row.verb) {
            Some(verb) if row.lane.kind() == BINDING.as_str() => {
                let fresh = self.load_operation::<Binding>(&run, &row.lane).await?;
                let span = operation_log::operation_span(&run, Some(&fresh.request));
                self.run_binding(run, verb, fresh).instrument(span).await
            }
            Some(verb) if row.lane.kind() == INSTANCE.as_str() => {
                let fresh = self.load_operation::<Instance>(&run, &row.lane).await?;
                let span = operation_log::operation_span(&run, Some(&fresh.request));
                self.run_instance(run, verb, fresh).instrument(span).await
            }
            Some(_) | None => cleanup::run(&self.0, &run).await,
        }
    }

    async fn give_up(&self, run: Arc<Run>) -> Result<(), Lost> {
        let message = "The operation was interrupted too often and was given up.";
        tracing::error!(operation.id = %run.id(), "too many takeovers without progress");
        let detail = Detail {
            description: Some(message.to_owned()),
            ..Detail::default()
        };
        let row = &run.operation().row;
        let request = self.0.records.open_request::<Request>(run.operation()).ok();
        let span = operation_log::operation_span(&run, request.as_ref());
        if row.lane.kind() == BINDING.as_str() {
            let end = self.conclude::<Binding>(&run, failed(detail));
            end.instrument(span).await
        } else if row.lane.kind() == INSTANCE.as_str() {
            let end = self.conclude::<Instance>(&run, failed(detail));
            end.instrument(span).await
        } else {
            cleanup::run(&self.0, &run).await.map(|_| ())
        }
    }
}

impl BrokerExecutor {
    async fn run_instance(
        &self,
        run: Arc<Run>,
        verb: Verb,
        fresh: LoadedOperation<Instance>,
    ) -> Result<RunResult, Lost> {
        let StartedOperation {
            was,
            request,
            result,
        } = fresh;
        match self.resolved(&run, was).await? {
            PlanResolution::Yes(was) => {
                let fresh = StartedOperation {
                    was: *was,
                    request,
                    result,
                };
                self.run_resolved(run, verb, fresh).await
            }
            PlanResolution::Later(wait) => Ok(RunResult::Yield(wait)),
            PlanResolution::Never(was, end, detail) => {
                let conclusion = RunEnd {
                    end,
                    detail: *detail,
                    was: Some(*was),
                    result,
                };
                self.conclude(&run, conclusion).await?;
                Ok(RunResult::Finished)
            }
        }
    }

    /// Runs an operation of an instance whose plan is known.
    async fn run_resolved(
        &self,
        run: Arc<Run>,
        verb: Verb,
        fresh: LoadedOperation<Instance>,
    ) -> Result<RunResult, Lost> {
        let lane = run.operation().row.lane.clone();
        let StartedOperation {
            was,
            request,
            result,
        } = fresh;
        let Some(instance_data) = was.state.data() else {
            return self.end_orphaned(&run).await;
        };
        let steps: Steps = self.0.records.progress_of_run(&run).await?;
        match verb {
            Verb::Provision if was.state.pins().first() != Some(&run.id()) => {
                return self.end_orphaned(&run).await;
            }
            Verb::Update if self.has_busy_bindings(&run, &lane).await? => {
                if run.cancelled().is_cancelled() {
                    return self.fail(&run, (was, result), stopped()).await;
                }
                return Ok(RunResult::Yield(cascade::LOOK_AGAIN));
            }
            Verb::Deprovision => match self.cascade(&run, &lane, steps.clone(), &request).await? {
                cascade::Cascade::Clear => {}
                cascade::Cascade::Waiting if run.cancelled().is_cancelled() => {
                    return self.fail(&run, (was, result), stopped()).await;
                }
                cascade::Cascade::Waiting => return Ok(RunResult::Yield(cascade::LOOK_AGAIN)),
                cascade::Cascade::Stuck(detail) => {
                    return self.fail(&run, (was, result), detail).await;
                }
            },
            Verb::Provision | Verb::Update | Verb::Bind | Verb::Unbind => {}
        }
        let target = match &was.state {
            Instance::Updating { change, .. } => Cow::Owned(instance_data.spec.changed_by(change)),
            _ => Cow::Borrowed(&instance_data.spec),
        };
        let current = &instance_data.spec;
        let facts = |plan: &OfferedPlan| instance_input(&lane, plan, current, &target, &request);
        let job = self.job(&run, verb, &target.plan, facts, steps).await?;
        match hook::instance(&self.0, &job, &run, verb, &was.state).await? {
            HookOutcome::FailedUpdate(wait) => Ok(RunResult::Retry(wait)),
            HookOutcome::Ended(end, detail) => {
                let was = Some(was);
                let conclusion = RunEnd {
                    end,
                    detail,
                    was,
                    result,
                };
                self.conclude(&run, conclusion).await?;
                Ok(RunResult::Finished)
            }
        }
    }

    /// Ends an operation that cannot run, before its hook is called.
    async fn fail(
        &self,
        run: &Run,
        fresh: (
            LoadedDocument<Instance>,
            Option<ResultSender<Instance, Detail>>,
        ),
        detail: Detail,
    ) -> Result<RunResult, Lost> {
        let (was, result) = fresh;
        let conclusion = RunEnd {
            was: Some(was),
            result,
            ..failed(detail)
        };
        self.conclude(run, conclusion).await?;
        Ok(RunResult::Finished)
    }

    async fn run_binding(
        &self,
        run: Arc<Run>,
        verb: Verb,
        fresh: LoadedOperation<Binding>,
    ) -> Result<RunResult, Lost> {
        let records = &self.0.records;
        let lane = run.operation().row.lane.clone();
        let instance_id = instance_id(&lane);
        let StartedOperation {
            was,
            request,
            result,
        } = fresh;
        let above_key = records.instance_key(&instance_id);
        let above = records.load_for_run::<Instance>(&run, &above_key).await?;
        let (Some(binding_data), Some(instance_data)) =
            (was.state.data().cloned(), above.state.data().cloned())
        else {
            return self.end_orphaned(&run).await;
        };
        let steps: Steps = self.0.records.progress_of_run(&run).await?;
        let facts = |plan: &OfferedPlan| HookInput {
            binding_id: BindingId::try_from(lane.id(1)).ok(),
            instance_id,
            plan: plan.pinned.clone(),
            parameters: binding_data.spec.parameters.clone(),
            instance_parameters: instance_data.spec.parameters.clone(),
            instance_context: instance_data.spec.context.clone(),
            context: binding_data.spec.context.clone(),
            bind_resource: binding_data.spec.bind_resource.clone(),
            app_guid: binding_data.spec.app_guid.clone(),
            identity: request.identity.clone(),
            request_identity: request.request_identity.clone(),
            binding_state: binding_data.state.clone(),
        };
        let job = self
            .job(&run, verb, &instance_data.spec.plan, facts, steps)
            .await?;
        match hook::binding(
            &self.0,
            &job,
            &run,
            verb,
            &binding_data,
            instance_data.state,
        )
        .await?
        {
            HookOutcome::FailedUpdate(wait) => Ok(RunResult::Retry(wait)),
            HookOutcome::Ended(end, detail) => {
                let was = Some(was);
                let conclusion = RunEnd {
                    end,
                    detail,
                    was,
                    result,
                };
                self.conclude(&run, conclusion).await?;
                Ok(RunResult::Finished)
            }
        }
    }

    async fn job(
        &self,
        run: &Arc<Run>,
        verb: Verb,
        digest: &str,
        facts: impl FnOnce(&OfferedPlan) -> HookInput,
        steps: Steps,
    ) -> Result<HookCall, Lost> {
        let (plan, service) = loop {
            match self.0.served(digest).await {
                Ok(found) => break found,
                Err(error) => {
                    let cause = sutler_journal::StoreError::caused("no plan to work with", error);
                    run.wait_for_store(&cause, Duration::from_secs(1)).await?;
                }
            }
        };
        let policy = self.0.policy(verb, &plan.pinned);
        let lane = run.operation().row.lane.clone();
        let retry_after = policy.retry_after;
        let cx = Cx::new(
            facts(&plan),
            lane,
            run.clone(),
            self.0.records.clone(),
            steps,
            retry_after,
        );
        Ok(HookCall {
            cx,
            plan,
            service,
            policy,
        })
    }

    /// The resource and the request: from the in-flight cache, else from the store.
    async fn load_operation<S: Resource>(
        &self,
        run: &Run,
        lane: &Key,
    ) -> Result<LoadedOperation<S>, Lost> {
        if let Some(started) = self.0.inflight.remove(run.id()) {
            return Ok(started);
        }
        let records = &self.0.records;
        Ok(StartedOperation {
            was: records.load_for_run(run, lane).await?,
            request: records.request_of_run(run).await?,
            result: None,
        })
    }
}

/// End of an operation that was cancelled while it waited for bindings; no hook was called.
fn stopped() -> Detail {
    let message = "The operation was stopped while it waited for service bindings.";
    Detail {
        description: Some(message.to_owned()),
        ..Detail::default()
    }
}

fn failed<S: EndedResource>(detail: Detail) -> RunEnd<S, Detail> {
    RunEnd {
        end: End::Failed,
        detail,
        was: None,
        result: None,
    }
}

/// Input of an instance's hook. `target`: the spec that the operation leads to.
fn instance_input(
    lane: &Key,
    plan: &OfferedPlan,
    current: &InstanceSpec,
    target: &InstanceSpec,
    request: &Request,
) -> HookInput {
    HookInput {
        instance_id: instance_id(lane),
        binding_id: None,
        plan: plan.pinned.clone(),
        parameters: target.parameters.clone(),
        instance_parameters: current.parameters.clone(),
        instance_context: current.context.clone(),
        context: target.context.clone(),
        bind_resource: None,
        app_guid: None,
        identity: request.identity.clone(),
        request_identity: request.request_identity.clone(),
        binding_state: None,
    }
}

pub(super) fn instance_id(lane: &Key) -> InstanceId {
    InstanceId::try_from(lane.id(0)).expect("a lane's first id was an InstanceId")
}

/// Outcome of an error of a hook, and its description.
pub(super) fn classify_hook_error<T>(
    error: Error,
    policy: &Policy,
    run: &Run,
) -> Result<HookOutcome<T>, Lost> {
    let row = &run.operation().row;
    if error.kind == ErrorKind::Lost {
        return Err(Lost);
    }
    tracing::warn!(operation.id = %row.id, verb = %row.verb, attempt = row.attempt, ?error, "a hook did not succeed");
    let stopping = run.cancelled().is_cancelled();
    if error.kind == ErrorKind::Transient && row.attempt < policy.attempts_max && !stopping {
        let factor = 2u32.saturating_pow(row.attempt - 1);
        return Ok(HookOutcome::FailedUpdate(
            policy.backoff.saturating_mul(factor).min(BACKOFF_MAX),
        ));
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
    let end = if refused.is_some() {
        End::Refused
    } else {
        End::Failed
    };
    Ok(HookOutcome::Ended(end, detail))
}
