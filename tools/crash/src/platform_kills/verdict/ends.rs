//! Ends: every order that was acknowledged has the end that the broker gave it, exactly one intent each, and what was
//! deleted is gone.

use super::{Evidence, MITIGATE};
use crate::platform_kills::known_state::StoredIntent;
use std::collections::BTreeSet;
use sutler_journal::Outcome;
use sutler_platform::lifecycle::intent::IntentEnd;

pub(super) fn check(evidence: &Evidence<'_>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut seen = BTreeSet::new();
    for order in evidence.acknowledged {
        let (operation, verb) = (&order.operation, &order.verb);
        let Some(intent) = evidence.known.intents.get(operation) else {
            faults.push(format!("{verb} {operation} was acknowledged and is lost"));
            continue;
        };
        if !seen.insert(operation) {
            continue;
        }
        let word = match &intent.end {
            Some(end) => end_word(end),
            None if evidence.known.is_on_hold(operation) => "on_hold",
            None => "pending",
        };
        // What a broker does not answer twice is given up, and goes to the ledger (T-48, T-50).
        let is_given_up = word == "failed" && evidence.silences >= 2 && verb != "delete";
        let waits = word == "on_hold" && is_behind_failed_create(evidence, intent);
        if !order.ends.contains(&word) && !is_given_up && !waits {
            faults.push(format!(
                "{verb} {operation} of {} ended as {word}: {:?}",
                order.user, intent.end
            ));
        }
    }
    check_doubles(evidence, &mut faults);
    check_mitigations(evidence, &mut faults);
    faults
}

/// Whether the create of its instance failed: what was asked for after that waits for a person.
fn is_behind_failed_create(evidence: &Evidence<'_>, intent: &StoredIntent) -> bool {
    let mut intents = evidence.known.intents.values();
    intents.any(|it| {
        let is_same = intent.instance.is_some() && it.instance == intent.instance;
        let has_failed = matches!(it.end, Some(IntentEnd::Failed(_)));
        is_same && it.verb == "provision" && has_failed
    })
}

fn end_word(end: &IntentEnd) -> &'static str {
    match end {
        IntentEnd::Succeeded => "succeeded",
        IntentEnd::Rejected(_) => "rejected",
        IntentEnd::Failed(_) => "failed",
        IntentEnd::Superseded(_) => "superseded",
        IntentEnd::Cancelled(_) => "cancelled",
    }
}

/// People have no intents that they did not order.
fn check_doubles(evidence: &Evidence<'_>, faults: &mut Vec<String>) {
    let acknowledged = evidence.acknowledged.iter();
    let known: BTreeSet<&str> = acknowledged.map(|it| it.operation.as_str()).collect();
    // Others follow from orders, too.
    let is_ordered = |verb: &str| !["unbind", "delete", MITIGATE].contains(&verb);
    let intents = evidence.known.intents.iter();
    let others: Vec<String> = intents
        .filter(|(operation, it)| !known.contains(operation.as_str()) && is_ordered(&it.verb))
        .filter_map(|(operation, it)| {
            let author = it.author.as_ref()?;
            Some(format!("{} {operation} of {author}", it.verb))
        })
        .collect();
    if others.len() > evidence.unacknowledged_max {
        faults.push(format!("{} was never ordered", others.join(", ")));
    }
}

/// What the platform deletes by itself has ended, and there is none without a reason.
fn check_mitigations(evidence: &Evidence<'_>, faults: &mut Vec<String>) {
    let own = evidence.known.intents.iter();
    for (operation, intent) in own.filter(|(_, it)| it.verb == MITIGATE) {
        if intent.outcome != Some(Outcome::Succeeded) {
            let outcome = intent.outcome;
            faults.push(format!("mitigate {operation} ended as {outcome:?}"));
        }
    }
    let orphans = &evidence.known.orphans;
    if evidence.mitigates && orphans.is_empty() {
        faults.push("nothing came to the ledger".to_owned());
    }
}
