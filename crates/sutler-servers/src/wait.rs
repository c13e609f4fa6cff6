//! Waits for other processes, and finds free ports.
//!
//! Read `server.rs` next.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::net::TcpListener;
use std::ops::Range;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// Maximum time for a server to start or stop on a busy machine.
const TIME_LIMIT: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Below the ports of outgoing connections: a server that is restarted on its port must not find it in use.
const PORTS: Range<u16> = 15_000..30_000;

/// Polls until `look` returns a value.
///
/// # Panics
/// If there is no value after a minute.
pub fn until<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(value) = look() {
            return value;
        }
        let waited = began.elapsed();
        assert!(waited < TIME_LIMIT, "{what}: not within {TIME_LIMIT:?}");
        std::thread::sleep(LOOK_EVERY);
    }
}

/// A free port of 127.0.0.1 that is not returned twice in this process.
///
/// # Panics
/// If there is none.
pub fn free_port() -> u16 {
    static STEPS: AtomicU16 = AtomicU16::new(0);
    let span = PORTS.end - PORTS.start;
    let start = RandomState::new().build_hasher().finish() % u64::from(span);
    let start = u16::try_from(start).unwrap_or_default();
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (0..span)
        .map(|_| {
            let step = STEPS.fetch_add(1, Ordering::Relaxed) % span;
            PORTS.start + (start + step) % span
        })
        .find(is_free)
        .expect("a port is free")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_free_and_not_those_of_outgoing_connections() {
        let port = free_port();
        assert!(PORTS.contains(&port));
        TcpListener::bind(("127.0.0.1", port)).expect("nobody is there");
    }
}
