//! A service that does what a test tells it: waits, fails, panics, remembers every call.
//!
//! Out of the box every hook succeeds at once. `kit.rs` registers one script for all offerings.

use super::fixture::{ASYNC, DB, SYNC};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use sutler_broker::{
    Asked, AuthorState, Bound, Cx, Error, InstanceSpec, Policy, Predecessor, Provisioned, Refusal,
    Result, UntypedService, Update, Updated,
};
use sutler_osb::{
    BindingId, FetchBindingResponse, FetchInstanceResponse, InstanceId, InstanceMetadata,
    OperationKind, Parameters, PinnedPlan,
};
use tokio::sync::{Semaphore, watch};

/// Says how a hook ends, each time it is called.
type Outcome = Arc<dyn Fn() -> Result<()> + Send + Sync>;
/// Says what a bind gives, by the binding's id.
type Giving = Arc<dyn Fn(&str) -> Bound + Send + Sync>;
/// Changes what a fetch answers.
type Fetching<T> = Arc<dyn Fn(T) -> Result<T> + Send + Sync>;
/// Refuses a request before anything is written.
type Checking = Arc<dyn Fn(&Asked<'_>) -> std::result::Result<(), Refusal> + Send + Sync>;

/// One call of a hook, as it was seen by the hook.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub verb: OperationKind,
    pub instance: String,
    pub binding: Option<String>,
    pub plan: String,
    pub parameters: Value,
    pub context: Value,
    /// The author's state of the instance, where there was one.
    pub state: Option<Value>,
    pub binding_state: Option<Value>,
    pub app: Option<String>,
    pub route: Option<String>,
    /// The platform's name and the user's object of the originating identity.
    pub identity: Option<Value>,
    pub request_identity: Option<String>,
    /// Of an update: what was sent, the plan before, the maintenance version, context only.
    pub update: Option<Value>,
    /// Of a rotation: the binding that is succeeded, and its state.
    pub predecessor: Option<(String, Option<Value>)>,
}

/// A place where hooks wait until the test lets them go.
#[derive(Clone)]
pub(crate) struct Gate {
    open: Arc<Semaphore>,
    waiting: watch::Sender<usize>,
    stubborn: bool,
}

impl Gate {
    fn new(stubborn: bool) -> Self {
        Self {
            open: Arc::new(Semaphore::new(0)),
            waiting: watch::Sender::new(0),
            stubborn,
        }
    }

    /// Lets everybody through from now on.
    pub(crate) fn open(&self) {
        self.open.add_permits(1_000_000);
    }

    /// Waits until this many hooks have come to the gate.
    pub(crate) async fn reached_by(&self, hooks: usize) {
        let mut waiting = self.waiting.subscribe();
        let reached = waiting.wait_for(|count| *count >= hooks);
        let reached = tokio::time::timeout(super::PATIENCE, reached).await;
        reached
            .expect("the hook was not called in time")
            .expect("the gate is there");
    }

    /// Waits until a hook has come to the gate.
    pub(crate) async fn reached(&self) {
        self.reached_by(1).await;
    }

    async fn pass(&self, cx: &Cx) -> Result<()> {
        self.waiting.send_modify(|count| *count += 1);
        tokio::select! {
            permit = self.open.acquire() => {
                permit.expect("the gate is never closed").forget();
                Ok(())
            }
            () = cx.cancellation().cancelled(), if !self.stubborn => Err(Error::failed("Stopped.")),
        }
    }
}

#[derive(Default)]
struct Lines {
    calls: Vec<Call>,
    gates: HashMap<OperationKind, Gate>,
    outcomes: HashMap<OperationKind, Outcome>,
    policies: HashMap<OperationKind, Policy>,
    giving: Option<Giving>,
    labels: Option<InstanceMetadata>,
    fetching_instance: Option<Fetching<FetchInstanceResponse>>,
    fetching_binding: Option<Fetching<FetchBindingResponse>>,
    checking: Option<Checking>,
    without_updates: bool,
}

/// The service double.
#[derive(Default)]
pub(crate) struct Script(Mutex<Lines>);

impl Script {
    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every later call of a hook waits at a gate; it stops when it is cancelled.
    pub(crate) fn hold(&self, verb: OperationKind) -> Gate {
        self.gate(verb, Gate::new(false))
    }

    /// Every later call of a hook waits at a gate, whoever may want it to stop.
    pub(crate) fn hold_stubbornly(&self, verb: OperationKind) -> Gate {
        self.gate(verb, Gate::new(true))
    }

    fn gate(&self, verb: OperationKind, gate: Gate) -> Gate {
        self.lines().gates.insert(verb, gate.clone());
        gate
    }

    /// Opens every gate.
    pub(crate) fn open_all(&self) {
        let gates = std::mem::take(&mut self.lines().gates);
        gates.values().for_each(Gate::open);
    }

    /// Later calls of a hook end like this; it may panic, too.
    pub(crate) fn ends(
        &self,
        verb: OperationKind,
        how: impl Fn() -> Result<()> + Send + Sync + 'static,
    ) {
        self.lines().outcomes.insert(verb, Arc::new(how));
    }

    /// Later calls of a hook fail with a sentence.
    pub(crate) fn fails(&self, verb: OperationKind, sentence: &'static str) {
        self.ends(verb, move || Err(Error::failed(sentence)));
    }

    /// Later calls of a hook succeed again.
    pub(crate) fn succeeds(&self, verb: OperationKind) {
        self.lines().outcomes.remove(&verb);
    }

    /// A verb runs like this, whatever the plan.
    pub(crate) fn policy(&self, verb: OperationKind, policy: Policy) {
        self.lines().policies.insert(verb, policy);
    }

    /// Binds give this, by the binding's id.
    pub(crate) fn gives(&self, what: impl Fn(&str) -> Bound + Send + Sync + 'static) {
        self.lines().giving = Some(Arc::new(what));
    }

    /// Provisions and updates say this to the platform.
    pub(crate) fn labels(&self, metadata: InstanceMetadata) {
        self.lines().labels = Some(metadata);
    }

    /// Fetches of instances go through this.
    pub(crate) fn fetches(
        &self,
        how: impl Fn(FetchInstanceResponse) -> Result<FetchInstanceResponse> + Send + Sync + 'static,
    ) {
        self.lines().fetching_instance = Some(Arc::new(how));
    }

    /// Fetches of bindings go through this.
    pub(crate) fn fetches_bindings(
        &self,
        how: impl Fn(FetchBindingResponse) -> Result<FetchBindingResponse> + Send + Sync + 'static,
    ) {
        self.lines().fetching_binding = Some(Arc::new(how));
    }

    /// Requests are checked by this before anything is written.
    pub(crate) fn checks(
        &self,
        how: impl Fn(&Asked<'_>) -> std::result::Result<(), Refusal> + Send + Sync + 'static,
    ) {
        self.lines().checking = Some(Arc::new(how));
    }

    /// The service says that it knows no updates.
    pub(crate) fn knows_no_updates(&self) {
        self.lines().without_updates = true;
    }

    /// The calls of one hook, in order.
    pub(crate) fn calls(&self, verb: OperationKind) -> Vec<Call> {
        let lines = self.lines();
        lines
            .calls
            .iter()
            .filter(|call| call.verb == verb)
            .cloned()
            .collect()
    }

    /// The only call of one hook.
    pub(crate) fn only_call(&self, verb: OperationKind) -> Call {
        let mut calls = self.calls(verb);
        assert_eq!(calls.len(), 1, "{verb:?} was called {} times", calls.len());
        calls.remove(0)
    }

    /// Writes the call down, waits at the gate, and ends as told.
    async fn play(&self, cx: &Cx, call: Call) -> Result<()> {
        let verb = call.verb;
        let (gate, outcome) = {
            let mut lines = self.lines();
            lines.calls.push(call);
            (
                lines.gates.get(&verb).cloned(),
                lines.outcomes.get(&verb).cloned(),
            )
        };
        if let Some(gate) = gate {
            gate.pass(cx).await?;
        }
        outcome.map_or(Ok(()), |outcome| outcome())
    }

    async fn bound(&self, cx: &Cx, call: Call) -> Result<Bound> {
        let id = call.binding.clone().unwrap_or_default();
        self.play(cx, call).await?;
        let giving = self.lines().giving.clone();
        let bound = giving.map_or_else(
            || {
                Bound::credentials(
                    json!({ "user": id, "password": cx.idempotency_key("password") }),
                )
            },
            |giving| giving(&id),
        );
        bound.state(&json!({ "bound": id }))
    }

    fn made(&self, instance: &InstanceId, verb: OperationKind) -> Provisioned<AuthorState> {
        let state = json!({ "made": instance.as_str(), "by": verb.word() });
        let made = Provisioned::new(AuthorState(state));
        match self.lines().labels.clone() {
            Some(labels) => made.metadata(labels),
            None => made,
        }
    }
}

fn call(verb: OperationKind, cx: &Cx, state: Option<AuthorState>) -> Call {
    let identity = cx.originating_identity().map(|it| json!(it));
    Call {
        verb,
        instance: cx.instance_id().as_str().to_owned(),
        binding: cx.binding_id().map(|id| id.as_str().to_owned()),
        plan: cx.plan().plan_id.as_str().to_owned(),
        parameters: Value::Object(cx.parameters().0.clone()),
        context: cx
            .context()
            .map_or(Value::Null, |it| Value::Object(it.0.clone())),
        state: state.map(|it| it.0),
        binding_state: cx.binding_state().ok().flatten(),
        app: cx.app_guid().map(str::to_owned),
        route: cx.bind_resource().and_then(|it| it.route.clone()),
        identity,
        request_identity: cx.request_identity().map(|it| it.as_str().to_owned()),
        update: None,
        predecessor: None,
    }
}

#[async_trait]
impl UntypedService for Script {
    async fn provision(&self, cx: &Cx, _: Parameters) -> Result<Provisioned<AuthorState>> {
        self.play(cx, call(OperationKind::Provision, cx, None))
            .await?;
        Ok(self.made(cx.instance_id(), OperationKind::Provision))
    }

    async fn deprovision(&self, cx: &Cx, state: Option<AuthorState>) -> Result<()> {
        self.play(cx, call(OperationKind::Deprovision, cx, state))
            .await
    }

    fn updates(&self) -> bool {
        !self.lines().without_updates
    }

    async fn update(
        &self,
        cx: &Cx,
        state: Option<AuthorState>,
        update: Update<Parameters>,
    ) -> Result<Updated<AuthorState>> {
        let mut call = call(OperationKind::Update, cx, state);
        call.update = Some(json!({
            "params": update.params, "sent": update.sent,
            "previous_plan": update.previous_plan.plan_id,
            "maintenance_version": update.maintenance_version,
            "previous_maintenance_version": update.previous_maintenance_version,
            "upgrades": update.upgrades(),
            "runs_with": cx.plan().maintenance_version(),
            "context_only": update.context_only,
        }));
        self.play(cx, call).await?;
        Ok(self.made(cx.instance_id(), OperationKind::Update))
    }

    async fn bind(&self, cx: &Cx, state: Option<AuthorState>) -> Result<Bound> {
        self.bound(cx, call(OperationKind::Bind, cx, state)).await
    }

    async fn rotate(
        &self,
        cx: &Cx,
        state: Option<AuthorState>,
        from: Predecessor,
    ) -> Result<Bound> {
        let mut call = call(OperationKind::Bind, cx, state);
        call.predecessor = Some((
            from.binding_id.as_str().to_owned(),
            from.state.map(|it| it.0),
        ));
        self.bound(cx, call).await
    }

    async fn unbind(&self, cx: &Cx, state: Option<AuthorState>) -> Result<()> {
        self.play(cx, call(OperationKind::Unbind, cx, state)).await
    }

    fn dashboard_url(&self, instance: &InstanceId, spec: &InstanceSpec) -> Option<String> {
        let (service, plan) = (spec.service_id.as_str(), spec.plan_id.as_str());
        (service == DB).then(|| format!("https://dashboard/{}/{plan}", instance.as_str()))
    }

    fn policy(&self, verb: OperationKind, plan: &PinnedPlan) -> Policy {
        if let Some(policy) = self.lines().policies.get(&verb) {
            return policy.clone();
        }
        match plan.plan_id.as_str() {
            SYNC => Policy::default().sync(),
            ASYNC => Policy::default().required_async(),
            _ => Policy::default(),
        }
    }

    fn check(&self, asked: &Asked<'_>) -> std::result::Result<(), Refusal> {
        let checking = self.lines().checking.clone();
        checking.map_or(Ok(()), |check| check(asked))
    }

    async fn fetch_instance(
        &self,
        _: &InstanceId,
        _: Option<AuthorState>,
        stored: FetchInstanceResponse,
    ) -> Result<FetchInstanceResponse> {
        let fetching = self.lines().fetching_instance.clone();
        fetching.map_or(Ok(stored.clone()), |fetch| fetch(stored))
    }

    async fn fetch_binding(
        &self,
        _: &InstanceId,
        _: &BindingId,
        stored: FetchBindingResponse,
    ) -> Result<FetchBindingResponse> {
        let fetching = self.lines().fetching_binding.clone();
        fetching.map_or(Ok(stored.clone()), |fetch| fetch(stored))
    }
}
