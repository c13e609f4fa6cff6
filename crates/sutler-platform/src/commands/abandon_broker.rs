//! Deregisters a broker although it has instances: they are given up.

use crate::brokers::BrokerCommandError;
use crate::lifecycle::intent::Abandonment;
use crate::periodic::{AbandonBrokerError, AbandonProgress, abandon_marked};
use crate::platform::Platform;
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

/// Batches that one request gives up; a periodic task goes on with the rest.
const BATCHES_MAX: usize = 10;
/// No batch is begun after this time.
const WITHIN: Duration = Duration::from_secs(5);

impl Platform {
    /// Deregisters a broker with everything that it has: its instances and bindings are given up, and what it may have of
    /// them stays listed on the orphan ledger, for a person.
    ///
    /// # Errors
    /// There is no such broker, or it cannot be marked. What was marked goes on by itself.
    pub async fn abandon_broker(
        &self,
        broker: Uuid,
        abandonment: &Abandonment,
    ) -> Result<AbandonProgress, BrokerCommandError> {
        let context = self.context.as_ref();
        context.brokers.mark_abandoned(broker, abandonment).await?;
        let begun = Instant::now();
        let has_time = || begun.elapsed() < WITHIN;
        match abandon_marked(context, broker, BATCHES_MAX, has_time).await {
            Ok(progress) => Ok(progress),
            Err(AbandonBrokerError::Broker(error)) => Err(error),
            Err(error) => {
                tracing::warn!(%broker, error = &error as &dyn std::error::Error,
                    "what a deregistered broker has is given up later");
                Ok(AbandonProgress::GoesOn)
            }
        }
    }
}
