//! Instances in every state that the table names, and the persons and moments of the tests.

use crate::author::Author;
use crate::lifecycle::instance::{
    Basis, ChangeFacts, ChangeRequest, ConfirmedState, Context, Deletion, EndedIntent, Exposure,
    Instance, InstancePolicy, IntentChange, NewIds, Origin, PendingIntent, Tombstone,
};
use crate::lifecycle::intent::{
    BrokerStatement, HoldReason, IntentCause, IntentEnd, IntentNumber, IntentState, OnFailure,
    OperationId, UnknownQuestion,
};
use crate::lifecycle::request_key::{AcceptedKey, RequestKey};
use crate::spec::samples::{label_patch, parameters_patch, plan_patch, spec};
use crate::spec::{Spec, SpecPatch};
use jiff::Timestamp;
use serde_json::json;
use std::collections::VecDeque;
use std::time::Duration;
use sutler_osb::InstanceId;
use uuid::Uuid;

pub(super) const STATES: [&str; 46] = [
    "absent",
    "gone",
    "gone abandoned",
    "new",
    "new may exist",
    "new on ledger",
    "create queued",
    "create again",
    "create sending",
    "create sending in doubt",
    "create unknown",
    "create unknown look",
    "create polling",
    "create held",
    "create waits for orphan",
    "live",
    "live unusable",
    "live protected",
    "live uncertain",
    "update queued",
    "update again",
    "update sending",
    "update sending in doubt",
    "update unknown",
    "update polling",
    "update held",
    "update with dependents",
    "local queued",
    "delete queued",
    "delete again",
    "delete nothing",
    "delete on ledger",
    "delete cascade",
    "delete sending",
    "delete sending in doubt",
    "delete unknown",
    "delete polling",
    "delete suspending",
    "delete undelete noted",
    "delete over create",
    "delete over create polls",
    "delete over create sending",
    "delete over update",
    "delete over update sending",
    "delete behind create",
    "delete behind update",
];

/// The moment of every decision, unless it is too late.
pub(super) const NOW: i64 = 1_000_000;

pub(super) fn moment(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a moment")
}

pub(super) fn person(name: &str) -> Author {
    Author {
        username: name.to_owned(),
        uid: format!("uid-{name}"),
        groups: Vec::new(),
        extra: std::collections::BTreeMap::new(),
        impersonated_by: None,
    }
}

pub(super) fn osb_id(number: u64) -> InstanceId {
    format!("osb-{number}").try_into().expect("an id")
}

pub(super) fn operation(number: u64) -> OperationId {
    OperationId(Uuid::from_u128(u128::from(number)))
}

/// The key of a request.
pub(super) fn request_key(key: &str) -> RequestKey {
    RequestKey {
        key: key.to_owned(),
        digest: "same".to_owned(),
    }
}

/// Time for all attempts, and for how long a create may come late.
pub(super) fn policy() -> InstancePolicy {
    InstancePolicy {
        send_within: Duration::from_secs(24 * 3600),
        exclusive: false,
        delete_waits_for_update: false,
        manual_cleanup: false,
        auto_retries: 3,
        late_create_within: Duration::from_secs(120),
        context_updates: false,
        retrievable: false,
    }
}

pub(super) fn context<'a>(
    now: Timestamp,
    policy: &'a InstancePolicy,
    new: u64,
    fits: &'a dyn Fn(&Spec) -> bool,
) -> Context<'a> {
    Context {
        now,
        ids: NewIds {
            operation: operation(new),
            uid: Uuid::from_u128(77),
            osb_id: osb_id(new),
        },
        policy,
        fits,
    }
}

pub(super) fn request(author: &str) -> ChangeRequest {
    ChangeRequest::of_platform(person(author), IntentCause::User)
}

pub(super) fn facts(author: &str) -> ChangeFacts {
    ChangeFacts {
        request: request(author),
        violations: Vec::new(),
        catalog_revision: 1,
    }
}

pub(super) fn small() -> Spec {
    spec("small", json!({"disk": 10}))
}

pub(super) fn disk(size: u64) -> SpecPatch {
    parameters_patch(json!({"disk": size}))
}

pub(super) fn said(status: u16) -> BrokerStatement {
    BrokerStatement {
        status: Some(status),
        error: None,
        description: None,
    }
}

/// An instance whose create has not been sent and is not pending.
fn bare() -> Instance {
    Instance {
        uid: Uuid::from_u128(77),
        namespace: "app".to_owned(),
        broker: Uuid::from_u128(5),
        service: "postgresql".try_into().expect("an id"),
        osb_id: osb_id(1),
        osb_id_is_chosen: false,
        former_ids: Vec::new(),
        origin: Origin::Created,
        source: None,
        basis: Basis::Requested(Box::new(small())),
        exposure: Exposure::Nothing,
        usable: false,
        protected: false,
        generation: 1,
        revision: 1,
        applied: None,
        pending: Vec::new(),
        ended: VecDeque::new(),
        revisions: VecDeque::new(),
        managers: VecDeque::new(),
        idempotency_keys: VecDeque::from([AcceptedKey {
            request: request_key("again"),
            number: IntentNumber(1),
        }]),
        deletion: None,
        create_sent: None,
        waits_for_orphan: false,
        auto_retries: 0,
        tombstone: None,
        abandoned: None,
    }
}

fn live() -> Instance {
    let mut it = bare();
    it.basis = Basis::Confirmed(Box::new(ConfirmedState {
        spec: small(),
        dashboard_url: None,
        metadata: None,
    }));
    it.exposure = Exposure::Confirmed;
    it.usable = true;
    it.applied = Some(IntentNumber(1));
    ended(&mut it, 1, IntentChange::Provision, IntentEnd::Succeeded);
    it
}

fn ended(it: &mut Instance, number: u64, change: IntentChange, end: IntentEnd) {
    it.ended.push_back(EndedIntent {
        number: IntentNumber(number),
        change,
        author: person("ann"),
        at: moment(NOW - 50),
        end,
        undo: None,
        rejected_as: None,
    });
}

fn queued() -> IntentState {
    IntentState::Queued { last: None }
}

fn sending() -> IntentState {
    IntentState::Sending { attempt: 1 }
}

fn send_again() -> IntentState {
    IntentState::Unknown {
        question: UnknownQuestion::SendAgain,
    }
}

fn polling() -> IntentState {
    IntentState::Polling {
        since: moment(NOW - 5),
    }
}

/// Adds a pending intent of Ann; one that has begun was sent ten seconds ago.
fn pending(
    it: &mut Instance,
    number: u64,
    change: IntentChange,
    state: IntentState,
) -> &mut PendingIntent {
    it.generation = it.generation.max(number);
    let has_begun = matches!(
        state,
        IntentState::Sending { .. } | IntentState::Unknown { .. } | IntentState::Polling { .. }
    );
    if change == IntentChange::Provision && has_begun {
        it.exposure = Exposure::MayExist;
        it.create_sent = (!matches!(state, IntentState::Polling { .. })).then(|| moment(NOW - 10));
    }
    it.pending.push(PendingIntent {
        number: IntentNumber(number),
        operation: operation(number),
        change,
        author: person("ann"),
        accepted: moment(NOW - 100),
        stands_on: Vec::new(),
        on_failure: OnFailure::Skip,
        cause: IntentCause::User,
        catalog_revision: 1,
        attempts: u32::from(has_begun),
        first_sent: has_begun.then(|| moment(NOW - 10)),
        in_doubt: matches!(state, IntentState::Unknown { .. }),
        details: None,
        state,
    });
    it.pending.last_mut().expect("just added")
}

/// As a pending intent that was sent, and whose every attempt was answered "later".
fn again(intent: &mut PendingIntent) {
    intent.state = IntentState::Queued {
        last: Some(said(429)),
    };
    intent.attempts = 1;
    intent.first_sent = Some(moment(NOW - 10));
}

fn deleting(it: &mut Instance, number: u64, state: IntentState) -> &mut PendingIntent {
    it.deletion = Some(Deletion {
        number: IntentNumber(number),
        cascade: None,
        waits_for_update: false,
        undelete: None,
        polls_next: false,
    });
    pending(it, number, IntentChange::Delete, state)
}

fn deletion(it: &mut Instance) -> &mut Deletion {
    it.deletion.as_mut().expect("it is being deleted")
}

/// The instance in a state of the table; `None` if there is none.
pub(super) fn instance(state: &str) -> Option<Instance> {
    let mut words = state.split(' ');
    let first = words.next().unwrap_or_default();
    let rest = state[first.len()..].trim_start();
    Some(match first {
        "absent" => return None,
        "gone" => gone(rest),
        "new" => new(rest),
        "create" => create(rest),
        "live" => living(rest),
        "update" => update(rest),
        "local" => {
            let mut it = live();
            let change = IntentChange::Local(label_patch("team", Some("x")));
            pending(&mut it, 2, change, queued());
            it
        }
        "delete" => delete(rest),
        other => panic!("no such state: {other}"),
    })
}

fn gone(which: &str) -> Instance {
    let mut it = live();
    it.exposure = Exposure::Nothing;
    it.tombstone = Some(match which {
        "abandoned" => Tombstone::Abandoned(moment(NOW - 9)),
        _ => Tombstone::Deleted(moment(NOW - 9)),
    });
    it
}

fn new(which: &str) -> Instance {
    let mut it = bare();
    let end = match which {
        "may exist" => {
            it.exposure = Exposure::MayExist;
            IntentEnd::Failed(said(200))
        }
        "on ledger" => {
            it.exposure = Exposure::OnLedger;
            it.waits_for_orphan = true;
            it.former_ids.push(osb_id(9));
            IntentEnd::Failed(said(500))
        }
        _ => IntentEnd::Rejected(said(400)),
    };
    ended(&mut it, 1, IntentChange::Provision, end);
    it
}

fn create(which: &str) -> Instance {
    let mut it = bare();
    let change = IntentChange::Provision;
    match which {
        "waits for orphan" => {
            it = new("on ledger");
            pending(&mut it, 2, change, queued());
        }
        "held" => {
            let reason = HoldReason::UnresolvedParameters("no secret".to_owned());
            pending(&mut it, 1, change, IntentState::OnHold(reason));
        }
        "unknown look" => {
            let state = IntentState::Unknown {
                question: UnknownQuestion::LookFirst,
            };
            pending(&mut it, 1, change, state);
        }
        other => begun(&mut it, 1, change, other),
    }
    it
}

/// A pending intent in a state that creates, updates and deletes have in common.
fn begun(it: &mut Instance, number: u64, change: IntentChange, which: &str) {
    let state = match which {
        "queued" | "again" => queued(),
        "sending" | "sending in doubt" => sending(),
        "unknown" => send_again(),
        "polling" => polling(),
        other => panic!("no such state: {other}"),
    };
    let intent = pending(it, number, change, state);
    if which == "again" {
        again(intent);
    }
    intent.in_doubt |= which == "sending in doubt";
}

fn living(which: &str) -> Instance {
    let mut it = live();
    match which {
        "unusable" => it.usable = false,
        "protected" => it.protected = true,
        "uncertain" => {
            it.generation = 2;
            it.exposure = Exposure::Uncertain(vec![IntentNumber(2)]);
            let end = IntentEnd::Failed(said(201));
            ended(&mut it, 2, IntentChange::Update(disk(20)), end);
        }
        _ => {}
    }
    it
}

fn update(which: &str) -> Instance {
    let mut it = live();
    let change = IntentChange::Update(disk(20));
    match which {
        "held" => {
            let reason = HoldReason::UnresolvedParameters("no secret".to_owned());
            pending(&mut it, 2, change, IntentState::OnHold(reason));
        }
        "with dependents" => {
            let change = IntentChange::Update(plan_patch("large"));
            pending(&mut it, 2, change, sending()).author = person("ben");
            let later = pending(&mut it, 3, IntentChange::Update(disk(50)), queued());
            later.stands_on = vec![IntentNumber(2)];
            let label = IntentChange::Local(label_patch("team", Some("x")));
            pending(&mut it, 4, label, queued()).author = person("cem");
        }
        other => begun(&mut it, 2, change, other),
    }
    it
}

fn delete(which: &str) -> Instance {
    if let Some(rest) = which.strip_prefix("over ") {
        let (what, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let mut it = if what == "create" {
            create("polling")
        } else {
            update("polling")
        };
        match rest {
            "sending" => deleting(&mut it, 9, sending()),
            _ => deleting(&mut it, 9, queued()),
        };
        if rest == "polls" {
            deletion(&mut it).polls_next = true;
            again(it.pending.last_mut().expect("the delete"));
        }
        return it;
    }
    if let Some(what) = which.strip_prefix("behind ") {
        let mut it = if what == "create" {
            create("sending")
        } else {
            update("sending")
        };
        deleting(&mut it, 9, queued());
        return it;
    }
    let mut it = match which {
        "nothing" => create("queued"),
        "on ledger" => new("on ledger"),
        _ => live(),
    };
    match which {
        "nothing" => {
            it.pending[0].state = IntentState::Suspended;
            deleting(&mut it, 9, queued());
        }
        "on ledger" => {
            deleting(&mut it, 9, queued());
        }
        "cascade" => {
            deleting(&mut it, 9, queued());
            deletion(&mut it).cascade = Some(person("ann"));
        }
        "suspending" => {
            let suspended = IntentState::Suspended;
            let change = IntentChange::Update(disk(20));
            pending(&mut it, 2, change, suspended.clone()).author = person("ben");
            let memory = parameters_patch(json!({"memory": 4}));
            pending(&mut it, 3, IntentChange::Update(memory), suspended);
            deleting(&mut it, 9, sending());
        }
        "undelete noted" => {
            deleting(&mut it, 9, sending());
            deletion(&mut it).undelete = Some(person("ann"));
        }
        other => {
            deleting(&mut it, 9, queued());
            it.pending.pop();
            begun(&mut it, 9, IntentChange::Delete, other);
        }
    }
    it
}
