//! Limits of a server, with their defaults.
//!
//! They are applied in `server/admission.rs` to requests and in `server/connection.rs` to connections.

use std::num::NonZeroU32;
use std::time::Duration;

/// Limits on input from outside. Each bounds memory, time, or the share of one caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest path and query, in bytes; hyper itself takes no more than 65,534. Beyond: 414.
    pub uri_bytes_max: usize,
    /// Maximum bytes of all headers of a request together, at least 8,192. Beyond: 431.
    pub header_bytes_max: usize,
    /// Maximum header lines of a request. Beyond: 431.
    pub headers_max: usize,
    /// Maximum bytes of bodies being read at a time, over all requests. Beyond: 503.
    pub body_bytes_at_once: usize,
    /// Maximum connections. Beyond, new ones are closed at once.
    pub connections_max: usize,
    /// Maximum connections of one address (of one /64 network, with IPv6). Beyond, new ones are closed.
    pub connections_per_peer: usize,
    /// Maximum TLS handshakes at a time; further ones wait within their timeout.
    pub handshakes_at_once: usize,
    /// How long a TLS handshake may take.
    pub handshake_within: Duration,
    /// How long a connection may stay without a request.
    pub idle_within: Duration,
    /// How long a client may leave a response unread.
    pub write_within: Duration,
    /// Maximum requests at a time on one HTTP/2 connection.
    pub streams_max: u32,
    /// Maximum read requests (catalog, polls, fetches) in progress at a time.
    pub reads_at_once: usize,
    /// Maximum change requests in progress at a time. A request that waits for its operation counts for as long as
    /// it waits.
    pub changes_at_once: usize,
    /// Maximum requests that wait for a slot, per class. Beyond: 503 at once.
    pub queue_max: usize,
    /// How long a request waits for a slot. Beyond: 503.
    pub queue_within: Duration,
    /// Maximum requests of one caller at a time. Beyond: 429.
    pub requests_per_caller: usize,
    /// Maximum long requests (event streams, reads that wait) at a time. They hold no slot of reads or changes.
    /// Beyond: 503.
    pub long_requests_at_once: usize,
    /// Maximum long requests of one caller at a time. Beyond: 429.
    pub long_requests_per_caller: usize,
    /// Rate of requests of one caller; `None`: unlimited. Beyond: 429.
    pub rate_per_caller: Option<Rate>,
    /// How long a 429 is delayed, so that a caller that repeats at once slows down itself and not others.
    pub refusal_pause: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            uri_bytes_max: 64 * 1024,
            header_bytes_max: 64 * 1024,
            headers_max: 100,
            body_bytes_at_once: 64 * 1024 * 1024,
            connections_max: 16_384,
            connections_per_peer: 1_024,
            handshakes_at_once: 512,
            handshake_within: Duration::from_secs(10),
            idle_within: Duration::from_secs(75),
            write_within: Duration::from_secs(30),
            streams_max: 100,
            reads_at_once: 512,
            changes_at_once: 512,
            queue_max: 1_024,
            queue_within: Duration::from_secs(1),
            requests_per_caller: 256,
            long_requests_at_once: 1_024,
            long_requests_per_caller: 256,
            rate_per_caller: Some(Rate::default()),
            refusal_pause: Duration::from_millis(500),
        }
    }
}

/// A sustained rate, and a burst after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Requests per second, sustained.
    pub per_second: NonZeroU32,
    /// Requests at once, after a pause.
    pub burst: NonZeroU32,
}

impl Rate {
    /// A rate.
    #[must_use]
    pub const fn new(per_second: NonZeroU32, burst: NonZeroU32) -> Self {
        Self { per_second, burst }
    }
}

impl Default for Rate {
    /// More than a platform with a hundred thousand instances needs.
    fn default() -> Self {
        const PER_SECOND: NonZeroU32 = NonZeroU32::new(2_000).unwrap();
        const BURST: NonZeroU32 = NonZeroU32::new(4_000).unwrap();
        Self::new(PER_SECOND, BURST)
    }
}
