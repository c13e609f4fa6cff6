//! Settings of a broker: limits, times, and the choices that the specification leaves open.
//!
//! Those of the server are passed on to `sutler-server`.

use crate::catalog_file::KindSettings;
use crate::catalog_source::PlanWaitLimits;
use std::time::Duration;
use sutler_records::FeedRetention;
use sutler_server::{BodyLimits, Limits, ServerSettings};

/// Settings, with their defaults.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Response to a request without `X-Broker-API-Version` (D-01).
    pub missing_version: MissingVersion,
    /// Response to a poll of a finished asynchronous delete (D-02).
    pub deleted_poll: DeletedPoll,
    /// How long a request without `accepts_incomplete` waits for its operation.
    pub sync_wait: Duration,
    /// Maximum request body, in bytes.
    pub body_bytes_max: usize,
    /// How long a client may take to send the headers of a request.
    pub headers_within: Duration,
    /// How long a client may take to send the body of a request.
    pub body_within: Duration,
    /// Maximum operations that one process runs at a time, for each platform.
    pub workers: usize,
    /// Name of this host; set it if several hosts share a store and the effects of an operation exist only
    /// on the host that began it. Operations accepted here then run here; those of a lost host wait until it
    /// returns, or until an operator abandons them.
    pub host: Option<String>,
    /// How long a lease lasts without renewal.
    pub lease: Duration,
    /// Limits of provisions that wait for a catalog refresh.
    pub patience: PlanWaitLimits,
    /// How long a deleted id is remembered.
    pub tombstones: Duration,
    /// How much of the change feed is kept, for all platforms together.
    pub feed: FeedRetention,
    /// How long the audit trail of administration is kept, by the clock of the store; entries are removed a day later,
    /// because they bear the time of the broker that wrote them.
    pub audit_kept: Duration,
    /// How long a shut-down may take: first requests are answered, then running operations end.
    pub drain: Duration,
    /// How long the broker still accepts after it announced its drain, so that clients and load balancers
    /// can notice.
    pub drain_notice: Duration,
    /// Limits of connections and requests.
    pub limits: Limits,
    /// Unknown instances and the cleanup of their operations.
    pub instances: KindSettings,
    /// Unknown bindings and the cleanup of their operations.
    pub bindings: KindSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            missing_version: MissingVersion::BadRequest,
            deleted_poll: DeletedPoll::Succeeded,
            sync_wait: Duration::from_secs(50),
            body_bytes_max: 1024 * 1024,
            headers_within: Duration::from_secs(15),
            body_within: Duration::from_secs(30),
            workers: 256,
            host: None,
            lease: Duration::from_secs(30),
            patience: PlanWaitLimits::default(),
            tombstones: Duration::from_secs(7 * 24 * 3600),
            feed: FeedRetention::default(),
            audit_kept: Duration::from_secs(400 * 24 * 3600),
            drain: Duration::from_secs(20),
            drain_notice: Duration::ZERO,
            limits: Limits::default(),
            instances: KindSettings::default(),
            bindings: KindSettings::default(),
        }
    }
}

impl Settings {
    /// The part that the server needs.
    pub(crate) fn server(&self) -> ServerSettings {
        ServerSettings {
            headers_within: self.headers_within,
            drain: self.drain,
            drain_notice: self.drain_notice,
            limits: self.limits.clone(),
        }
    }

    /// The limits of a request body.
    pub(crate) fn body_limits(&self) -> BodyLimits {
        BodyLimits {
            bytes_max: self.body_bytes_max,
            within: self.body_within,
        }
    }
}

/// Response to a missing version header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingVersion {
    /// 400, as specified since 2.16.
    BadRequest,
    /// 412, as specified before and expected by older checkers.
    PreconditionFailed,
}

/// Response to a poll of a finished asynchronous delete, while its operation is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletedPoll {
    /// 200 `succeeded`; 410 once the operation is cleaned up.
    Succeeded,
    /// 410 at once.
    Gone,
}
