//! The hooks of the simulated brokers: a few steps each, with pauses, memos, progress, saved state and failures.
//! Hooks record their effects in a model of the external system (`external_system.rs`).

use crate::external_system::{ExecutionGuard, ExternalSystem, HookCaller, ResourceName};
use crate::history::History;
use crate::scenario::Scenario;
use crate::seeded_sources::SharedRng;
use crate::store_link::StoreLink;
use async_trait::async_trait;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use sutler_broker::{
    AuthorState, Bound, Cx, Error, Policy, Provisioned, Result, UntypedService, Update, Updated,
};
use sutler_osb::{OperationKind, Parameters, PinnedPlan};

/// Name of the instance whose hook ends its process; it sorts after the other instances.
pub(crate) const CRASHING_INSTANCE: &str = "poison";

/// Hooks of one process.
pub(crate) struct SimulatedService {
    pub process: String,
    pub external: Arc<ExternalSystem>,
    pub choices: SharedRng,
    pub history: Arc<History>,
    pub scenario: Arc<Scenario>,
    pub link: Arc<StoreLink>,
    /// Set while hooks may fail.
    pub hooks_may_fail: Arc<AtomicBool>,
}

/// Effect of a hook on the external system.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    Make,
    Remove,
    Nothing,
}

impl SimulatedService {
    fn lane(cx: &Cx) -> ResourceName {
        let instance = cx.instance_id().as_str();
        match cx.binding_id() {
            Some(binding) => ResourceName::binding(instance, binding.as_str()),
            None => ResourceName::instance(instance),
        }
    }

    async fn enter(&self, cx: &Cx, lane: &ResourceName, verb: &'static str) -> ExecutionGuard {
        self.wait_if_dead().await;
        let caller = HookCaller {
            lane: lane.clone(),
            verb,
            operation: cx.operation_id().to_string(),
            fence: cx.fence(),
            process: self.process.clone(),
            has_read_end: self.link.has_read_end(cx.operation_id()),
        };
        self.external.enter(caller).await
    }

    /// Never returns in a process that is dead.
    async fn wait_if_dead(&self) {
        if self.link.is_dead() {
            std::future::pending::<()>().await;
        }
    }

    async fn pause(&self, longest: Duration) {
        tokio::time::sleep(self.choices.between(Duration::from_millis(1), longest)).await;
        self.wait_if_dead().await;
    }

    async fn work(&self, cx: &Cx, verb: &'static str, effect: Effect) -> Result<()> {
        let lane = Self::lane(cx);
        let _running = self.enter(cx, &lane, verb).await;
        let failure = self.failure();
        // A hook that fails to remove a thing leaves it.
        let effect = match failure {
            Some(_) if effect == Effect::Remove => Effect::Nothing,
            _ => effect,
        };
        let steps = 1 + self.choices.below(3);
        let acts_at = self.choices.below(steps);
        let longest = self.scenario.hook / 4;
        for step in 0..steps {
            self.pause(longest).await;
            if lane.instance == CRASHING_INSTANCE && verb == "provision" && self.hooks_may_fail() {
                self.end_process(cx).await?;
            }
            if step == acts_at {
                match effect {
                    Effect::Make => self.external.make(&lane),
                    Effect::Remove => self.external.remove(&lane),
                    Effect::Nothing => {}
                }
            }
            match self.choices.below(6) {
                0 => cx.progress(format!("step {step}")).await?,
                1 => {
                    let name = format!("{verb}-{step}");
                    cx.step(&name, || async { Ok(step) }).await?;
                }
                2 if verb != "update" => cx.save_state(&json!({ "step": step })).await?,
                _ => {}
            }
            self.wait_if_dead().await;
        }
        match failure {
            Some(error) => {
                self.history
                    .record("failure", || format!("{verb} {lane} fails"));
                Err(error)
            }
            None => Ok(()),
        }
    }

    fn hooks_may_fail(&self) -> bool {
        self.hooks_may_fail.load(Ordering::Relaxed)
    }

    /// Error of a hook that is to fail.
    fn failure(&self) -> Option<Error> {
        let fails = self.hooks_may_fail() && self.choices.percent(self.scenario.failing_hooks);
        fails.then(|| match self.choices.below(2) {
            0 => Error::failed("It failed."),
            _ => Error::transient("It failed for now."),
        })
    }

    /// Reports progress and dies.
    async fn end_process(&self, cx: &Cx) -> Result<()> {
        cx.progress("about to end").await?;
        self.wait_if_dead().await;
        self.history.record("ended by hook", || {
            format!("{} is ended by its hook", self.process)
        });
        self.external
            .process_ended_by(&cx.operation_id().to_string());
        self.link.die();
        self.external.kill(&self.process);
        std::future::pending().await
    }
}

#[async_trait]
impl UntypedService for SimulatedService {
    async fn provision(&self, cx: &Cx, _: Parameters) -> Result<Provisioned<AuthorState>> {
        self.work(cx, "provision", Effect::Make).await?;
        Ok(Provisioned::new(AuthorState(json!({ "made": true }))))
    }

    async fn deprovision(&self, cx: &Cx, _: Option<AuthorState>) -> Result<()> {
        self.work(cx, "deprovision", Effect::Remove).await
    }

    fn updates(&self) -> bool {
        true
    }

    async fn update(
        &self,
        cx: &Cx,
        _: Option<AuthorState>,
        _: Update<Parameters>,
    ) -> Result<Updated<AuthorState>> {
        self.work(cx, "update", Effect::Nothing).await?;
        Ok(Provisioned::new(AuthorState(json!({ "updated": true }))))
    }

    async fn bind(&self, cx: &Cx, _: Option<AuthorState>) -> Result<Bound> {
        self.work(cx, "bind", Effect::Make).await?;
        Ok(Bound::credentials(json!({ "user": "u" })))
    }

    async fn unbind(&self, cx: &Cx, _: Option<AuthorState>) -> Result<()> {
        self.work(cx, "unbind", Effect::Remove).await
    }

    fn policy(&self, _: OperationKind, _: &PinnedPlan) -> Policy {
        Policy::default().within(self.scenario.deadline)
    }
}
