//! A broker that a test answers for. It keeps every request, and a request can be held back until the test answers it.

use async_trait::async_trait;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use sutler_client::wire::{Answer, InvalidConnectionError, Method, Request, TransportError};
use sutler_platform::brokers::{BrokerTransport, ConnectBroker};
use sutler_platform::records::BrokerRegistration;
use tokio::sync::{Notify, oneshot};

/// How a request is answered.
pub(crate) enum Reply {
    /// At once.
    Now(u16, &'static str),
    /// The request was sent, and nothing came back.
    Lost,
    /// The request was not sent.
    NotSent,
    /// When the test says how.
    Held,
}

/// A request that waits for its answer. Dropping it loses the answer.
type HeldRequest = oneshot::Sender<Answer>;

#[derive(Default)]
struct BrokerState {
    script: VecDeque<Reply>,
    requests: Vec<Request>,
    held: VecDeque<HeldRequest>,
}

/// A scripted broker. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct ScriptedBroker {
    state: Arc<Mutex<BrokerState>>,
    changed: Arc<Notify>,
}

impl ScriptedBroker {
    fn state(&self) -> MutexGuard<'_, BrokerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers the next requests like this, in this order. Then every request is a success.
    pub(crate) fn answers(&self, replies: impl IntoIterator<Item = Reply>) -> &Self {
        self.state().script.extend(replies);
        self
    }

    /// All requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.state().requests.clone()
    }

    /// Requests so far, each as its method and path without the query.
    pub(crate) fn lines(&self) -> Vec<String> {
        let requests = self.requests();
        let line = |it: &Request| format!("{} {}", it.method, it.path[1..].join("/"));
        requests.iter().map(line).collect()
    }

    /// The user of the originating identity of a request.
    pub(crate) fn user(request: &Request) -> Option<String> {
        use base64::Engine as _;
        let mut headers = request.headers.iter();
        let (_, value) = headers
            .find(|(name, _)| name.eq_ignore_ascii_case("X-Broker-API-Originating-Identity"))?;
        let encoded = value.split_whitespace().nth(1)?;
        let json = base64::engine::general_purpose::STANDARD
            .decode(encoded)
            .ok()?;
        let user: Value = serde_json::from_slice(&json).ok()?;
        Some(user["username"].as_str()?.to_owned())
    }

    /// The JSON body of a request.
    pub(crate) fn body(request: &Request) -> Value {
        let body = request.body.as_ref().expect("a body");
        serde_json::from_slice(body).expect("JSON")
    }

    /// Waits until so many requests have arrived.
    pub(crate) async fn until_requests(&self, number: usize) {
        loop {
            let changed = self.changed.notified();
            if self.state().requests.len() >= number {
                return;
            }
            changed.await;
        }
    }

    /// Answers the oldest held request.
    pub(crate) fn release(&self, status: u16, body: &'static str) {
        let held = self.state().held.pop_front().expect("a held request");
        let _ = held.send(Answer::new(status, &[], body));
    }
}

#[async_trait]
impl BrokerTransport for ScriptedBroker {
    async fn send(&self, request: &Request) -> Result<Answer, TransportError> {
        let (reply, held) = {
            let mut state = self.state();
            state.requests.push(request.clone());
            let reply = state.script.pop_front();
            let (sender, receiver) = oneshot::channel();
            if matches!(reply, Some(Reply::Held)) {
                state.held.push_back(sender);
            }
            (reply, receiver)
        };
        self.changed.notify_waiters();
        match reply {
            Some(Reply::Now(status, body)) => Ok(Answer::new(status, &[], body)),
            Some(Reply::Lost) => Err(TransportError::Closed),
            Some(Reply::NotSent) => Err(TransportError::NotSent("refused".to_owned())),
            Some(Reply::Held) => held.await.map_err(|_| TransportError::Closed),
            None => Ok(success(request)),
        }
    }
}

fn success(request: &Request) -> Answer {
    match request.method {
        Method::Put => Answer::new(201, &[], "{}"),
        _ => Answer::new(200, &[], "{}"),
    }
}

impl ConnectBroker for ScriptedBroker {
    fn connect(
        &self,
        _registration: &BrokerRegistration,
    ) -> Result<Arc<dyn BrokerTransport>, InvalidConnectionError> {
        Ok(Arc::new(self.clone()))
    }
}
