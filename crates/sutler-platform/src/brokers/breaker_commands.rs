//! Commands of operators about what is sent to a broker: pause, resume, probe, sync.

use super::Brokers;
use super::breaker_effects::StateChange;
use super::command_error::BrokerCommandError;
use crate::author::Author;
use crate::lifecycle::breaker::{BreakerEvent, BreakerReply};
use uuid::Uuid;

impl Brokers {
    /// Sends nothing to a broker any more, not even probes. Nothing ends by that.
    ///
    /// # Errors
    /// See [`BrokerCommandError`].
    pub async fn pause(
        &self,
        broker: Uuid,
        by: Author,
    ) -> Result<BreakerReply, BrokerCommandError> {
        self.breaker_event(broker, BreakerEvent::Pause(by)).await
    }

    /// Ends a pause. A broker whose breaker was open before is probed at once.
    ///
    /// # Errors
    /// See [`BrokerCommandError`].
    pub async fn resume(&self, broker: Uuid) -> Result<BreakerReply, BrokerCommandError> {
        self.breaker_event(broker, BreakerEvent::Resume).await
    }

    /// Probes a broker whose breaker is open now.
    ///
    /// # Errors
    /// It is paused; see [`BrokerCommandError`].
    pub async fn probe(&self, broker: Uuid) -> Result<BreakerReply, BrokerCommandError> {
        self.breaker_event(broker, BreakerEvent::Probe).await
    }

    /// Requests a sync of the catalog now. Returns the number that `sync.served` of the broker's state reaches with it.
    /// Requests that come before a sync begins share it.
    ///
    /// # Errors
    /// See [`BrokerCommandError`].
    pub async fn sync(&self, broker: Uuid) -> Result<u64, BrokerCommandError> {
        let records = &self.records;
        self.change_state(broker, |state| {
            if state.removal.is_some() {
                return Err(BrokerCommandError::Deregistering);
            }
            let mut change = StateChange::of(state.clone());
            change.request_sync(records, broker);
            let number = change.next.sync.requested;
            Ok((change, number))
        })
        .await
    }
}
