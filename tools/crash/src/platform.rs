//! One platform: runs one instance through its life, survives the broker's deaths, and checks that the
//! broker keeps everything it acknowledged.
//!
//! A request without a response is repeated unchanged, as platforms do. After every restart the expected
//! state is checked (`platform/verify.rs`) before the life continues. Other tests have smaller platforms:
//! `kill_at_every_step` of the executable is blocking and checks only success, `store_fault_matrix` of the broker
//! stays in one process and has a paused clock.

mod verify;

use crate::expected_state::{AcknowledgedState, ExpectedState};
use crate::http_client::{HttpClient, HttpResponse, Lost};
use crate::violation::{CheckResult, Violation};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::timeout;

/// The offering of the victim.
pub const SERVICE: &str = "0c6f1f0e-2f7a-4a6a-8d41-3f0b6a1c0001";
/// Its plan.
pub const PLAN: &str = "0c6f1f0e-2f7a-4a6a-8d41-3f0b6a1c0002";
/// Longest wait for another victim after the connection broke.
const RESTART_WITHIN: Duration = Duration::from_secs(30);
/// Time limit of an operation while its victim lives: a longer one means a stuck lane.
const SETTLED_WITHIN: Duration = Duration::from_secs(20);
/// Maximum time for bytes of a dead victim to arrive.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(1);
const POLL_EVERY: Duration = Duration::from_millis(3);

/// Address of the current victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Increases with every start.
    pub generation: u64,
    /// Its address.
    pub address: SocketAddr,
}

/// Receives the address of the current victim.
pub type TargetReceiver = watch::Receiver<Option<Target>>;

/// With or without `accepts_incomplete`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestMode {
    /// The response is the result.
    Sync,
    /// 202, then polls.
    Async,
}

/// One change in a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlatformAction {
    /// PUT of the instance.
    Provision,
    /// PATCH to this size.
    Update(u32),
    /// PUT of a binding.
    Bind(&'static str),
    /// DELETE of a binding.
    Unbind(&'static str),
    /// DELETE of the instance, with the remaining bindings.
    Deprovision,
}

/// A whole life: one binding is deleted on its own, the other with its instance.
pub const SCRIPT: [(PlatformAction, RequestMode); 6] = [
    (PlatformAction::Provision, RequestMode::Async),
    (PlatformAction::Bind("own"), RequestMode::Sync),
    (PlatformAction::Update(7), RequestMode::Async),
    (PlatformAction::Bind("left"), RequestMode::Async),
    (PlatformAction::Unbind("own"), RequestMode::Sync),
    (PlatformAction::Deprovision, RequestMode::Async),
];

impl PlatformAction {
    /// Verb of the broker.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Provision => "provision",
            Self::Update(_) => "update",
            Self::Bind(_) => "bind",
            Self::Unbind(_) => "unbind",
            Self::Deprovision => "deprovision",
        }
    }

    fn deletes(self) -> bool {
        matches!(self, Self::Unbind(_) | Self::Deprovision)
    }

    /// The binding of the action; `None`: the instance itself.
    fn binding(self) -> Option<&'static str> {
        match self {
            Self::Bind(name) | Self::Unbind(name) => Some(name),
            Self::Provision | Self::Update(_) | Self::Deprovision => None,
        }
    }

    fn method(self) -> &'static str {
        match self {
            Self::Provision | Self::Bind(_) => "PUT",
            Self::Update(_) => "PATCH",
            Self::Unbind(_) | Self::Deprovision => "DELETE",
        }
    }
}

/// Why an action could not be completed.
pub(crate) enum Stop {
    /// The victim is dead.
    Dead,
    /// A guarantee was violated.
    Broken(Violation),
}

impl From<Violation> for Stop {
    fn from(violation: Violation) -> Self {
        Self::Broken(violation)
    }
}

/// A platform with one instance.
#[derive(Debug)]
pub struct Platform {
    home: TargetReceiver,
    generation: u64,
    client: HttpClient,
    /// The instance's id.
    pub instance: String,
    known: ExpectedState,
    bindings: BTreeMap<&'static str, ExpectedState>,
    size: u32,
    since: Instant,
    /// Operations that a 202 named, with their verbs.
    pub acknowledged: Vec<(String, &'static str)>,
    /// Requests sent, by verb.
    pub sent: BTreeMap<&'static str, u64>,
    /// Number of deaths of the victim.
    pub deaths: u64,
    /// Longest time from a restart to the end of an interrupted operation.
    pub recovery: Duration,
}

impl Platform {
    /// A platform that starts with the current victim.
    ///
    /// # Errors
    /// No victim serves in time.
    pub async fn new(mut home: TargetReceiver, instance: String) -> CheckResult<Self> {
        let target = next_target(&mut home, 0).await?;
        Ok(Self {
            home,
            generation: target.generation,
            client: HttpClient::to(target.address),
            instance,
            known: ExpectedState::default(),
            bindings: BTreeMap::new(),
            size: 1,
            since: Instant::now(),
            acknowledged: Vec::new(),
            sent: BTreeMap::new(),
            deaths: 0,
            recovery: Duration::ZERO,
        })
    }

    /// Makes one change, through any number of deaths, until it is acknowledged as finished.
    ///
    /// # Errors
    /// A guarantee was violated.
    pub async fn perform(&mut self, act: PlatformAction, mode: RequestMode) -> CheckResult<()> {
        self.expected_of(act).request_change(act.verb());
        if let PlatformAction::Update(size) = act {
            self.size = size;
        }
        let mut deaths = 0;
        self.since = Instant::now();
        loop {
            let place = format!("{} {} {mode:?}", act.verb(), self.instance);
            match self.try_perform(act, mode, deaths > 0).await {
                Ok(()) => break,
                Err(Stop::Broken(violation)) => return Err(violation.at(&place)),
                Err(Stop::Dead) => {
                    deaths += 1;
                    self.rejoin().await.map_err(|it| it.at(&place))?;
                }
            }
        }
        if deaths > 0 {
            self.recovery = self.recovery.max(self.since.elapsed());
        }
        Ok(())
    }

    async fn try_perform(
        &mut self,
        act: PlatformAction,
        mode: RequestMode,
        doubted: bool,
    ) -> Result<(), Stop> {
        if let Some(operation) = self.expected_of(act).operation().map(str::to_owned) {
            return self.await_end(act, &operation).await;
        }
        let answer = self.send_action(act, mode).await?;
        match (answer.status, mode) {
            (202, RequestMode::Async) => {
                let operation = self.named(act, &answer)?;
                self.await_end(act, &operation).await
            }
            (200, RequestMode::Sync)
                if matches!(act, PlatformAction::Update(_)) || act.deletes() =>
            {
                self.settle(act, &answer).await
            }
            (201, RequestMode::Sync) if !act.deletes() => self.settle(act, &answer).await,
            (200, _) if doubted && !act.deletes() => self.settle(act, &answer).await,
            (410, _) if doubted && act.deletes() => self.settle(act, &answer).await,
            _ => Err(unexpected("a change", &answer).into()),
        }
    }

    /// Records the operation named by a 202; it must be the same every time.
    fn named(&mut self, act: PlatformAction, answer: &HttpResponse) -> CheckResult<String> {
        let operation = answer
            .operation()
            .ok_or_else(|| unexpected("a 202", answer))?
            .to_owned();
        let known = self.expected_of(act);
        match &mut known.pending {
            Some(pending)
                if pending
                    .operation
                    .as_ref()
                    .is_some_and(|it| *it != operation) =>
            {
                Err(unexpected(
                    "a repeated request with another operation",
                    answer,
                ))
            }
            Some(pending) => {
                pending.operation = Some(operation.clone());
                self.acknowledged.push((operation.clone(), act.verb()));
                Ok(operation)
            }
            None => Ok(operation),
        }
    }

    async fn await_end(&mut self, act: PlatformAction, operation: &str) -> Result<(), Stop> {
        loop {
            let answer = self.poll(act, operation).await?;
            match answer.state() {
                Some("succeeded") => return self.settle(act, &answer).await,
                Some("in progress") if self.since.elapsed() < SETTLED_WITHIN => {
                    tokio::time::sleep(POLL_EVERY).await;
                }
                _ => return Err(unexpected("the end of an acknowledged operation", &answer).into()),
            }
        }
    }

    /// Records an acknowledged change: its created resource must exist, its deleted one must not.
    async fn settle(&mut self, act: PlatformAction, answer: &HttpResponse) -> Result<(), Stop> {
        let settled = match act {
            PlatformAction::Provision | PlatformAction::Update(_) => {
                AcknowledgedState::There(self.parameters())
            }
            PlatformAction::Bind(_) => {
                let fetched = self.fetch(act.binding()).await?;
                let credentials = fetched.body["credentials"].clone();
                let given = &answer.body["credentials"];
                let same = given.is_null() || *given == credentials;
                if fetched.status != 200 || !same || credentials.is_null() {
                    return Err(unexpected("a fetch after a bind", &fetched).into());
                }
                AcknowledgedState::There(credentials)
            }
            PlatformAction::Unbind(_) | PlatformAction::Deprovision => AcknowledgedState::Gone,
        };
        if act == PlatformAction::Deprovision {
            let left = self.bindings.values_mut();
            left.filter(|it| it.settled != AcknowledgedState::Gone)
                .for_each(|it| it.settle(AcknowledgedState::Gone));
        }
        self.expected_of(act).settle(settled);
        self.verify_one(act.binding()).await
    }

    fn expected_of(&mut self, act: PlatformAction) -> &mut ExpectedState {
        match act.binding() {
            Some(name) => self.bindings.entry(name).or_default(),
            None => &mut self.known,
        }
    }

    fn parameters(&self) -> Value {
        json!({ "size": self.size })
    }

    /// Waits for the next victim and checks the expected state.
    async fn rejoin(&mut self) -> CheckResult<()> {
        loop {
            self.deaths += 1;
            let target = next_target(&mut self.home, self.generation).await?;
            self.generation = target.generation;
            self.client = HttpClient::to(target.address);
            self.since = Instant::now();
            match self.verify().await {
                Ok(()) => return Ok(()),
                Err(Stop::Dead) => {}
                Err(Stop::Broken(violation)) => return Err(violation),
            }
        }
    }

    async fn send_action(
        &mut self,
        act: PlatformAction,
        mode: RequestMode,
    ) -> Result<HttpResponse, Stop> {
        *self.sent.entry(act.verb()).or_default() += 1;
        let path = change_path(&self.instance, act.binding(), mode);
        let body = match act {
            PlatformAction::Provision => provision_body(&self.parameters()),
            PlatformAction::Update(_) => {
                json!({ "service_id": SERVICE, "parameters": self.parameters() })
            }
            PlatformAction::Bind(_) => json!({ "service_id": SERVICE, "plan_id": PLAN }),
            PlatformAction::Unbind(_) | PlatformAction::Deprovision => Value::Null,
        };
        self.send(act.method(), &path, &body).await
    }

    async fn poll(&mut self, act: PlatformAction, operation: &str) -> Result<HttpResponse, Stop> {
        let path = poll_path(&self.instance, act.binding(), operation);
        self.send("GET", &path, &Value::Null).await
    }

    async fn fetch(&mut self, binding: Option<&str>) -> Result<HttpResponse, Stop> {
        let path = resource_path(&self.instance, binding);
        self.send("GET", &path, &Value::Null).await
    }

    async fn send(&mut self, method: &str, path: &str, body: &Value) -> Result<HttpResponse, Stop> {
        let answer = tokio::select! {
            biased;
            answer = self.client.send(method, path, body) => answer,
            () = superseded(self.home.clone(), self.generation) => Err(Lost::Line),
        };
        match answer {
            Ok(answer) => Ok(answer),
            Err(Lost::Line) => Err(Stop::Dead),
            Err(Lost::Time) => {
                Err(Violation::new(format!("{path} was never answered, by a live victim")).into())
            }
        }
    }
}

pub(crate) fn resource_path(instance: &str, binding: Option<&str>) -> String {
    let instance = format!("/v2/service_instances/{instance}");
    match binding {
        Some(name) => format!("{instance}/service_bindings/{name}"),
        None => instance,
    }
}

pub(crate) fn change_path(instance: &str, binding: Option<&str>, mode: RequestMode) -> String {
    let path = resource_path(instance, binding);
    let incomplete = mode == RequestMode::Async;
    format!("{path}?service_id={SERVICE}&plan_id={PLAN}&accepts_incomplete={incomplete}")
}

pub(crate) fn poll_path(instance: &str, binding: Option<&str>, operation: &str) -> String {
    let path = resource_path(instance, binding);
    format!("{path}/last_operation?operation={operation}")
}

/// The body of a provision.
pub fn provision_body(parameters: &Value) -> Value {
    json!({
        "service_id": SERVICE, "plan_id": PLAN, "organization_guid": "o", "space_guid": "s",
        "parameters": parameters,
    })
}

fn unexpected(what: &str, answer: &HttpResponse) -> Violation {
    Violation::new(format!(
        "{what} was answered {} {}",
        answer.status, answer.body
    ))
}

/// Resolves some time after the victim has a successor: the process on the port is then not the one that
/// got the request, and bytes of the dead one have arrived by then.
async fn superseded(mut home: TargetReceiver, generation: u64) {
    let newer = home.wait_for(|it| it.is_some_and(|target| target.generation > generation));
    if newer.await.is_err() {
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(LAST_WORDS_WITHIN).await;
}

async fn next_target(home: &mut TargetReceiver, after: u64) -> CheckResult<Target> {
    let newer = home.wait_for(|it| it.is_some_and(|target| target.generation > after));
    match timeout(RESTART_WITHIN, newer).await {
        Ok(Ok(target)) => target.ok_or_else(|| Violation::new("no victim")),
        Ok(Err(_)) => Err(Violation::new("the harness ended while a platform waited")),
        Err(_) => Err(Violation::new(
            "the line broke, and the victim had not been killed",
        )),
    }
}
