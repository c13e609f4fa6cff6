//! Persons, moments, ids, and parts of bindings for the tests. Whole bindings are in `states.rs`.

use crate::author::Author;
use crate::lifecycle::binding::{
    BindChange, BindExposure, BindFacts, BindSpec, Binding, BindingDetails, BindingPolicy,
    BoundDetails, Context, CreateRequest, CredentialsAnswer, Deletion, EndedIntent, Generation,
    GenerationState, InstanceReadiness, IntentCause, IntentChange, NewIds, PendingIntent,
    Retirement, TargetResource, Transforms,
};
use crate::lifecycle::intent::{
    BrokerStatement, IntentEnd, IntentNumber, IntentState, OperationId, UnknownQuestion,
};
use crate::lifecycle::request_key::{AcceptedKey, RequestKey};
use crate::spec::Parameters;
use jiff::Timestamp;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use sutler_osb::{BindResponse, BindingId};
use uuid::Uuid;

/// The moment of every decision, unless it is too late.
pub(super) const NOW: i64 = 1_000_000;
pub(super) const DAY: i64 = 86_400;

pub(super) fn moment(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a moment")
}

pub(super) fn person(name: &str) -> Author {
    Author {
        username: name.to_owned(),
        uid: format!("uid-{name}"),
        groups: Vec::new(),
        extra: BTreeMap::new(),
        impersonated_by: None,
    }
}

pub(super) fn osb_id(number: u64) -> BindingId {
    format!("osb-{number}").try_into().expect("an id")
}

pub(super) fn operation(number: u64) -> OperationId {
    OperationId(Uuid::from_u128(u128::from(number)))
}

pub(super) fn policy() -> BindingPolicy {
    BindingPolicy {
        send_within: Duration::from_secs(24 * 3600),
        manual_cleanup: false,
        auto_retries: 3,
        late_create_within: Duration::from_secs(120),
        may_name_application: true,
        overlap: Duration::from_secs(3600),
    }
}

pub(super) fn context(now: Timestamp, policy: &BindingPolicy, new: u64) -> Context<'_> {
    Context {
        now,
        ids: NewIds {
            operation: operation(new),
            uid: Uuid::from_u128(88),
            osb_id: osb_id(new),
        },
        policy,
    }
}

pub(super) fn facts() -> BindFacts {
    BindFacts {
        instance: InstanceReadiness::Live,
        violations: Vec::new(),
        rotatable: false,
    }
}

pub(super) fn create_request(facts: BindFacts) -> CreateRequest {
    CreateRequest {
        namespace: "app".to_owned(),
        instance: Uuid::from_u128(77),
        name: "app-db".to_owned(),
        spec: bind_spec(),
        transforms: Transforms::default(),
        rotation: None,
        osb_id: None,
        by: person("ann"),
        idempotency_key: None,
        facts,
    }
}

pub(super) fn bind_spec() -> BindSpec {
    BindSpec {
        parameters: Parameters::default(),
        parameter_sources: Vec::new(),
        target: TargetResource::Credentials,
    }
}

/// The key of a request.
pub(super) fn request_key(key: &str) -> RequestKey {
    RequestKey {
        key: key.to_owned(),
        digest: "same".to_owned(),
    }
}

/// Credentials that can be found again wherever they are printed or stored.
pub(super) fn credentials(mark: &str) -> CredentialsAnswer {
    let password = serde_json::json!({"credentials": {"password": format!("CANARY-{mark}")}});
    let answer: BindResponse = serde_json::from_value(password).expect("an answer");
    answer.try_into().expect("not too long")
}

pub(super) fn details(mark: &str) -> BindingDetails {
    BindingDetails {
        credentials: credentials(mark),
        expires_at: None,
        renew_before: None,
    }
}

pub(super) fn said(status: u16) -> BrokerStatement {
    BrokerStatement {
        status: Some(status),
        error: None,
        description: None,
    }
}

/// A binding without generations whose bind is not pending.
pub(super) fn bare() -> Binding {
    Binding {
        uid: Uuid::from_u128(88),
        namespace: "app".to_owned(),
        instance: Uuid::from_u128(77),
        name: "app-db".to_owned(),
        author: person("ann"),
        spec: bind_spec(),
        transforms: Transforms::default(),
        rotation: None,
        chosen_id: None,
        generations: Vec::new(),
        accepted: 1,
        pending: Vec::new(),
        ended: VecDeque::new(),
        idempotency_keys: VecDeque::from([AcceptedKey {
            request: request_key("again"),
            number: IntentNumber(1),
        }]),
        deletion: None,
        failed_rotations: None,
        waits_for_orphan: false,
        awaited_orphan: None,
        auto_retries: 0,
        tombstone: None,
        abandoned: None,
    }
}

pub(super) fn bind_of(id: u64) -> IntentChange {
    IntentChange::Bind(BindChange {
        osb_id: osb_id(id),
        predecessor: None,
    })
}

pub(super) fn bound_details(id: u64) -> BoundDetails {
    BoundDetails {
        credentials: credentials(&id.to_string()),
        bound_at: moment(NOW - 2 * DAY),
        expires_at: None,
        renew_before: None,
    }
}

pub(super) fn add_generation(it: &mut Binding, id: u64, state: GenerationState) {
    it.generations.push(Generation {
        osb_id: osb_id(id),
        bind_sent: None,
        state,
    });
}

pub(super) fn add_current(it: &mut Binding, id: u64) {
    add_generation(it, id, GenerationState::Current(bound_details(id)));
}

pub(super) fn add_retiring(it: &mut Binding, id: u64, until: i64) {
    let retirement = Retirement {
        until: moment(until),
        failures: 0,
    };
    let state = GenerationState::Retiring(retirement, bound_details(id));
    add_generation(it, id, state);
}

pub(super) fn add_unbound(it: &mut Binding, id: u64, exposure: BindExposure) {
    add_generation(it, id, GenerationState::Binding(exposure));
}

pub(super) fn add_ended(it: &mut Binding, number: u64, change: IntentChange, end: IntentEnd) {
    it.accepted = it.accepted.max(number);
    it.ended.push_back(EndedIntent {
        number: IntentNumber(number),
        change,
        author: person("ann"),
        cause: IntentCause::User,
        at: moment(NOW - 50),
        end,
    });
}

pub(super) fn queued() -> IntentState {
    IntentState::Queued { last: None }
}

pub(super) fn sending() -> IntentState {
    IntentState::Sending { attempt: 1 }
}

pub(super) fn unknown(question: UnknownQuestion) -> IntentState {
    IntentState::Unknown { question }
}

pub(super) fn polling() -> IntentState {
    let since = moment(NOW - 5);
    IntentState::Polling { since }
}

/// Adds a pending intent of Ann; one that has begun was sent ten seconds ago.
pub(super) fn add_pending(
    it: &mut Binding,
    number: u64,
    change: IntentChange,
    state: IntentState,
) -> &mut PendingIntent {
    it.accepted = it.accepted.max(number);
    let has_begun = matches!(
        state,
        IntentState::Sending { .. } | IntentState::Unknown { .. } | IntentState::Polling { .. }
    );
    it.pending.push(PendingIntent {
        number: IntentNumber(number),
        operation: operation(number),
        change,
        author: person("ann"),
        accepted: moment(NOW - 100),
        cause: IntentCause::User,
        waits_for_instance: false,
        attempts: u32::from(has_begun),
        first_sent: has_begun.then(|| moment(NOW - 10)),
        in_doubt: matches!(state, IntentState::Unknown { .. }),
        state,
    });
    it.pending.last_mut().expect("just added")
}

/// As a pending intent that was sent, and whose every attempt was answered "later".
pub(super) fn again(intent: &mut PendingIntent) {
    let last = Some(said(429));
    intent.state = IntentState::Queued { last };
    intent.attempts = 1;
    intent.first_sent = Some(moment(NOW - 10));
}

/// Adds a pending intent in a state that binds and unbinds have in common.
pub(super) fn add_begun(it: &mut Binding, number: u64, change: IntentChange, which: &str) {
    let state = match which {
        "queued" | "again" => queued(),
        "sending" | "sending in doubt" => sending(),
        "unknown" => unknown(UnknownQuestion::SendAgain),
        "unknown look" => unknown(UnknownQuestion::LookFirst),
        "polling" => polling(),
        other => panic!("no such state: {other}"),
    };
    let intent = add_pending(it, number, change, state);
    if which == "again" {
        again(intent);
    }
    intent.in_doubt |= which == "sending in doubt";
}

/// Adds a pending delete; if it has begun, of this generation.
pub(super) fn add_delete(it: &mut Binding, target: u64, which: &str) {
    let is_unsent = which == "queued";
    it.deletion = Some(Deletion {
        number: IntentNumber(9),
        target: (!is_unsent).then(|| osb_id(target)),
        undelete: None,
        polls_next: false,
    });
    add_begun(it, 9, IntentChange::Delete, which);
}
