//! Brokers without a network: a test says what they answer, and sees what they were sent.

use async_trait::async_trait;
use std::sync::{Arc, Mutex};
use sutler_client::wire::{Answer, Connection, InvalidConnectionError, Request, TransportError};
use sutler_platform::brokers::{BrokerTransport, ConnectBroker};
use sutler_platform::records::{BrokerAuthentication, BrokerRegistration};
use tokio::sync::Notify;

/// What a broker does with a request.
#[derive(Clone)]
pub(super) enum Reaction {
    /// It answers.
    Answer(Answer),
    /// It gives no answer.
    Silence,
    /// It answers once it is notified.
    AnswerAfter(Arc<Notify>, Answer),
}

/// A request as the broker received it.
#[derive(Clone, Debug)]
pub(super) struct ReceivedRequest {
    pub(super) request: Request,
    /// The token of the connection, if it has one.
    pub(super) token: Option<String>,
}

impl ReceivedRequest {
    /// The tag that was sent.
    pub(super) fn tag(&self) -> Option<&str> {
        self.header("If-None-Match")
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.request.headers.iter();
        let found = headers.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

type Script = dyn Fn(&ReceivedRequest) -> Reaction + Send + Sync;

/// All brokers of a test: they share one script.
pub(super) struct ScriptedBroker {
    script: Mutex<Arc<Script>>,
    received: Arc<Mutex<Vec<ReceivedRequest>>>,
    connections: Mutex<usize>,
}

impl ScriptedBroker {
    /// A broker that gives no answer.
    pub(super) fn silent() -> Arc<Self> {
        Arc::new(Self {
            script: Mutex::new(Arc::new(|_| Reaction::Silence)),
            received: Arc::default(),
            connections: Mutex::default(),
        })
    }

    /// Reacts to all later requests like this.
    pub(super) fn reacts(
        &self,
        script: impl Fn(&ReceivedRequest) -> Reaction + Send + Sync + 'static,
    ) {
        *self.script.lock().unwrap() = Arc::new(script);
    }

    /// Answers all later requests like this.
    pub(super) fn answers(&self, status: u16, body: impl Into<String>) {
        let answer = Answer::new(status, &[], body.into());
        self.reacts(move |_| Reaction::Answer(answer.clone()));
    }

    /// Serves a catalog with a tag.
    pub(super) fn serves_tagged(&self, tag: &'static str, body: impl Into<String>) {
        let whole = Answer::new(200, &[("ETag", tag)], body.into());
        self.reacts(move |received| {
            Reaction::Answer(match received.tag() == Some(tag) {
                true => Answer::new(304, &[], ""),
                false => whole.clone(),
            })
        });
    }

    /// All requests so far.
    pub(super) fn received(&self) -> Vec<ReceivedRequest> {
        self.received.lock().unwrap().clone()
    }

    /// How many requests there were.
    pub(super) fn request_count(&self) -> usize {
        self.received.lock().unwrap().len()
    }

    /// How many connections were set up.
    pub(super) fn connection_count(&self) -> usize {
        *self.connections.lock().unwrap()
    }
}

/// Connects to the brokers of a test.
pub(super) struct ScriptedConnector(pub(super) Arc<ScriptedBroker>);

struct ScriptedTransport {
    broker: Arc<ScriptedBroker>,
    token: Option<String>,
}

impl ConnectBroker for ScriptedConnector {
    fn connect(
        &self,
        registration: &BrokerRegistration,
    ) -> Result<Arc<dyn BrokerTransport>, InvalidConnectionError> {
        if !registration.url.starts_with("https://") {
            // The error of a real connection.
            Connection::to(&registration.url).build()?;
        }
        *self.0.connections.lock().unwrap() += 1;
        let token = match &registration.authentication {
            BrokerAuthentication::Bearer { token } => Some(token.clone()),
            BrokerAuthentication::None
            | BrokerAuthentication::Basic { .. }
            | BrokerAuthentication::ClientCredentials { .. } => None,
        };
        let broker = self.0.clone();
        Ok(Arc::new(ScriptedTransport { broker, token }))
    }
}

#[async_trait]
impl BrokerTransport for ScriptedTransport {
    async fn send(&self, request: &Request) -> Result<Answer, TransportError> {
        let received = ReceivedRequest {
            request: request.clone(),
            token: self.token.clone(),
        };
        let script = self.broker.script.lock().unwrap().clone();
        let reaction = script(&received);
        self.broker.received.lock().unwrap().push(received);
        match reaction {
            Reaction::Answer(answer) => Ok(answer),
            Reaction::Silence => Err(TransportError::Closed),
            Reaction::AnswerAfter(notify, answer) => {
                notify.notified().await;
                Ok(answer)
            }
        }
    }
}
