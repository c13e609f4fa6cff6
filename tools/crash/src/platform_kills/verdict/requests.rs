//! Requests: of one operation they have the same bytes, the identity of its author, and are not sent more often than
//! there is a reason for.

use super::{Evidence, MITIGATE};
use crate::platform_kills::known_state::orphan_id;
use crate::recording_broker::{ReceivedRequest, RequestEffect};
use std::collections::BTreeMap;

pub(super) fn check(evidence: &Evidence<'_>) -> Vec<String> {
    let mut faults = Vec::new();
    let changes = || evidence.requests.iter().filter(|it| it.is_change());
    let mut sent: BTreeMap<(&str, &str, &str), Vec<&ReceivedRequest>> = BTreeMap::new();
    for request in changes() {
        let Some(operation) = request.operation.as_deref() else {
            faults.push(format!("{} names no operation", line(request)));
            continue;
        };
        let place = (operation, request.method.as_str(), request.path());
        sent.entry(place).or_default().push(request);
    }
    for same in sent.values() {
        check_same(same, evidence.sends_max, &mut faults);
    }
    for request in evidence.requests {
        check_identity(evidence, request, &mut faults);
    }
    check_creations(evidence, &mut faults);
    faults
}

fn line(request: &ReceivedRequest) -> String {
    format!("{} {}", request.method, request.target)
}

/// Requests of one operation to one place.
fn check_same(same: &[&ReceivedRequest], sends_max: usize, faults: &mut Vec<String>) {
    let Some(first) = same.first() else { return };
    let is_other = |it: &&&ReceivedRequest| {
        it.body != first.body
            || it.target != first.target
            || it.identity != first.identity
            || it.headers != first.headers
    };
    if same.iter().any(|it| is_other(&it)) {
        faults.push(format!("{} was sent again with other bytes", line(first)));
    }
    if same.len() > sends_max {
        faults.push(format!(
            "{} was sent {} times, and there was a reason for {sends_max}",
            line(first),
            same.len()
        ));
    }
}

/// A request has the identity of the author of its intent; what the platform does by itself has none.
fn check_identity(evidence: &Evidence<'_>, request: &ReceivedRequest, faults: &mut Vec<String>) {
    let user = request.user();
    let operation = request.operation.as_deref().unwrap_or_default();
    let wanted = match evidence.known.intents.get(operation) {
        // The person who abandoned something is its author, and is not named (P-010).
        Some(intent) if intent.verb == MITIGATE => None,
        Some(intent) => intent.author.clone(),
        // Reads of the catalog belong to no intent, and have no author.
        None if !request.is_change() => None,
        None => {
            faults.push(format!("{} is of no intent", line(request)));
            return;
        }
    };
    let mut acknowledged = evidence.acknowledged.iter();
    let by = acknowledged.find(|it| it.operation == operation);
    let ordered_by = by.map(|it| it.user.to_owned());
    if user != wanted || by.is_some() && user != ordered_by {
        faults.push(format!(
            "{} was sent as {user:?}, its intent is of {wanted:?}, and {ordered_by:?} ordered it",
            line(request)
        ));
    }
}

/// Nothing is created twice under one id, unless the ledger has it: a request that was on its way for long may arrive
/// after its delete (T-58). And no operation creates two things.
fn check_creations(evidence: &Evidence<'_>, faults: &mut Vec<String>) {
    let mut created: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for request in evidence.requests {
        if request.effect == RequestEffect::Created {
            let operation = request.operation.as_deref().unwrap_or_default();
            created.entry(request.path()).or_default().push(operation);
        }
    }
    let mut by_operation: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (path, operations) in &created {
        let mut rows = evidence.known.orphans.iter().map(orphan_id);
        let is_on_ledger = rows.any(|id| resource_path(&id) == *path);
        if operations.len() > 1 && !is_on_ledger {
            faults.push(format!("{path} was created {} times", operations.len()));
        }
        for operation in operations {
            by_operation.entry(operation).or_default().push(path);
        }
    }
    for (operation, paths) in by_operation {
        if paths.len() > 1 {
            faults.push(format!("{operation} created {}", paths.join(" and ")));
        }
    }
}

/// Path of `instance` or `instance/binding`.
fn resource_path(id: &str) -> String {
    match id.split_once('/') {
        None => format!("/v2/service_instances/{id}"),
        Some((instance, binding)) => {
            format!("/v2/service_instances/{instance}/service_bindings/{binding}")
        }
    }
}
