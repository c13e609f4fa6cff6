//! A breaker in every state of the table.

use crate::author::Author;
use crate::lifecycle::breaker::{Breaker, OpenBreaker, OpenCause, Recovery};
use crate::lifecycle::intent::BrokerStatement;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

pub(super) const STATES: [&str; 6] = [
    "closed",
    "closed a moment ago",
    "open after silence",
    "open after 401",
    "paused",
    "paused while open",
];

/// Time of every event.
pub(super) fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).expect("a moment")
}

pub(super) fn seconds_ago(seconds: u64) -> Timestamp {
    now()
        .checked_sub(Duration::from_secs(seconds))
        .expect("a moment")
}

pub(super) fn in_seconds(seconds: u64) -> Timestamp {
    now()
        .checked_add(Duration::from_secs(seconds))
        .expect("a moment")
}

pub(super) fn operator() -> Author {
    Author {
        username: "operator".to_owned(),
        uid: "operator".to_owned(),
        groups: Vec::new(),
        extra: BTreeMap::new(),
        impersonated_by: None,
    }
}

pub(super) fn statement() -> BrokerStatement {
    BrokerStatement {
        status: Some(503),
        error: None,
        description: Some("down".to_owned()),
    }
}

/// Open for a minute, after one probe that failed; the next one is due.
pub(super) fn open(cause: OpenCause) -> OpenBreaker {
    OpenBreaker {
        since: seconds_ago(60),
        cause,
        failed_probes: 1,
        next_probe: now(),
        last: None,
    }
}

/// The breaker that a state of the table names.
pub(super) fn named(state: &str) -> Breaker {
    let paused = |open| Breaker::Paused {
        since: seconds_ago(10),
        by: operator(),
        open,
    };
    match state {
        "closed" => Breaker::default(),
        "closed a moment ago" => Breaker::Closed {
            recovery: Some(Recovery {
                at: seconds_ago(599),
                failed_probes: 1,
            }),
        },
        "open after silence" => Breaker::Open(open(OpenCause::Silence)),
        "open after 401" => Breaker::Open(open(OpenCause::Unauthorized)),
        "paused" => paused(None),
        "paused while open" => paused(Some(open(OpenCause::Silence))),
        _ => panic!("no such state: {state}"),
    }
}
