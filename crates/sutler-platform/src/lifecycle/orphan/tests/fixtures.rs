//! A row of the ledger in every state of the table, and every answer of a broker.
//!
//! The moment of every event is [`NOW`]; what is planned is due then, and what is in flight was sent a minute before.

use crate::author::Author;
use crate::lifecycle::orphan::{
    AttemptLog, CleanupMode, DeleteRound, DeleteStage, ForgetReason, NewOrphan, OperatorReason,
    Orphan, OrphanCause, OrphanKey, OrphanState, TRIES_MAX, WAITS_MAX, WaitingResource,
};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;
use sutler_client::{BrokerMessage, Meaning, RetryAfter, RetryCause};
use sutler_osb::DeleteResponse;
use uuid::Uuid;

pub(super) const MINUTE: Duration = Duration::from_secs(60);
/// Tries of a row that has some left.
pub(super) const TRIES: u32 = 2;
/// Waits of a row that has some left.
pub(super) const WAITS: u32 = 1;

pub(super) const STATES: [&str; 12] = [
    "absent",
    "due",
    "sending",
    "sending the last try",
    "sending after many waits",
    "unknown",
    "polling",
    "polling the last try",
    "needs operator",
    "deferred",
    "done",
    "forgotten",
];

/// Time of every event.
pub(super) fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).expect("a moment")
}

pub(super) fn minutes_ago(minutes: u64) -> Timestamp {
    now()
        .checked_sub(Duration::from_secs(60 * minutes))
        .expect("a moment")
}

pub(super) fn in_minutes(minutes: u64) -> Timestamp {
    now()
        .checked_add(Duration::from_secs(60 * minutes))
        .expect("a moment")
}

pub(super) fn person(uid: &str) -> Author {
    Author {
        username: uid.to_owned(),
        uid: uid.to_owned(),
        groups: Vec::new(),
        extra: BTreeMap::new(),
        impersonated_by: None,
    }
}

pub(super) fn reason() -> ForgetReason {
    ForgetReason::try_from("the broker was removed".to_owned()).expect("a reason")
}

pub(super) fn waiting() -> WaitingResource {
    WaitingResource::Instance {
        namespace: "app".to_owned(),
        uid: Uuid::from_u128(2),
    }
}

pub(super) fn key() -> OrphanKey {
    OrphanKey {
        broker: Uuid::from_u128(1),
        instance: "i-1".to_owned().try_into().expect("an id"),
        binding: None,
    }
}

/// A create that failed; no create of this id is under way.
pub(super) fn found(cleanup: CleanupMode) -> NewOrphan {
    NewOrphan {
        key: key(),
        service_id: "s-1".to_owned().try_into().expect("an id"),
        plan_id: "p-1".to_owned().try_into().expect("an id"),
        cause: OrphanCause::FailedCreate,
        by: None,
        waiting: Some(waiting()),
        guarded_until: None,
        cleanup,
    }
}

/// A row in a state; it was found an hour ago.
pub(super) fn row(state: OrphanState) -> Orphan {
    let new = found(CleanupMode::Automatic);
    Orphan {
        key: new.key,
        service_id: new.service_id,
        plan_id: new.plan_id,
        cause: new.cause,
        found: minutes_ago(60),
        by: None,
        waiting: new.waiting,
        guarded_until: minutes_ago(60),
        round: DeleteRound {
            tries: TRIES,
            waits: WAITS,
        },
        attempts: AttemptLog::default(),
        state,
    }
}

pub(super) fn in_flight(stage: DeleteStage) -> OrphanState {
    let sent = minutes_ago(1);
    OrphanState::InFlight { sent, stage }
}

/// The row that a state of the table names.
pub(super) fn named(state: &str) -> Option<Orphan> {
    let polling = DeleteStage::Polling {
        since: minutes_ago(1),
    };
    let mut row = row(match state {
        "absent" => return None,
        "due" => OrphanState::Due { at: now() },
        "unknown" => in_flight(DeleteStage::Unknown { again: now() }),
        "needs operator" => OrphanState::NeedsOperator {
            since: minutes_ago(1),
            reason: OperatorReason::TriesUsedUp,
        },
        "deferred" => OrphanState::Deferred,
        "done" => OrphanState::Done { at: minutes_ago(1) },
        "forgotten" => OrphanState::Forgotten {
            at: minutes_ago(1),
            by: person("operator"),
            reason: reason(),
        },
        _ if state.starts_with("sending") => in_flight(DeleteStage::Sending),
        _ if state.starts_with("polling") => in_flight(polling),
        _ => panic!("no such state: {state}"),
    });
    if state.ends_with("the last try") {
        row.round.tries = TRIES_MAX - 1;
    }
    if state.ends_with("after many waits") {
        row.round.waits = WAITS_MAX - 1;
    }
    if state == "needs operator" {
        row.round.tries = TRIES_MAX;
    }
    Some(row)
}

pub(super) fn message(status: Option<u16>) -> BrokerMessage {
    BrokerMessage {
        status,
        error: None,
        description: Some("words of the broker".to_owned()),
        usable: true,
    }
}

pub(super) fn retried(cause: RetryCause, after: Option<RetryAfter>) -> Meaning<DeleteResponse> {
    let message = message(Some(500));
    Meaning::Retry {
        cause,
        after,
        message,
    }
}
