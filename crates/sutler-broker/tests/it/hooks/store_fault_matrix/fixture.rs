//! A service whose effects on an external system are counted.

use crate::fixture::test_catalog::SMALL;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use sutler_broker::{
    Bound, Cx, Policy, Provisioned, Result, Service, Update, Updated, prelude::JsonSchema,
};
use sutler_osb::{OperationKind, PinnedPlan};

/// External system: resources by name, and the number of real runs of each step.
#[derive(Default)]
pub(super) struct ExternalSystem {
    things: Mutex<BTreeSet<String>>,
    runs: Mutex<BTreeMap<(String, String), u32>>,
}

impl ExternalSystem {
    pub(super) fn left(&self) -> Vec<String> {
        self.things.lock().unwrap().iter().cloned().collect()
    }

    /// Steps that ran more than once.
    pub(super) fn extra_runs(&self) -> Vec<(String, String)> {
        let runs = self.runs.lock().unwrap();
        let often = runs.iter().flat_map(|(step, runs)| {
            let extra = usize::try_from(*runs - 1).unwrap();
            std::iter::repeat_n(step.clone(), extra)
        });
        often.collect()
    }

    fn count(&self, cx: &Cx, step: &str) {
        let name = (cx.operation_id().to_string(), step.to_owned());
        *self.runs.lock().unwrap().entry(name).or_default() += 1;
    }

    fn make(&self, cx: &Cx, step: &str, thing: String) -> Result<String> {
        self.count(cx, step);
        self.things.lock().unwrap().insert(thing.clone());
        Ok(thing)
    }

    fn remove(&self, cx: &Cx, step: &str, begins: &str) -> Result<()> {
        self.count(cx, step);
        let mut things = self.things.lock().unwrap();
        things.retain(|thing| !thing.starts_with(begins));
        Ok(())
    }
}

/// Its parameters.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Size {
    #[serde(default)]
    size: u32,
}

/// State of an instance.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredState {
    disk: String,
    server: Option<String>,
    size: u32,
}

/// The service.
pub(super) struct CountingService(pub Arc<ExternalSystem>);

impl Service for CountingService {
    type Params = Size;
    type State = StoredState;
    const UPDATES: bool = true;

    async fn provision(&self, cx: &Cx, params: Size) -> Result<Provisioned<StoredState>> {
        let (world, id) = (&self.0, cx.instance_id().as_str());
        let make = |step: &'static str| async move { world.make(cx, step, format!("{id}/{step}")) };
        let disk = cx.step("disk", || make("disk")).await?;
        let mut state = StoredState {
            disk,
            server: None,
            size: params.size,
        };
        cx.save_state(&state).await?;
        cx.progress("half of it is there").await?;
        if params.size == 0 {
            // Slow enough to be deleted meanwhile; a late result still counts.
            tokio::select! {
                () = cx.cancellation().cancelled() => {}
                () = tokio::time::sleep(Duration::from_secs(600)) => {}
            }
        }
        state.server = Some(cx.step("server", || make("server")).await?);
        Ok(Provisioned::new(state))
    }

    async fn update(
        &self,
        cx: &Cx,
        mut state: StoredState,
        update: Update<Size>,
    ) -> Result<Updated<StoredState>> {
        let resize = || async { self.0.make(cx, "resize", state.disk.clone()) };
        cx.step("resize", resize).await?;
        state.size = update.params.size;
        Ok(Provisioned::new(state))
    }

    async fn deprovision(&self, cx: &Cx, state: Option<StoredState>) -> Result<()> {
        // The state saved before the disk was created is not enough to find it.
        let begins = state.map_or(format!("{}/", cx.instance_id().as_str()), |state| {
            state.disk.trim_end_matches("disk").to_owned()
        });
        let work = || async { self.0.remove(cx, "raze", &begins) };
        cx.step("raze", work).await
    }

    async fn bind(&self, cx: &Cx, state: &StoredState) -> Result<Bound> {
        let id = cx.binding_id().map_or("", |id| id.as_str());
        let user = format!("user of {}/{id}", cx.instance_id().as_str());
        let user = cx
            .step("user", || async { self.0.make(cx, "user", user) })
            .await?;
        let key = cx.idempotency_key("user");
        Bound::credentials(json!({ "key": key, "server": state.server })).state(&user)
    }

    async fn unbind(&self, cx: &Cx, _state: &StoredState) -> Result<()> {
        let user: String = cx.binding_state()?.unwrap_or_default();
        let work = || async { self.0.remove(cx, "evict", &user) };
        cx.step("evict", work).await
    }

    fn policy(&self, _verb: OperationKind, plan: &PinnedPlan) -> Policy {
        match plan.plan_id.as_str() {
            SMALL => Policy::default(),
            _ => Policy::default().sync(),
        }
    }
}
