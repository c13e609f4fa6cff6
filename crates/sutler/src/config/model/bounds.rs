//! How much and how long: the bounds on what comes from outside. Their defaults are the framework's.

use crate::config::value_types::{ByteSize, DurationText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sutler_broker::Settings;

/// How much of everything a client may have.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Limits")]
pub struct LimitsConfig {
    /// Longest body of a request. Beyond: 413.
    pub body: ByteSize,
    /// Most bytes of bodies that are read at one time, of all requests together. Beyond: 503.
    pub bodies_at_once: ByteSize,
    /// Longest path and query. Beyond: 414.
    pub uri: ByteSize,
    /// Most bytes of all headers of a request together, at least 8KiB. Beyond: 431.
    pub headers: ByteSize,
    /// Most header lines of a request. Beyond: 431.
    pub header_lines: usize,
    /// Most connections in all. Beyond, new ones are closed at once.
    pub connections: usize,
    /// Most connections of one address (of one /64 network, with IPv6). Beyond, new ones are closed.
    pub connections_per_peer: usize,
    /// Most TLS handshakes at a time; others wait.
    pub handshakes_at_once: usize,
    /// Most requests at a time on one HTTP/2 connection.
    pub streams: u32,
    /// Most requests that only read (catalog, polls, fetches) worked on at a time.
    pub reads_at_once: usize,
    /// Most requests that change something worked on at a time.
    pub changes_at_once: usize,
    /// Most requests that wait for a place, of each sort. Beyond: 503 at once.
    pub queue: usize,
    /// Most requests of one caller at a time. Beyond: 429.
    pub requests_per_caller: usize,
    /// How many requests a second one caller may send in the long run; 0: any number. Beyond: 429.
    pub rate_per_caller: u32,
    /// How many requests one caller may send at once after a pause.
    pub burst_per_caller: u32,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        let settings = Settings::default();
        let limits = settings.limits;
        let rate = limits.rate_per_caller.unwrap_or_default();
        Self {
            body: ByteSize(settings.body_bytes_max),
            bodies_at_once: ByteSize(limits.body_bytes_at_once),
            uri: ByteSize(limits.uri_bytes_max),
            headers: ByteSize(limits.header_bytes_max),
            header_lines: limits.headers_max,
            connections: limits.connections_max,
            connections_per_peer: limits.connections_per_peer,
            handshakes_at_once: limits.handshakes_at_once,
            streams: limits.streams_max,
            reads_at_once: limits.reads_at_once,
            changes_at_once: limits.changes_at_once,
            queue: limits.queue_max,
            requests_per_caller: limits.requests_per_caller,
            rate_per_caller: rate.per_second.get(),
            burst_per_caller: rate.burst.get(),
        }
    }
}

/// How long things may take.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Timeouts")]
pub struct TimeoutsConfig {
    /// How long a client may take to send the headers of a request.
    pub headers: DurationText,
    /// How long a client may take to send the body of a request.
    pub body: DurationText,
    /// How long a TLS handshake may take.
    pub handshake: DurationText,
    /// How long a connection may stay without a request.
    pub idle: DurationText,
    /// How long a client may leave an answer unread.
    pub write: DurationText,
    /// How long a request waits for a place. Beyond: 503.
    pub queue: DurationText,
    /// How long a request without `accepts_incomplete` waits for its operation.
    pub sync_wait: DurationText,
    /// How long a claim on an operation lasts when the process is not heard of.
    pub lease: DurationText,
    /// How long a deleted id is remembered.
    pub tombstones: DurationText,
    /// How long the broker goes on accepting after it said that it is draining, so that whoever sends
    /// it requests can notice.
    pub drain_notice: DurationText,
}

impl Default for TimeoutsConfig {
    fn default() -> Self {
        let settings = Settings::default();
        let limits = settings.limits;
        Self {
            headers: DurationText(settings.headers_within),
            body: DurationText(settings.body_within),
            handshake: DurationText(limits.handshake_within),
            idle: DurationText(limits.idle_within),
            write: DurationText(limits.write_within),
            queue: DurationText(limits.queue_within),
            sync_wait: DurationText(settings.sync_wait),
            lease: DurationText(settings.lease),
            tombstones: DurationText(settings.tombstones),
            drain_notice: DurationText(settings.drain_notice),
        }
    }
}
