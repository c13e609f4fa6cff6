//! Invariants of a binding: of what is stored, and of the change from what was stored before. Pure.

use super::broker_side::BrokerSide;
use super::known_resources::KnownResources;
use super::model_broker::credentials_of;
use std::collections::BTreeSet;
use sutler_platform::lifecycle::binding::Binding;
use sutler_platform::lifecycle::intent::{IntentNumber, IntentState};

/// Checks a change of a binding. Returns what is wrong, as sentences.
pub(crate) fn check_binding(
    before: Option<&Binding>,
    after: &Binding,
    known: &KnownResources,
    side: &BrokerSide,
) -> Vec<String> {
    let mut faults = Vec::new();
    check_requests(after, &mut faults);
    check_numbers(before, after, &mut faults);
    check_values(after, &mut faults);
    if let Some(before) = before {
        check_credentials(before, after, known, side, &mut faults);
    }
    let shown = after.deletion.as_ref().map(|it| it.number);
    let deletes = after.pending.iter().filter(|it| it.change.is_delete());
    if deletes.map(|it| it.number).next() != shown {
        faults.push("I-9: the delete in progress is not the one that is shown".to_owned());
    }
    faults
}

/// I-10: the credentials are those of the broker, and those of this binding.
fn check_values(after: &Binding, faults: &mut Vec<String>) {
    for generation in &after.generations {
        let Some(details) = generation.bound() else {
            continue;
        };
        let id = generation.osb_id.as_str();
        let answer = serde_json::to_value(details.credentials.as_response());
        let answer = answer.unwrap_or_default();
        if answer["credentials"] != credentials_of(id) {
            faults.push(format!(
                "I-10: the credentials of {id} are those of another"
            ));
        }
    }
}

/// I-1: one intent has been sent, save one under a delete.
fn check_requests(after: &Binding, faults: &mut Vec<String>) {
    let sent = after.pending.iter().filter(|it| {
        matches!(
            it.state,
            IntentState::Sending { .. } | IntentState::Unknown { .. } | IntentState::Polling { .. }
        )
    });
    let (deletes, others): (Vec<_>, Vec<_>) = sent.partition(|it| it.change.is_delete());
    if deletes.len() > 1 || others.len() > 1 {
        faults.push(format!(
            "I-1: {} deletes and {} other intents of a binding have been sent",
            deletes.len(),
            others.len()
        ));
    }
}

/// I-4: every accepted intent is pending or has ended.
fn check_numbers(before: Option<&Binding>, after: &Binding, faults: &mut Vec<String>) {
    let accepted_before = before.map_or(0, |it| it.accepted);
    let pending: BTreeSet<IntentNumber> = after.pending.iter().map(|it| it.number).collect();
    let ended: BTreeSet<IntentNumber> = after.ended.iter().map(|it| it.number).collect();
    let was_pending = before.into_iter().flat_map(|it| &it.pending);
    let accepted = (accepted_before + 1..=after.accepted).map(IntentNumber);
    for number in was_pending.map(|it| it.number).chain(accepted) {
        if !pending.contains(&number) && !ended.contains(&number) {
            faults.push(format!(
                "I-4: {number} of a binding is neither pending nor ended"
            ));
        }
    }
}

/// I-10: credentials are kept until the broker said that their binding is gone, or the ledger has it.
fn check_credentials(
    before: &Binding,
    after: &Binding,
    known: &KnownResources,
    side: &BrokerSide,
    faults: &mut Vec<String>,
) {
    for generation in before.generations.iter().filter(|it| it.bound().is_some()) {
        let kept = after.generation(&generation.osb_id);
        if kept.is_some_and(|it| it.bound().is_some()) {
            continue;
        }
        let instances = known.instances.values();
        let mut above = instances.filter(|it| it.uid == after.instance);
        let above = above.next().map(|it| {
            let ids = it.former_ids.iter().chain([&it.osb_id]);
            ids.map(|it| it.as_str().to_owned()).collect::<Vec<_>>()
        });
        let binding = generation.osb_id.as_str().to_owned();
        let mut ids = above.unwrap_or_default().into_iter();
        let is_settled = ids.any(|instance| {
            let id = (instance.clone(), Some(binding.clone()));
            side.is_gone(&id) || known.is_on_ledger(&instance, Some(&binding))
        });
        if !is_settled {
            faults.push(format!(
                "I-10: the credentials of {binding} are erased too early"
            ));
        }
    }
}
