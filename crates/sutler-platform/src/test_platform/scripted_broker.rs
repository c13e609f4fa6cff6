//! A broker that answers as a test says, and keeps every request that it got.

use crate::brokers::{BrokerTransport, ConnectBroker};
use crate::records::BrokerRegistration;
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use sutler_client::wire::{Answer, InvalidConnectionError, Method, Request, TransportError};

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Instance,
    InstancePoll,
    Binding,
    BindingPoll,
}

/// How the broker answers one request.
#[derive(Clone, Debug)]
pub(crate) enum ScriptedAnswer {
    /// A status and a body.
    Status(u16, Value),
    /// The same, after a time.
    Late(Duration, u16, Value),
    /// It gets the request and does not answer in time.
    Silence,
    /// It was not reached.
    Unreached,
    /// It gets the request and never answers.
    Never,
}

/// A broker.
#[derive(Default)]
pub(crate) struct ScriptedBroker(Mutex<Script>);

#[derive(Default)]
struct Script {
    /// Answers that a test planned, in their order.
    planned: Vec<(Method, Endpoint, ScriptedAnswer)>,
    requests: Vec<Request>,
}

impl ScriptedBroker {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next request of this kind without a planned answer is answered so.
    pub(crate) fn plan(&self, method: Method, endpoint: Endpoint, answer: ScriptedAnswer) {
        self.script().planned.push((method, endpoint, answer));
    }

    /// The same for a status and a body.
    pub(crate) fn answer(&self, method: Method, endpoint: Endpoint, status: u16, body: Value) {
        self.plan(method, endpoint, ScriptedAnswer::Status(status, body));
    }

    /// Requests of a kind, in their order.
    pub(crate) fn requests(&self, method: Method, endpoint: Endpoint) -> Vec<Request> {
        let script = self.script();
        let found = script.requests.iter();
        let found = found.filter(|it| it.method == method && endpoint_of(it) == endpoint);
        found.cloned().collect()
    }

    /// Methods and paths of all requests, in their order.
    pub(crate) fn targets(&self) -> Vec<String> {
        let script = self.script();
        let line = |it: &Request| format!("{} {}", it.method, it.path.join("/"));
        script.requests.iter().map(line).collect()
    }

    fn next_answer(&self, request: &Request) -> ScriptedAnswer {
        let mut script = self.script();
        script.requests.push(request.clone());
        let endpoint = endpoint_of(request);
        let mut planned = script.planned.iter();
        let place = planned.position(|it| it.0 == request.method && it.1 == endpoint);
        match place {
            Some(place) => script.planned.remove(place).2,
            None => usual_answer(request, endpoint),
        }
    }
}

fn endpoint_of(request: &Request) -> Endpoint {
    let is_binding = request.path.iter().any(|it| it == "service_bindings");
    let is_poll = request.path.last().is_some_and(|it| it == "last_operation");
    match (is_binding, is_poll) {
        (true, true) => Endpoint::BindingPoll,
        (true, false) => Endpoint::Binding,
        (false, true) => Endpoint::InstancePoll,
        (false, false) => Endpoint::Instance,
    }
}

/// What the broker answers if a test planned nothing: everything succeeds at once. Credentials name their binding.
fn usual_answer(request: &Request, endpoint: Endpoint) -> ScriptedAnswer {
    let done = |status, body| ScriptedAnswer::Status(status, body);
    match (request.method, endpoint) {
        (Method::Put, Endpoint::Instance) => done(201, json!({})),
        (Method::Put | Method::Get, Endpoint::Binding) => {
            let id = request.path.last().expect("an id");
            let status = if request.method == Method::Put {
                201
            } else {
                200
            };
            done(
                status,
                json!({"credentials": {"password": format!("CANARY-{id}")}}),
            )
        }
        (Method::Get, Endpoint::Instance) => done(404, json!({})),
        (Method::Get, Endpoint::InstancePoll | Endpoint::BindingPoll) => {
            done(200, json!({"state": "succeeded"}))
        }
        (Method::Patch | Method::Delete | Method::Post | Method::Put, _) => done(200, json!({})),
    }
}

/// Time of a stopped clock.
async fn until_over(time: Duration) {
    tokio::time::sleep(time).await;
}

#[async_trait]
impl BrokerTransport for ScriptedBroker {
    async fn send(&self, request: &Request) -> Result<Answer, TransportError> {
        match self.next_answer(request) {
            ScriptedAnswer::Status(status, body) => Ok(Answer::new(status, &[], body.to_string())),
            ScriptedAnswer::Late(after, status, body) => {
                until_over(after).await;
                Ok(Answer::new(status, &[], body.to_string()))
            }
            ScriptedAnswer::Silence => Err(TransportError::TimedOut(Duration::from_secs(60))),
            ScriptedAnswer::Unreached => Err(TransportError::NotSent("refused".to_owned())),
            ScriptedAnswer::Never => std::future::pending().await,
        }
    }
}

/// Connects to one scripted broker.
pub(crate) struct ScriptedConnector(pub(crate) Arc<ScriptedBroker>);

impl ConnectBroker for ScriptedConnector {
    fn connect(
        &self,
        _registration: &BrokerRegistration,
    ) -> Result<Arc<dyn BrokerTransport>, InvalidConnectionError> {
        Ok(self.0.clone())
    }
}

/// The JSON body of a request.
pub(crate) fn body_of(request: &Request) -> Value {
    let body = request.body.as_ref().expect("a body");
    serde_json::from_slice(body).expect("JSON")
}

/// A header of a request.
pub(crate) fn header<'r>(request: &'r Request, name: &str) -> Option<&'r str> {
    let mut headers = request.headers.iter();
    let found = headers.find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}
