//! Runs accepted operations: builds the context, calls the hook, commits its result.
//!
//! It is called by the journal's engine under a claim and may be called again after a crash. Lane and verb of an
//! operation are not sealed, so a hook is called only if the document of the lane names the operation for that verb. The
//! result and the resource's next state are one commit, decided by `lifecycle/`. Cascades are in
//! `executor/cascade.rs`, calling the hooks in `executor/hook.rs`, scheduled work in `cleanup.rs`.

mod await_plan;
mod cascade;
mod hook;
mod run_end;

use crate::cleanup;
use crate::hook_context::{BindingInput, Cx, HookInput};
use crate::lifecycle::binding::{self, Binding};
use crate::lifecycle::instance::{self, Instance};
use crate::lifecycle::{End, Verb};
use crate::operation_log;
use crate::realm_context::RealmContext;
use crate::resources::{BINDING, Detail, INSTANCE, Request, ResourceKeys as _, Steps};
use async_trait::async_trait;
use bytes::Bytes;
use hook::HookCall;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use sutler_journal::{Executor, Fence, Key, Lost, Run, RunResult};
use sutler_osb::{BindingId, InstanceId};
use sutler_records::{EndedResource, PeriodicTasks, Resource, RunEnd, StartedOperation, TASK_VERB};
use tracing::Instrument as _;

/// An operation of the broker that starts.
type LoadedOperation<S> = StartedOperation<S, Arc<Request>, Detail>;

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
                executor.run_operation(run).await
            }
            None => Ok(RunResult::Yield(STRANGER_AGAIN)),
        }
    }

    fn put_back(&self, run: &Run) -> Option<Bytes> {
        let records = &self.of(run)?.0.records;
        // Scheduled work has no deadline.
        Verb::of(&run.operation().row.verb)?;
        let mut steps: Steps = records.open_progress(run.operation()).ok()?;
        steps
            .put_back(run.fence())
            .then(|| records.seal_progress(run.id(), &steps))
    }

    async fn give_up(&self, run: Arc<Run>) -> Result<RunResult, Lost> {
        if let Some(tasks) = self.periodic_tasks(&run) {
            return tasks.give_up(run).await;
        }
        match self.of(&run) {
            Some(executor) => {
                executor.fail_interrupted(run).await?;
                Ok(RunResult::Finished)
            }
            None => Ok(RunResult::Yield(STRANGER_AGAIN)),
        }
    }
}

/// Outcome of one run of an operation.
pub(super) enum RunOutcome<T> {
    /// The operation ended.
    Ended(End<T>, Detail),
    /// The hook failed and is tried again, with this progress.
    Retry(Duration, Option<Bytes>),
    /// The operation waits for something else and is run again.
    Yield(Duration),
    /// The resource does not know the operation, or not for this verb.
    Orphaned,
}

impl BrokerExecutor {
    async fn run_operation(&self, run: Arc<Run>) -> Result<RunResult, Lost> {
        let row = &run.operation().row;
        match Verb::of(&row.verb) {
            Some(verb) if row.lane.kind() == BINDING.as_str() => {
                let operation = self.load_operation::<Binding>(&run).await?;
                let span = operation_log::operation_span(&run, Some(&operation.request));
                let running = async {
                    let outcome = self.run_binding(&run, verb, &operation).await?;
                    self.finish(&run, operation, outcome).await
                };
                running.instrument(span).await
            }
            Some(verb) if row.lane.kind() == INSTANCE.as_str() => {
                let mut operation = self.load_operation::<Instance>(&run).await?;
                let span = operation_log::operation_span(&run, Some(&operation.request));
                let running = async {
                    let outcome = self.run_instance(&run, verb, &mut operation).await?;
                    self.finish(&run, operation, outcome).await
                };
                running.instrument(span).await
            }
            Some(_) | None => cleanup::run(&self.0, &run).await,
        }
    }

    /// Ends an operation that was taken over too often.
    async fn fail_interrupted(&self, run: Arc<Run>) -> Result<(), Lost> {
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
    /// The resource and the request: from the in-flight cache, else from the store.
    async fn load_operation<S: Resource>(&self, run: &Run) -> Result<LoadedOperation<S>, Lost> {
        let started = self.0.inflight.remove(run.id());
        // After a later claim the resource may have changed since its operation was accepted.
        if let Some(started) = started.filter(|_| run.fence() == Fence(1)) {
            return Ok(started);
        }
        let records = &self.0.records;
        Ok(StartedOperation {
            was: records.load_for_run(run, &run.operation().row.lane).await?,
            request: records.request_of_run(run).await?,
            result: None,
        })
    }

    async fn run_instance(
        &self,
        run: &Arc<Run>,
        verb: Verb,
        operation: &mut LoadedOperation<Instance>,
    ) -> Result<RunOutcome<instance::HookOutput>, Lost> {
        if let Some(outcome) = self
            .resolve_plan(run, &mut operation.was, &operation.request)
            .await?
        {
            return Ok(outcome);
        }
        let at = &operation.was.state;
        let Some(instance_data) = at.data() else {
            return Ok(RunOutcome::Orphaned);
        };
        if !at.is_executing(verb, run.id()) {
            return Ok(RunOutcome::Orphaned);
        }
        let request = &operation.request;
        let steps: Steps = self.0.records.progress_of_run(run).await?;
        if let Some(outcome) = self.await_bindings(run, verb, &steps, request).await? {
            return Ok(outcome);
        }
        let target = match at {
            Instance::Updating { change, .. } => Arc::new(instance_data.spec.changed_by(change)),
            _ => instance_data.spec.clone(),
        };
        let input = HookInput {
            instance_id: instance_id(&run.operation().row.lane),
            instance: instance_data.spec.clone(),
            target,
            binding: None,
            request: request.clone(),
        };
        let call = self.hook_call(run, verb, input, steps).await?;
        call.run_instance_hook(at).await
    }

    async fn run_binding(
        &self,
        run: &Arc<Run>,
        verb: Verb,
        operation: &LoadedOperation<Binding>,
    ) -> Result<RunOutcome<binding::HookOutput>, Lost> {
        let records = &self.0.records;
        let lane = &run.operation().row.lane;
        if !operation.was.state.is_executing(verb, run.id()) {
            return Ok(RunOutcome::Orphaned);
        }
        let instance_id = instance_id(lane);
        let above_key = records.instance_key(&instance_id);
        let above = records.load_for_run::<Instance>(run, &above_key).await?;
        let Some(binding_data) = operation.was.state.data() else {
            return Ok(RunOutcome::Orphaned);
        };
        let Some(instance_data) = above.state.data() else {
            return Ok(without_instance(verb));
        };
        let steps: Steps = records.progress_of_run(run).await?;
        let input = HookInput {
            instance_id,
            instance: instance_data.spec.clone(),
            target: instance_data.spec.clone(),
            binding: Some(BindingInput {
                id: BindingId::try_from(lane.id(1)).ok(),
                spec: binding_data.spec.clone(),
                state: binding_data.state.clone(),
            }),
            request: operation.request.clone(),
        };
        let call = self.hook_call(run, verb, input, steps).await?;
        let state = instance_data.state.clone();
        call.run_binding_hook(binding_data, state).await
    }

    /// Finds plan and service of an operation and builds the context of its hook.
    async fn hook_call<'a>(
        &'a self,
        run: &'a Arc<Run>,
        verb: Verb,
        input: HookInput,
        steps: Steps,
    ) -> Result<HookCall<'a>, Lost> {
        let (plan, service) = self.0.served_for_run(run, &input.target.plan).await?;
        let policy = self.0.policy(verb, &plan.pinned);
        let records = self.0.records.clone();
        let pinned = plan.pinned.clone();
        let cx = Cx::new(
            input,
            pinned,
            run.clone(),
            records,
            steps,
            policy.retry_after,
        );
        Ok(HookCall {
            realm_context: &self.0,
            run,
            verb,
            cx,
            plan,
            service,
            policy,
            called: OnceLock::new(),
            first_call: OnceLock::new(),
        })
    }

    /// Commits the end of an operation, or tells the engine when to run it again.
    async fn finish<S>(
        &self,
        run: &Run,
        operation: LoadedOperation<S>,
        outcome: RunOutcome<S::Output>,
    ) -> Result<RunResult, Lost>
    where
        S: EndedResource<Verb = Verb> + Sync,
    {
        match outcome {
            RunOutcome::Ended(end, detail) => {
                let StartedOperation { was, result, .. } = operation;
                let was = Some(was);
                let run_end = RunEnd {
                    end,
                    detail,
                    was,
                    result,
                };
                self.conclude(run, run_end).await?;
                Ok(RunResult::Finished)
            }
            RunOutcome::Retry(wait, progress) => Ok(RunResult::Retry(wait, progress)),
            RunOutcome::Yield(wait) => Ok(RunResult::Yield(wait)),
            RunOutcome::Orphaned => self.end_orphaned(run).await,
        }
    }
}

/// End of an operation of a binding whose instance an operator purged: nothing is left that a hook could work with.
fn without_instance(verb: Verb) -> RunOutcome<binding::HookOutput> {
    if verb == Verb::Unbind {
        let removed = binding::HookOutput::default();
        return RunOutcome::Ended(End::Succeeded(removed), Detail::default());
    }
    let message = "The service instance was purged by the operator.";
    let detail = Detail {
        description: Some(message.to_owned()),
        ..Detail::default()
    };
    RunOutcome::Ended(End::Failed, detail)
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

pub(super) fn instance_id(lane: &Key) -> InstanceId {
    InstanceId::try_from(lane.id(0)).expect("a lane's first id was an InstanceId")
}
