//! Connections of a platform that name their process to the recording broker, and may be wrong on purpose, to check
//! that the harness notices.

use crate::recording_broker::SENDER;
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::ValueEnum;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use sutler_client::wire::{Answer, InvalidConnectionError, Method, Request, TransportError};
use sutler_platform::brokers::{BrokerTransport, ConnectBroker};
use sutler_platform::records::BrokerRegistration;

/// Header with the person behind a request.
const IDENTITY: &str = "X-Broker-API-Originating-Identity";

/// A way in which a platform is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PlatformFlaw {
    /// Requests are sent before it is durable that they are.
    LateWriteAhead,
    /// Commits are acknowledged when they were not made, now and then.
    AcknowledgeUnwritten,
    /// Requests have another person's identity.
    ForeignIdentity,
    /// A request that is sent again has another body.
    ChangedBytes,
    /// Each request is sent twice.
    SentTwice,
}

impl PlatformFlaw {
    /// As a command-line argument.
    pub fn word(self) -> &'static str {
        match self {
            Self::LateWriteAhead => "late-write-ahead",
            Self::AcknowledgeUnwritten => "acknowledge-unwritten",
            Self::ForeignIdentity => "foreign-identity",
            Self::ChangedBytes => "changed-bytes",
            Self::SentTwice => "sent-twice",
        }
    }
}

/// Connects as another connector does, with the name of the process and perhaps a flaw.
pub(super) struct FlawedConnector {
    pub(super) inner: Arc<dyn ConnectBroker>,
    pub(super) process: String,
    pub(super) flaw: Option<PlatformFlaw>,
}

impl ConnectBroker for FlawedConnector {
    fn connect(
        &self,
        registration: &BrokerRegistration,
    ) -> Result<Arc<dyn BrokerTransport>, InvalidConnectionError> {
        let inner = self.inner.connect(registration)?;
        Ok(Arc::new(FlawedTransport {
            inner,
            process: self.process.clone(),
            flaw: self.flaw,
            sent: AtomicU64::new(u64::from(std::process::id())),
        }))
    }
}

struct FlawedTransport {
    inner: Arc<dyn BrokerTransport>,
    process: String,
    flaw: Option<PlatformFlaw>,
    /// Differs between processes, as a time would.
    sent: AtomicU64,
}

#[async_trait]
impl BrokerTransport for FlawedTransport {
    async fn send(&self, request: &Request) -> Result<Answer, TransportError> {
        let request = request.clone().header(SENDER, &self.process);
        let changes = request.method != Method::Get;
        let Some(flaw) = self.flaw.filter(|_| changes) else {
            return self.inner.send(&request).await;
        };
        match flaw {
            PlatformFlaw::ForeignIdentity => {
                let value = STANDARD.encode(r#"{"username":"mallory","uid":"user:mallory"}"#);
                let request = request.header(IDENTITY, &format!("sutler {value}"));
                self.inner.send(&request).await
            }
            PlatformFlaw::ChangedBytes => self.inner.send(&self.changed(request)).await,
            PlatformFlaw::SentTwice => {
                let _ = self.inner.send(&request).await;
                self.inner.send(&request).await
            }
            PlatformFlaw::LateWriteAhead | PlatformFlaw::AcknowledgeUnwritten => {
                self.inner.send(&request).await
            }
        }
    }
}

impl FlawedTransport {
    /// The request with other bytes each time.
    fn changed(&self, request: Request) -> Request {
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        match &request.body {
            Some(body) => {
                let spaces = " ".repeat(usize::try_from(number % 31).unwrap_or(0));
                let text = String::from_utf8_lossy(body);
                let body = format!("{text}{spaces}");
                request.body(body)
            }
            None => request.query("attempt", &number.to_string()),
        }
    }
}
