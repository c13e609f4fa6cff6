//! Invariants of an instance: of what is stored, and of the change from what was stored before. Pure.

use super::broker_side::BrokerSide;
use std::collections::{BTreeMap, BTreeSet};
use sutler_journal::OperationId;
use sutler_platform::lifecycle::instance::{
    EndedIntent, Exposure, Instance, IntentChange, PendingIntent,
};
use sutler_platform::lifecycle::intent::{IntentEnd, IntentNumber, IntentState};
use sutler_platform::spec::SpecPatch;

/// Checks a change of an instance. Returns what is wrong, as sentences.
pub(crate) fn check_instance(
    before: Option<&Instance>,
    after: &Instance,
    side: &BrokerSide,
) -> Vec<String> {
    let mut faults = Vec::new();
    check_requests(after, &mut faults);
    check_projection(after, &mut faults);
    check_deletion(after, &mut faults);
    check_broker(after, side, &mut faults);
    if let Some(before) = before {
        check_confirmed(before, after, &mut faults);
        check_dependents(before, after, &mut faults);
        check_ends(before, after, side, &mut faults);
        check_revision(before, after, &mut faults);
    }
    check_numbers(before, after, &mut faults);
    faults
}

fn is_sent(state: &IntentState) -> bool {
    matches!(
        state,
        IntentState::Sending { .. } | IntentState::Unknown { .. } | IntentState::Polling { .. }
    )
}

/// I-1: one intent has been sent, save one under a delete.
fn check_requests(after: &Instance, faults: &mut Vec<String>) {
    let sent = after.pending.iter().filter(|it| is_sent(&it.state));
    let (deletes, others): (Vec<_>, Vec<_>) = sent.partition(|it| it.change.is_delete());
    if deletes.len() > 1 || others.len() > 1 {
        faults.push(format!(
            "I-1: {} deletes and {} other intents have been sent",
            deletes.len(),
            others.len()
        ));
    }
}

/// I-8: the shown specification is the basis with the pending changes that count.
fn check_projection(after: &Instance, faults: &mut Vec<String>) {
    let mut spec = after.basis.spec().clone();
    for intent in &after.pending {
        let counts = is_sent(&intent.state) || matches!(intent.state, IntentState::Queued { .. });
        if let (true, Some(patch)) = (counts, intent.change.patch()) {
            spec = spec.apply(patch);
        }
    }
    if spec != after.projection().spec {
        faults.push("I-8: another specification is shown than its parts give".to_owned());
    }
}

/// I-8: another specification is shown under another revision, from which the way back is known.
fn check_revision(before: &Instance, after: &Instance, faults: &mut Vec<String>) {
    let (was, is) = (before.projection().spec, after.projection().spec);
    let grown = after.revision.checked_sub(before.revision);
    match (was == is, grown) {
        (true, Some(0)) => {}
        (false, Some(1)) => {
            let earlier = after.revisions.back();
            let back = earlier.map(|it| is.apply(&it.undo));
            if back.is_some_and(|it| it != was) {
                faults.push("I-8: the way back to the last revision leads elsewhere".to_owned());
            }
        }
        _ => faults.push(format!(
            "I-8: the revision went from {} to {}",
            before.revision, after.revision
        )),
    }
}

/// I-2 and I-3: what is confirmed changes only with a success, and the last success grows.
fn check_confirmed(before: &Instance, after: &Instance, faults: &mut Vec<String>) {
    if after.applied < before.applied {
        faults.push(format!(
            "I-2: applied went from {:?} to {:?}",
            before.applied, after.applied
        ));
    }
    let Some(is) = after.confirmed() else {
        if before.confirmed().is_some() {
            faults.push("I-3: what was confirmed is no more".to_owned());
        }
        return;
    };
    let succeeded: BTreeMap<IntentNumber, &IntentChange> = new_ends(before, after)
        .filter(|it| it.end == IntentEnd::Succeeded)
        .map(|it| (it.number, &it.change))
        .collect();
    let is_fetched = matches!(before.exposure, Exposure::Uncertain(_))
        && after.exposure == Exposure::Confirmed
        && succeeded.is_empty();
    let is_created = succeeded.values().any(|it| **it == IntentChange::Provision);
    if before.confirmed().is_none() && !is_created {
        faults.push("I-3: an instance is confirmed without its create".to_owned());
    }
    let patches = succeeded.values().filter_map(|it| it.patch());
    let wanted = patches.fold(before.basis.spec().clone(), |spec, patch| spec.apply(patch));
    if is.spec != wanted && !is_fetched {
        faults.push(
            "I-3: what is confirmed is not what was confirmed with the changes that succeeded"
                .to_owned(),
        );
    }
}

/// What is confirmed is what the broker has, unless something is on its way, or may have been applied.
fn check_broker(after: &Instance, side: &BrokerSide, faults: &mut Vec<String>) {
    let is_certain = after.exposure == Exposure::Confirmed
        && after.tombstone.is_none()
        && after.pending.iter().all(|it| it.attempts == 0);
    let Some(confirmed) = after.confirmed().filter(|_| is_certain) else {
        return;
    };
    let Some(attributes) = side.attributes_of(after.osb_id.as_str()) else {
        return;
    };
    if attributes["plan_id"] != confirmed.spec.plan.as_str() {
        faults.push(format!(
            "I-3: the plan {:?} is confirmed, and the broker has {}",
            confirmed.spec.plan, attributes["plan_id"]
        ));
    }
    let wanted = confirmed.spec.parameters.as_map();
    let Some(found) = attributes["parameters"].as_object() else {
        return;
    };
    // What comes from secrets is not in the specification.
    let is_complete = confirmed.spec.parameter_sources.is_empty();
    let is_same = match is_complete {
        true => wanted == found,
        false => wanted
            .iter()
            .all(|(name, value)| found.get(name) == Some(value)),
    };
    if !is_same {
        faults.push(format!(
            "I-3: the parameters {wanted:?} are confirmed, and the broker has {found:?}"
        ));
    }
}

/// What changes the same as a change that did not take effect waits for a person.
fn check_dependents(before: &Instance, after: &Instance, faults: &mut Vec<String>) {
    if after.tombstone.is_some() {
        return;
    }
    let dropped = new_ends(before, after).filter(|it| {
        matches!(
            it.end,
            IntentEnd::Rejected(_) | IntentEnd::Failed(_) | IntentEnd::Cancelled(_)
        )
    });
    for dropped in dropped {
        let Some(patch) = dropped.change.patch() else {
            continue;
        };
        let paths = patch.paths();
        let queued = after.pending.iter().filter(|it| {
            it.number > dropped.number && matches!(it.state, IntentState::Queued { .. })
        });
        for intent in queued {
            let other = intent
                .change
                .patch()
                .map(SpecPatch::paths)
                .unwrap_or_default();
            if paths.iter().any(|it| other.contains(it)) {
                faults.push(format!(
                    "{} goes on, and changes the same as {}, which did not take effect",
                    intent.number, dropped.number
                ));
            }
        }
    }
}

/// Ends that the change added.
fn new_ends<'a>(
    before: &'a Instance,
    after: &'a Instance,
) -> impl Iterator<Item = &'a EndedIntent> {
    let known: BTreeSet<IntentNumber> = before.ended.iter().map(|it| it.number).collect();
    let ended = after.ended.iter();
    ended.filter(move |it| !known.contains(&it.number))
}

/// I-3 and I-11: nothing succeeds that the broker did not report, and nothing fails that was not sent.
fn check_ends(before: &Instance, after: &Instance, side: &BrokerSide, faults: &mut Vec<String>) {
    for ended in new_ends(before, after) {
        let Some(intent) = before.intent(ended.number) else {
            continue;
        };
        let operation = OperationId(intent.operation.0);
        let needs_call = match &intent.change {
            IntentChange::Provision | IntentChange::Update(_) => intent.attempts > 0,
            IntentChange::Local(_) | IntentChange::Delete => false,
        };
        match &ended.end {
            IntentEnd::Succeeded if needs_call && !side.has_succeeded(operation) => {
                let number = ended.number;
                faults.push(format!(
                    "I-3: {number} succeeded, and the broker never said so"
                ));
            }
            IntentEnd::Rejected(said) if said.status == Some(401) => {
                let number = ended.number;
                faults.push(format!(
                    "I-11: {number} is rejected because of the platform's password"
                ));
            }
            IntentEnd::Rejected(said) | IntentEnd::Failed(said)
                if said.status.is_some() && !side.has_sent(operation) =>
            {
                let number = ended.number;
                faults.push(format!("I-11: {number} failed, and was never sent"));
            }
            IntentEnd::Succeeded
            | IntentEnd::Rejected(_)
            | IntentEnd::Failed(_)
            | IntentEnd::Superseded(_)
            | IntentEnd::Cancelled(_) => {}
        }
    }
}

/// I-9: a delete that has not ended is shown.
fn check_deletion(after: &Instance, faults: &mut Vec<String>) {
    let shown = after.deletion.as_ref().map(|it| it.number);
    let is_suspended = |it: &PendingIntent| it.state == IntentState::Suspended;
    if after.deletion.is_none() && after.pending.iter().any(is_suspended) {
        faults.push("I-12: an intent waits for a delete, and there is none".to_owned());
    }
    let deletes = after.pending.iter().filter(|it| it.change.is_delete());
    let pending: Vec<IntentNumber> = deletes.map(|it| it.number).collect();
    if pending != shown.into_iter().collect::<Vec<_>>() {
        faults.push(format!(
            "I-9: deletes {pending:?} are pending, and {shown:?} is shown"
        ));
    }
}

/// I-4: every accepted intent is pending or has ended.
fn check_numbers(before: Option<&Instance>, after: &Instance, faults: &mut Vec<String>) {
    let accepted_before = before.map_or(0, |it| it.generation);
    let pending: BTreeSet<IntentNumber> = after.pending.iter().map(|it| it.number).collect();
    let ended: BTreeSet<IntentNumber> = after.ended.iter().map(|it| it.number).collect();
    if pending.len() != after.pending.len() || pending.intersection(&ended).next().is_some() {
        faults.push("I-4: an intent is listed twice".to_owned());
    }
    let was_pending = before.into_iter().flat_map(|it| &it.pending);
    let accepted = (accepted_before + 1..=after.generation).map(IntentNumber);
    // A single decision ends at most as many as the document keeps, unless the instance is gone.
    for number in was_pending.map(|it| it.number).chain(accepted) {
        if !pending.contains(&number) && !ended.contains(&number) && after.tombstone.is_none() {
            faults.push(format!("I-4: {number} is neither pending nor ended"));
        }
    }
}
