//! The store's clock as this process knows it: read once, then followed by the monotonic clock.
//!
//! For times that are part of a document, such as the end of a resource: the wall clocks of replicas may differ by
//! days. Not for leases and due times, which the store itself measures.

use std::sync::{Mutex, PoisonError};
use sutler_journal::{Store, StoreError, StoreTime};
use tokio::time::Instant;

/// The store's clock.
#[derive(Debug)]
pub struct StoreClock(Mutex<(Instant, StoreTime)>);

impl StoreClock {
    /// A clock that shows this time now.
    #[must_use]
    pub fn at(time: StoreTime) -> Self {
        Self(Mutex::new((Instant::now(), time)))
    }

    /// Reads the clock of a store.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn read(store: &dyn Store) -> Result<Self, StoreError> {
        Ok(Self::at(store.now().await?))
    }

    /// Sets the clock to a time that was just read.
    pub fn set(&self, time: StoreTime) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (Instant::now(), time);
    }

    /// The present time.
    #[must_use]
    pub fn now(&self) -> StoreTime {
        let (read, time) = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        time.plus(read.elapsed())
    }
}
