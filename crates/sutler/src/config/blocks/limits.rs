//! Limits block: bounds on the size and duration of requests.
//!
//! Defaults are those of the server and, for timeouts of operations, of the broker.

use crate::config::findings::CheckFindings;
use crate::config::value_types::{ByteSize, DurationText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;
use std::time::Duration;
use sutler_broker::Settings;
use sutler_server::{Limits, Rate};

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
    /// How long the claims of a process last without a renewal of its lease.
    pub lease: DurationText,
    /// How long a deleted id is remembered.
    pub tombstones: DurationText,
    /// How long the broker accepts connections after it reports that it drains, so that load balancers can notice.
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

impl LimitsConfig {
    /// Checks sizes and counts against their minimum.
    pub(in crate::config) fn check(&self, path: &str, findings: &mut CheckFindings) {
        let sizes = [
            ("body", self.body, 1 << 10),
            ("bodies_at_once", self.bodies_at_once, 1 << 10),
            ("uri", self.uri, 1 << 10),
            ("headers", self.headers, 8 << 10),
        ];
        for (key, size, least) in sizes {
            if size.0 < least {
                let reason = format!("must be at least {}", ByteSize(least));
                findings.fault(format!("{path}.{key}"), reason);
            }
        }
        let counts = [
            ("header_lines", self.header_lines),
            ("connections", self.connections),
            ("connections_per_peer", self.connections_per_peer),
            ("handshakes_at_once", self.handshakes_at_once),
            ("streams", self.streams as usize),
            ("reads_at_once", self.reads_at_once),
            ("changes_at_once", self.changes_at_once),
            ("requests_per_caller", self.requests_per_caller),
            ("burst_per_caller", self.burst_per_caller as usize),
        ];
        for (key, count) in counts {
            if count == 0 {
                findings.fault(format!("{path}.{key}"), "must be at least 1");
            }
        }
    }

    /// Converts the block into the limits of a server; `others` has those that cannot be configured.
    pub fn resolve(&self, timeouts: &ConnectionTimeouts, others: Limits) -> Limits {
        let rate = NonZeroU32::new(self.rate_per_caller);
        let burst = NonZeroU32::new(self.burst_per_caller);
        Limits {
            uri_bytes_max: self.uri.0,
            header_bytes_max: self.headers.0,
            headers_max: self.header_lines,
            body_bytes_at_once: self.bodies_at_once.0,
            connections_max: self.connections,
            connections_per_peer: self.connections_per_peer,
            handshakes_at_once: self.handshakes_at_once,
            handshake_within: timeouts.handshake,
            idle_within: timeouts.idle,
            write_within: timeouts.write,
            streams_max: self.streams,
            reads_at_once: self.reads_at_once,
            changes_at_once: self.changes_at_once,
            queue_max: self.queue,
            queue_within: timeouts.queue,
            requests_per_caller: self.requests_per_caller,
            rate_per_caller: rate.zip(burst).map(|(rate, burst)| Rate::new(rate, burst)),
            ..others
        }
    }
}

/// Times of connections and of their requests, as every root has them.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionTimeouts {
    /// How long a TLS handshake may take.
    pub handshake: Duration,
    /// How long a connection may stay without a request.
    pub idle: Duration,
    /// How long a client may leave an answer unread.
    pub write: Duration,
    /// How long a request waits for a place.
    pub queue: Duration,
}

impl TimeoutsConfig {
    /// The times of connections.
    pub fn connections(&self) -> ConnectionTimeouts {
        ConnectionTimeouts {
            handshake: self.handshake.0,
            idle: self.idle.0,
            write: self.write.0,
            queue: self.queue.0,
        }
    }

    /// Checks durations against their minimum.
    pub(in crate::config) fn check(&self, path: &str, findings: &mut CheckFindings) {
        let waits = [
            ("headers", self.headers),
            ("body", self.body),
            ("handshake", self.handshake),
            ("idle", self.idle),
            ("write", self.write),
            ("sync_wait", self.sync_wait),
        ];
        for (key, duration) in waits {
            if duration.0.is_zero() {
                findings.fault(format!("{path}.{key}"), "must be longer than nothing");
            }
        }
        if self.lease.0.as_secs() < 1 {
            findings.fault(format!("{path}.lease"), "must be at least 1s");
        }
    }
}
