//! Bindings in every state that the table names.

use super::fixtures::{
    DAY, NOW, add_begun, add_current, add_delete, add_ended, add_generation, add_pending,
    add_retiring, add_unbound, again, bare, bind_of, bound_details, moment, osb_id, person, queued,
    said,
};
use crate::lifecycle::binding::{
    BindExposure, Binding, Deletion, FailedRotations, GenerationState, IntentChange, Retirement,
    RotationPolicy,
};
use crate::lifecycle::instance::Tombstone;
use crate::lifecycle::intent::{HoldReason, IntentEnd, IntentState};
use std::time::Duration;
use sutler_osb::BindingId;

pub(super) const STATES: [&str; 62] = [
    "absent",
    "gone",
    "gone abandoned",
    "new",
    "new may exist",
    "new on ledger",
    "create queued",
    "create waits",
    "create again",
    "create sending",
    "create sending in doubt",
    "create unknown",
    "create unknown look",
    "create polling",
    "create held",
    "create held in doubt",
    "create waits for orphan",
    "bound",
    "bound retiring",
    "bound retiring due",
    "bound renewal due",
    "bound full",
    "bound leftover",
    "bound stalled",
    "bound delete failed",
    "bound retirement failed",
    "rotation queued",
    "rotation again",
    "rotation sending",
    "rotation sending in doubt",
    "rotation unknown",
    "rotation unknown look",
    "rotation polling",
    "rotation held",
    "retirement queued",
    "retirement again",
    "retirement sending",
    "retirement sending in doubt",
    "retirement unknown",
    "retirement polling",
    "delete queued",
    "delete again",
    "delete nothing",
    "delete on ledger",
    "delete sending",
    "delete sending in doubt",
    "delete unknown",
    "delete polling",
    "delete undelete noted",
    "delete several",
    "delete several sending",
    "delete several noted",
    "delete suspending",
    "delete over create",
    "delete over create polls",
    "delete over create sending",
    "delete over rotation",
    "delete over rotation sending",
    "delete behind create",
    "delete behind rotation",
    "delete behind retirement",
    "delete behind retirement polling",
];

/// The binding in a state of the table; `None` if there is none.
pub(super) fn binding(state: &str) -> Option<Binding> {
    let (first, rest) = state.split_once(' ').unwrap_or((state, ""));
    Some(match first {
        "absent" => return None,
        "gone" => gone(rest),
        "new" => new(rest),
        "create" => create(rest),
        "bound" => bound(rest),
        "rotation" => rotation(rest),
        "retirement" => retirement(rest),
        "delete" => delete(rest),
        other => panic!("no such state: {other}"),
    })
}

/// The orphan that a binding waits for, or any if it waits for none.
pub(super) fn awaited(it: Option<&Binding>) -> BindingId {
    let awaited = it.and_then(|it| it.awaited_orphan.clone());
    awaited.unwrap_or_else(|| osb_id(1))
}

fn gone(which: &str) -> Binding {
    let mut it = bare();
    it.tombstone = Some(match which {
        "abandoned" => Tombstone::Abandoned(moment(NOW - 9)),
        _ => Tombstone::Deleted(moment(NOW - 9)),
    });
    it
}

fn new(which: &str) -> Binding {
    let mut it = bare();
    let end = match which {
        "may exist" => {
            add_unbound(&mut it, 1, BindExposure::MayExist);
            IntentEnd::Failed(said(200))
        }
        "on ledger" => {
            it.waits_for_orphan = true;
            it.awaited_orphan = Some(osb_id(1));
            IntentEnd::Failed(said(500))
        }
        _ => IntentEnd::Rejected(said(400)),
    };
    add_ended(&mut it, 1, bind_of(1), end);
    it
}

fn create(which: &str) -> Binding {
    if which == "waits for orphan" {
        let mut it = new("on ledger");
        add_bind(&mut it, 2, 2, "queued");
        return it;
    }
    let mut it = bare();
    add_bind(&mut it, 1, 1, which);
    it
}

/// Adds a bind of a new generation.
fn add_bind(it: &mut Binding, number: u64, id: u64, which: &str) {
    let has_begun = which.starts_with("sending")
        || which.starts_with("unknown")
        || which == "polling"
        || which == "held in doubt";
    let exposure = match has_begun {
        true => BindExposure::MayExist,
        false => BindExposure::Nothing,
    };
    add_unbound(it, id, exposure);
    let generation = it.generations.last_mut().expect("just added");
    let is_answered = which == "polling" || !has_begun;
    generation.bind_sent = (!is_answered).then(|| moment(NOW - 10));
    let unresolved = || HoldReason::UnresolvedParameters("no secret".to_owned());
    match which {
        "waits" => add_pending(it, number, bind_of(id), queued()).waits_for_instance = true,
        "held" => {
            add_pending(it, number, bind_of(id), IntentState::OnHold(unresolved()));
        }
        "held in doubt" => {
            let state = IntentState::OnHold(HoldReason::Interrupted);
            add_pending(it, number, bind_of(id), state).in_doubt = true;
        }
        other => add_begun(it, number, bind_of(id), other),
    }
}

/// A binding whose first bind succeeded.
fn bound(which: &str) -> Binding {
    let mut it = bare();
    add_ended(&mut it, 1, bind_of(1), IntentEnd::Succeeded);
    match which {
        "retiring" => add_retiring(&mut it, 1, NOW + DAY),
        "retiring due" => add_retiring(&mut it, 1, NOW - 1),
        "retirement failed" => {
            let retirement = Retirement {
                until: moment(NOW + DAY),
                failures: 1,
            };
            let state = GenerationState::Retiring(retirement, bound_details(1));
            add_generation(&mut it, 1, state);
            let end = IntentEnd::Rejected(said(400));
            add_ended(&mut it, 3, IntentChange::Unbind(osb_id(1)), end);
        }
        "full" => {
            for id in [1, 2, 3] {
                add_retiring(&mut it, id, NOW + DAY);
            }
        }
        _ => {}
    }
    let is_rotated = !it.generations.is_empty();
    add_current(&mut it, if is_rotated { 4 } else { 1 });
    match which {
        "renewal due" => {
            let day = Duration::from_secs(24 * 3600);
            let overlap = Duration::from_secs(60);
            it.rotation = RotationPolicy::new(Some(day), overlap).ok();
        }
        "leftover" => {
            add_unbound(&mut it, 2, BindExposure::MayExist);
            stall(&mut it, IntentEnd::Failed(said(200)));
        }
        "stalled" => stall(&mut it, IntentEnd::Rejected(said(400))),
        "delete failed" => {
            let end = IntentEnd::Rejected(said(400));
            add_ended(&mut it, 2, IntentChange::Delete, end);
        }
        _ => {}
    }
    it
}

fn stall(it: &mut Binding, end: IntentEnd) {
    it.failed_rotations = Some(FailedRotations {
        count: 1,
        again_at: moment(NOW + 3_000),
    });
    add_ended(it, 2, bind_of(2), end);
}

fn rotation(which: &str) -> Binding {
    let mut it = bound("");
    add_bind(&mut it, 2, 2, which);
    it
}

fn retirement(which: &str) -> Binding {
    let mut it = bound("retiring due");
    add_begun(&mut it, 3, IntentChange::Unbind(osb_id(1)), which);
    it
}

fn delete(which: &str) -> Binding {
    if let Some(rest) = which.strip_prefix("over ") {
        return delete_over(rest);
    }
    if let Some(what) = which.strip_prefix("behind ") {
        let mut it = match what {
            "create" => create("sending"),
            "rotation" => rotation("sending"),
            "retirement" => retirement("sending"),
            _ => retirement("polling"),
        };
        add_delete(&mut it, 0, "queued");
        return it;
    }
    let mut it = match which {
        "nothing" => create("queued"),
        "on ledger" => new("on ledger"),
        "several" | "several sending" | "several noted" | "suspending" => bound("retiring"),
        _ => bound(""),
    };
    match which {
        "nothing" => {
            it.pending[0].state = IntentState::Suspended;
            add_delete(&mut it, 0, "queued");
        }
        "on ledger" | "several" => add_delete(&mut it, 0, "queued"),
        "suspending" => {
            add_unbound(&mut it, 5, BindExposure::Nothing);
            let suspended = IntentState::Suspended;
            add_pending(&mut it, 5, bind_of(5), suspended.clone()).author = person("ben");
            add_pending(&mut it, 6, IntentChange::Unbind(osb_id(1)), suspended);
            add_delete(&mut it, 1, "sending");
        }
        "several sending" | "several noted" | "undelete noted" => {
            add_delete(&mut it, 1, "sending");
            deletion(&mut it).undelete = which.ends_with("noted").then(|| person("ann"));
        }
        other => add_delete(&mut it, 1, other),
    }
    it
}

fn delete_over(which: &str) -> Binding {
    let (what, rest) = which.split_once(' ').unwrap_or((which, ""));
    let (mut it, target) = match what {
        "create" => (create("polling"), 1),
        _ => (rotation("polling"), 2),
    };
    match rest {
        "sending" => add_delete(&mut it, target, "sending"),
        "polls" => {
            add_delete(&mut it, target, "again");
            deletion(&mut it).polls_next = true;
            again(it.pending.last_mut().expect("the delete"));
        }
        _ => add_delete(&mut it, target, "queued"),
    }
    it
}

fn deletion(it: &mut Binding) -> &mut Deletion {
    it.deletion.as_mut().expect("it is being deleted")
}
