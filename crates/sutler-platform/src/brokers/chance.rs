//! Numbers by chance, so that what replicas and brokers do at intervals does not happen at the same moment.
//!
//! They are made of fresh ids, which a simulation decides.

use std::time::Duration;
use sutler_journal::OperationId;

/// Spreads ids of which only the last bits differ: 2^32 divided by the golden ratio.
const SPREAD: u32 = 0x9e37_79b9;

/// A number by chance.
pub(super) fn jitter() -> u32 {
    let [.., a, b, c, d] = OperationId::fresh().0.into_bytes();
    u32::from_be_bytes([a, b, c, d]).wrapping_mul(SPREAD)
}

/// A time, shortened by up to a tenth.
pub(super) fn shortened(time: Duration, jitter: u32) -> Duration {
    let share = f64::from(jitter) / f64::from(u32::MAX);
    time.saturating_sub((time / 10).mul_f64(share))
}

#[cfg(test)]
mod tests {
    use super::shortened;
    use std::time::Duration;

    #[test]
    fn chance_shortens_a_time_by_up_to_a_tenth() {
        let minutes = |count: u64| Duration::from_secs(count * 60);
        assert_eq!(shortened(minutes(10), 0), minutes(10));
        assert_eq!(shortened(minutes(10), u32::MAX), minutes(9));
        assert_eq!(shortened(Duration::MAX, 0), Duration::MAX);
    }
}
