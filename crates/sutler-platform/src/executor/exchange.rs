//! One exchange with a broker: when it began, what was answered, and what that says of the broker.

use crate::brokers::BrokerView;
use crate::lifecycle::breaker::ExchangeOutcome;
use jiff::Timestamp;
use sutler_client::wire::{Answer, Request, TransportError};
use sutler_client::{BrokerEvent, Reply};

/// An exchange that has ended.
pub(crate) struct Exchange {
    /// When it began.
    pub(crate) begun: Timestamp,
    /// The raw answer, for decoding.
    pub(crate) answer: Result<Answer, TransportError>,
}

/// What an exchange says of the broker, whatever it says of a resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BrokerImpression {
    /// When the exchange began.
    pub(crate) begun: Timestamp,
    /// How it ended.
    pub(crate) outcome: ExchangeOutcome,
    /// What the broker asks for.
    pub(crate) event: Option<BrokerEvent>,
}

impl Exchange {
    /// Sends a request that is written down, or that changes nothing.
    pub(crate) async fn with(view: &BrokerView, request: &Request, begun: Timestamp) -> Self {
        let answer = match &view.transport {
            Ok(transport) => transport.send(request).await,
            Err(error) => Err(TransportError::NotSent(error.to_string())),
        };
        Self { begun, answer }
    }
}

impl BrokerImpression {
    /// Reads a reply; `event` is what its meaning says.
    pub(crate) fn of<B>(begun: Timestamp, reply: &Reply<B>) -> Self {
        Self {
            begun,
            outcome: ExchangeOutcome::of(reply),
            event: None,
        }
    }

    /// With what the meaning of the reply says.
    pub(crate) fn with_event(self, event: Option<BrokerEvent>) -> Self {
        Self { event, ..self }
    }
}
