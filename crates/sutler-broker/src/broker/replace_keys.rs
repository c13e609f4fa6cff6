//! Keys of a running broker: another ring takes the place of the present one.

use super::BrokerHandle;
use sutler_journal::{KeyRing, KeyRingError};

impl BrokerHandle {
    /// Takes over the keys of another ring and their order, see [`KeyRing::replace`]: its first key seals from
    /// now on. Keys that it lacks still open until the process ends.
    ///
    /// # Errors
    /// A key has the id of one in use and another value, or the key that seals is missing; nothing was changed.
    pub fn replace_keys(&self, keys: &KeyRing) -> Result<(), KeyRingError> {
        // All realms share one ring.
        let Some(platform) = self.0.platforms.first() else {
            return Ok(());
        };
        let records = &platform.http.requests.realm_context.records;
        records.keys.replace(keys)
    }
}
