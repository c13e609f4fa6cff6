//! Clients: random requests about a few instances, to any replica, with retries as platforms make
//! them; and a record of the responses.
//!
//! They check nothing. Instances are replaced by others after some requests, so that each history
//! stays short enough to be checked.

use super::history::{BINDINGS, Call, ObservedReply, Progress, RecordedCall, Spec};
use crate::http_client::{HttpClient, HttpResponse};
use crate::platform::{
    PLAN, RequestMode, SERVICE, change_path, poll_path, provision_body, resource_path,
};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use sutler_servers::SeededRng;
use tokio::sync::watch;
use tokio::time::timeout;

/// Time limit for a response: shorter than a pause, so that a later response of a paused replica
/// comes too late.
const ANSWER_WITHIN: Duration = Duration::from_millis(800);
/// Number of requests after which an instance is replaced by another.
const REQUESTS_PER_INSTANCE: u64 = 40;
/// Maximum polls of one operation by one client.
const POLLS_MAX: u32 = 12;
const POLL_EVERY: Duration = Duration::from_millis(12);
/// Wait of a client after a request without a response.
const AFTER_SILENCE: Duration = Duration::from_millis(20);
/// Time for which a replica without a response is usually avoided.
const AVOIDED: Duration = Duration::from_millis(500);

/// The instances that clients share.
#[derive(Debug)]
pub(super) struct Slots(Vec<Slot>);

#[derive(Debug, Default)]
struct Slot {
    request_count: AtomicU64,
    /// Whether the instance probably exists; only to choose sensible requests.
    seems_there: AtomicBool,
}

impl Slots {
    pub(super) fn new(count: usize) -> Self {
        Self((0..count).map(|_| Slot::default()).collect())
    }

    /// Chooses an instance: its id and its slot.
    fn take(&self, rng: &mut SeededRng) -> (String, &Slot) {
        let n = rng.below(self.0.len() as u64) as usize;
        let slot = &self.0[n];
        let before = slot.request_count.fetch_add(1, Ordering::Relaxed);
        if before.is_multiple_of(REQUESTS_PER_INSTANCE) {
            slot.seems_there.store(false, Ordering::Relaxed);
        }
        let name = format!("instance-{n}-{}", before / REQUESTS_PER_INSTANCE);
        (name, slot)
    }
}

/// Current address of each replica.
pub(super) type ReplicaAddresses = Vec<watch::Receiver<Option<SocketAddr>>>;
/// History of all clients.
pub(super) type History = Arc<Mutex<Vec<RecordedCall>>>;

/// One client.
pub(super) struct Client {
    homes: ReplicaAddresses,
    wires: Vec<Option<(SocketAddr, HttpClient)>>,
    history: History,
    clock: Instant,
    rng: SeededRng,
    /// Time of the last missing response of each replica.
    silent: Vec<Option<Instant>>,
}

impl Client {
    pub(super) fn new(
        homes: &ReplicaAddresses,
        history: &History,
        clock: Instant,
        rng: SeededRng,
    ) -> Self {
        Self {
            homes: homes.clone(),
            wires: homes.iter().map(|_| None).collect(),
            history: Arc::clone(history),
            clock,
            rng,
            silent: vec![None; homes.len()],
        }
    }

    /// Sends one request after the other.
    pub(super) async fn run_until(&mut self, stop: &AtomicBool, slots: &Slots) {
        while !stop.load(Ordering::Relaxed) {
            let (instance, slot) = slots.take(&mut self.rng);
            let call = self.choose(slot);
            let mode = match self.rng.below(3) {
                0 => RequestMode::Sync,
                _ => RequestMode::Async,
            };
            let mut observed = self.send_to_any(&instance, &call, mode).await;
            // A request without a response is repeated unchanged; others sometimes, too.
            if (observed == ObservedReply::Unknown && !self.rng.one_in(3)) || self.rng.one_in(6) {
                observed = self.send_to_any(&instance, &call, mode).await;
            }
            match (&call, &observed) {
                (Call::Provision(spec), ObservedReply::Accepted(_) | ObservedReply::Done(_)) => {
                    slot.seems_there.store(!spec.fails, Ordering::Relaxed);
                }
                (Call::Deprovision, ObservedReply::Accepted(_) | ObservedReply::Done(_)) => {
                    slot.seems_there.store(false, Ordering::Relaxed);
                }
                _ => {}
            }
            if let ObservedReply::Accepted(operation) = observed
                && !self.rng.one_in(4)
            {
                self.follow(&instance, call.binding(), operation).await;
            }
            let pause = Duration::from_micros(self.rng.below(10_000));
            tokio::time::sleep(pause).await;
        }
    }

    fn choose(&mut self, slot: &Slot) -> Call {
        let binding = self.rng.below(BINDINGS.len() as u64) as usize;
        let there = slot.seems_there.load(Ordering::Relaxed);
        let spec = Spec {
            // Those of size 3 take long.
            size: match self.rng.below(10) {
                0 => 2,
                1 | 2 => 3,
                _ => 1,
            },
            fails: self.rng.one_in(10),
        };
        if !there && self.rng.below(10) < 6 {
            return Call::Provision(spec);
        }
        match self.rng.below(100) {
            0..12 => Call::Provision(spec),
            12..30 => Call::Update(1 + u32::try_from(self.rng.below(3)).unwrap_or(0)),
            30..53 => Call::Bind(binding),
            53..66 => Call::Unbind(binding),
            66..76 => Call::Deprovision,
            76..88 => Call::Fetch,
            _ => Call::FetchBinding(binding),
        }
    }

    /// Polls an operation for a while, at any replica.
    async fn follow(&mut self, instance: &str, binding: Option<usize>, operation: String) {
        let call = Call::Poll(binding, operation);
        for _ in 0..POLLS_MAX {
            let observed = self.send_to_any(instance, &call, RequestMode::Async).await;
            if !matches!(
                observed,
                ObservedReply::Polled(Progress::Running) | ObservedReply::Unknown
            ) {
                return;
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
    }

    async fn send_to_any(
        &mut self,
        instance: &str,
        call: &Call,
        mode: RequestMode,
    ) -> ObservedReply {
        let count = self.homes.len();
        let first = self.rng.below(count as u64) as usize;
        let answers = |n: &usize| self.silent[*n].is_none_or(|at| at.elapsed() > AVOIDED);
        let next = (0..count).map(|n| (first + n) % count).find(answers);
        let replica = match next {
            Some(next) if !self.rng.one_in(8) => next,
            _ => first,
        };
        self.send_to(replica, instance, call, mode).await
    }

    /// Sends a request to one replica and records the response.
    pub(super) async fn send_to(
        &mut self,
        replica: usize,
        instance: &str,
        call: &Call,
        mode: RequestMode,
    ) -> ObservedReply {
        let Some(address) = *self.homes[replica].borrow() else {
            // The replica is down.
            self.silent[replica] = Some(Instant::now());
            tokio::time::sleep(AFTER_SILENCE).await;
            return ObservedReply::Unknown;
        };
        let (method, path, body) = request_of(instance, call, mode);
        let mut wire = match self.wires[replica].take() {
            Some((known, wire)) if known == address => wire,
            _ => HttpClient::to(address),
        };
        let began = self.now();
        let answer = timeout(ANSWER_WITHIN, wire.send(method, &path, &body)).await;
        let ended = self.now();
        let observed = match answer {
            Ok(Ok(answer)) => {
                self.wires[replica] = Some((address, wire));
                classify(call, &answer)
            }
            // A broken or busy connection is not used again.
            Ok(Err(_)) | Err(_) => ObservedReply::Unknown,
        };
        let recorded = RecordedCall {
            instance: instance.to_owned(),
            call: call.clone(),
            mode,
            replica,
            began,
            ended,
            observed: observed.clone(),
        };
        self.remember(recorded);
        self.silent[replica] = None;
        if observed == ObservedReply::Unknown {
            self.silent[replica] = Some(Instant::now());
            tokio::time::sleep(AFTER_SILENCE).await;
        }
        observed
    }

    fn remember(&self, recorded: RecordedCall) {
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.push(recorded);
    }

    fn now(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

fn request_of(instance: &str, call: &Call, mode: RequestMode) -> (&'static str, String, Value) {
    let binding = call.binding().map(|n| BINDINGS[n]);
    let change = change_path(instance, binding, mode);
    match call {
        Call::Provision(spec) => {
            let mut parameters = json!({ "size": spec.size });
            if spec.fails {
                parameters["fails"] = json!(true);
            }
            ("PUT", change, provision_body(&parameters))
        }
        Call::Update(size) => {
            let body = json!({ "service_id": SERVICE, "parameters": { "size": size } });
            ("PATCH", change, body)
        }
        Call::Bind(_) => {
            let body = json!({ "service_id": SERVICE, "plan_id": PLAN });
            ("PUT", change, body)
        }
        Call::Deprovision | Call::Unbind(_) => ("DELETE", change, Value::Null),
        Call::Fetch | Call::FetchBinding(_) => {
            ("GET", resource_path(instance, binding), Value::Null)
        }
        Call::Poll(_, operation) => {
            let path = poll_path(instance, binding, operation);
            ("GET", path, Value::Null)
        }
    }
}

/// Classifies a response.
fn classify(call: &Call, answer: &HttpResponse) -> ObservedReply {
    let unexpected = || ObservedReply::Unexpected(format!("{} {}", answer.status, answer.body));
    let secret = || {
        answer.body["credentials"]["secret"]
            .as_str()
            .map(str::to_owned)
    };
    match (answer.status, call) {
        (200, Call::Poll(..)) => match answer.state() {
            Some("in progress") => ObservedReply::Polled(Progress::Running),
            Some("succeeded") => ObservedReply::Polled(Progress::Succeeded),
            Some("failed") => ObservedReply::Polled(Progress::Failed),
            _ => unexpected(),
        },
        (200, Call::Fetch) => ObservedReply::Found(answer.body["parameters"]["size"].to_string()),
        (200, Call::FetchBinding(_)) => secret().map_or_else(unexpected, ObservedReply::Found),
        (202, _) => answer
            .operation()
            .map_or_else(unexpected, |it| ObservedReply::Accepted(it.to_owned())),
        (200 | 201, _) => ObservedReply::Done(secret()),
        (404, _) => ObservedReply::Missing,
        (409, _) => ObservedReply::Conflict,
        (410, _) => ObservedReply::Gone,
        (422, _) => ObservedReply::Busy,
        (429 | 500..600, _) => ObservedReply::Unknown,
        _ => unexpected(),
    }
}
