//! How much the broker takes from outside, and how long it waits: numbers only, with their reasons.
//!
//! Who holds callers to them: `server/turnstile.rs` for requests, `server/connection.rs` for
//! connections.

use std::num::NonZeroU32;
use std::time::Duration;

/// Bounds on what comes from outside. Each bounds memory, time, or what one caller takes from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest path and query, in bytes; hyper itself takes no more than 65,534. Beyond: 414.
    pub uri_bytes_max: usize,
    /// Most bytes of all headers of a request together, at least 8,192. Beyond: 431.
    pub header_bytes_max: usize,
    /// Most header lines of a request. Beyond: 431.
    pub headers_max: usize,
    /// Most bytes of bodies that are read at one time, of all requests together. Beyond: 503.
    pub body_bytes_at_once: usize,
    /// Most connections in all. Beyond, new ones are closed at once.
    pub connections_max: usize,
    /// Most connections of one address (of one /64 network, with IPv6). Beyond, new ones are closed.
    pub connections_per_peer: usize,
    /// Most TLS handshakes at a time; others wait within their time.
    pub handshakes_at_once: usize,
    /// How long a TLS handshake may take.
    pub handshake_within: Duration,
    /// How long a connection may stay without a request.
    pub idle_within: Duration,
    /// How long a client may leave an answer unread.
    pub write_within: Duration,
    /// Most requests at a time on one HTTP/2 connection.
    pub streams_max: u32,
    /// Most requests that only read (catalog, polls, fetches) worked on at a time.
    pub reads_at_once: usize,
    /// Most requests that change something worked on at a time. A request that waits for its
    /// operation counts as long as it waits.
    pub changes_at_once: usize,
    /// Most requests that wait for a place, of each sort. Beyond: 503 at once.
    pub queue_max: usize,
    /// How long a request waits for a place. Beyond: 503.
    pub queue_within: Duration,
    /// Most requests of one caller at a time. Beyond: 429.
    pub requests_per_caller: usize,
    /// Most long requests at a time: event streams, and reads that wait. They hold no place of reads or
    /// changes. Beyond: 503.
    pub long_requests_at_once: usize,
    /// Most long requests of one caller at a time. Beyond: 429.
    pub long_requests_per_caller: usize,
    /// How many requests one caller may send; `None`: any number. Beyond: 429.
    pub rate_per_caller: Option<Rate>,
    /// How long a 429 is held back, so that a caller who repeats at once slows itself and not others.
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

/// So many requests a second in the long run, and so many at once after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// In the long run.
    pub per_second: NonZeroU32,
    /// At once, after a pause.
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
    /// More than a platform with a hundred thousand instances asks for.
    fn default() -> Self {
        const PER_SECOND: NonZeroU32 = NonZeroU32::new(2_000).unwrap();
        const BURST: NonZeroU32 = NonZeroU32::new(4_000).unwrap();
        Self::new(PER_SECOND, BURST)
    }
}
