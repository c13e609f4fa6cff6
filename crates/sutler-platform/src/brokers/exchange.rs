//! Takes note of every exchange with a broker, whatever it was about.
//!
//! Nothing that is found here can fail the exchange: it has ended, and what could not be written is found again with the
//! next one.

use super::Brokers;
use super::breaker_effects::StateChange;
use super::broker_view::{BrokerView, BrokerViewError};
use super::command_error::BrokerCommandError;
use crate::lifecycle::breaker::{BreakerEvent, ExchangeOutcome};
use crate::metrics::record_exchange;
use crate::records::LearnedSerialization;
use jiff::Timestamp;
use std::time::Duration;
use sutler_client::BrokerEvent;
use uuid::Uuid;

/// How long it is not written again that a broker takes one operation per instance at a time.
const LEARNED_AGAIN_AFTER: Duration = Duration::from_secs(3600);

impl Brokers {
    /// Takes note of an exchange that began at a moment: counts it, opens the breaker if this process has a cause, halves
    /// the limit of the queue, and learns what the answer says of the broker.
    pub async fn exchange_ended(
        &self,
        broker: Uuid,
        begun: Timestamp,
        outcome: ExchangeOutcome,
        event: Option<BrokerEvent>,
    ) {
        record_exchange(self.cache.registration(broker).as_ref(), outcome);
        if let Err(error) = self.note_exchange(broker, begun, outcome, event).await {
            tracing::warn!(%broker, error = &error as &dyn std::error::Error,
                "what an exchange says of the broker was not written this time");
        }
    }

    async fn note_exchange(
        &self,
        broker: Uuid,
        begun: Timestamp,
        outcome: ExchangeOutcome,
        event: Option<BrokerEvent>,
    ) -> Result<(), BrokerCommandError> {
        if !self.local.knows(broker) && !self.look_at(broker).await? {
            return Ok(());
        }
        let now = self.records.now();
        if let Some(cause) = self.local.count(broker, begun, outcome, now) {
            let event = BreakerEvent::Trip(cause);
            self.breaker_event(broker, event).await?;
        }
        match event {
            Some(BrokerEvent::Serialize) => self.learn_serialization(broker).await,
            Some(BrokerEvent::RelistCatalog) => match self.local.relist(broker, now) {
                true => self.relist(broker).await,
                false => Ok(()),
            },
            // The outcome of the same exchange opened the breaker.
            Some(BrokerEvent::Unauthorized) => Ok(()),
            // The answer itself ends the intent or repeats the request.
            Some(BrokerEvent::AsyncRequired) | None => Ok(()),
        }
    }

    /// Reads the documents of a broker that this process does not know yet. Returns whether it is registered.
    pub(super) async fn look_at(&self, broker: Uuid) -> Result<bool, BrokerViewError> {
        let Some(found) = self.registration(broker).await? else {
            return Ok(false);
        };
        let state = self.state(broker).await?.unwrap_or_default();
        let now = self.records.now();
        self.local
            .saw_registration(&found.key, &found.registration, now);
        self.local.saw_state(broker, &state, now);
        Ok(true)
    }

    /// Requests the sync that answers asked for. If that fails, it is requested again a little later.
    pub(super) async fn relist(&self, broker: Uuid) -> Result<(), BrokerCommandError> {
        let requested = self.sync(broker).await;
        if let Err(BrokerCommandError::Unavailable(_) | BrokerCommandError::Contended) = &requested
        {
            self.local.relist_later(broker);
        }
        requested.map(|_| ())
    }

    async fn learn_serialization(&self, broker: Uuid) -> Result<(), BrokerCommandError> {
        let now = self.records.now();
        self.change_state(broker, |state| {
            let mut change = StateChange::of(state.clone());
            let is_recent = state.serialization.is_some_and(|learned| {
                let since = learned.last_conflict.duration_until(now);
                Duration::try_from(since).unwrap_or_default() < LEARNED_AGAIN_AFTER
            });
            if !is_recent {
                change.next.serialization = Some(LearnedSerialization { last_conflict: now });
            }
            Ok((change, ()))
        })
        .await
    }

    /// Whether requests about one instance of a broker are serialized now.
    pub fn is_serialized(&self, view: &BrokerView) -> bool {
        view.is_serialized(self.records.now())
    }
}
