//! What is left: the broker has what the platform shows and nothing else, with the same plan and parameters; the ledger
//! is settled; nothing is stuck; the catalog is that of the broker.

use super::Evidence;
use crate::platform_kills::known_state::orphan_id;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use sutler_platform::lifecycle::binding::BindingPhase;
use sutler_platform::lifecycle::instance::{Instance, InstancePhase};
use sutler_platform::lifecycle::intent::IntentState;

pub(super) fn check(evidence: &Evidence<'_>) -> Vec<String> {
    let mut faults = Vec::new();
    check_existence(evidence, &mut faults);
    check_ledger(evidence, &mut faults);
    check_pending(evidence, &mut faults);
    check_catalog(evidence, &mut faults);
    let stats = &evidence.known.stats;
    if stats.accepted != stats.live + stats.terminal + stats.cleaned {
        faults.push(format!("the counts do not add up: {stats:?}"));
    }
    faults
}

/// What the platform shows exists, and nothing else does.
fn check_existence(evidence: &Evidence<'_>, faults: &mut Vec<String>) {
    let known = evidence.known;
    let mut shown = BTreeSet::new();
    for instance in &known.instances {
        let id = instance.osb_id.as_str();
        if instance.phase() == InstancePhase::Live {
            shown.insert(id.to_owned());
            check_attributes(evidence, instance, faults);
        }
        let bindings = known
            .bindings
            .iter()
            .filter(|it| it.instance == instance.uid);
        for binding in bindings.filter(|it| it.phase() == BindingPhase::Bound) {
            let generations = binding.generations.iter().filter(|it| it.bound().is_some());
            shown.extend(generations.map(|it| format!("{id}/{}", it.osb_id.as_str())));
        }
    }
    let has: BTreeSet<String> = evidence.broker.resources.keys().cloned().collect();
    for lost in shown.difference(&has) {
        faults.push(format!("{lost} is shown, and the broker does not have it"));
    }
    for left in has.difference(&shown) {
        match known.knows(left) {
            true => faults.push(format!("the broker still has {left}, which is not live")),
            false => faults.push(format!(
                "the broker has {left}, and the platform does not know it"
            )),
        }
    }
}

fn check_attributes(evidence: &Evidence<'_>, instance: &Instance, faults: &mut Vec<String>) {
    let id = instance.osb_id.as_str();
    let (Some(confirmed), Some(found)) = (instance.confirmed(), evidence.broker.resources.get(id))
    else {
        return;
    };
    let spec = &confirmed.spec;
    let parameters = Value::Object(spec.parameters.as_map().clone());
    let expected = json!({
        "service_id": instance.service.as_str(), "plan_id": spec.plan.as_str(), "parameters": parameters,
    });
    if found.attributes != expected {
        faults.push(format!(
            "{id} is confirmed as {expected}, and the broker has {}",
            found.attributes
        ));
    }
}

/// Every row is done, and says so of something that is gone.
fn check_ledger(evidence: &Evidence<'_>, faults: &mut Vec<String>) {
    for row in &evidence.known.orphans {
        if row.orphan.state.word() != "done" {
            let (id, state) = (orphan_id(row), &row.orphan.state);
            faults.push(format!("{id} is on the ledger as {state:?}"));
        }
        if row.operation.is_some() {
            let id = orphan_id(row);
            faults.push(format!("{id} is done, and has an operation"));
        }
    }
}

/// Pending intents wait for a person.
fn check_pending(evidence: &Evidence<'_>, faults: &mut Vec<String>) {
    let known = evidence.known;
    let of_instances = known.instances.iter().flat_map(|it| &it.pending);
    let of_bindings = known.bindings.iter().flat_map(|it| &it.pending);
    let states = of_instances
        .map(|it| (it.operation.0, &it.state))
        .chain(of_bindings.map(|it| (it.operation.0, &it.state)));
    for (operation, state) in states {
        if !matches!(state, IntentState::OnHold(_)) {
            faults.push(format!("{operation} is stuck: {state:?}"));
        }
    }
}

fn check_catalog(evidence: &Evidence<'_>, faults: &mut Vec<String>) {
    let offered: BTreeSet<&str> = evidence.known.plans.iter().map(String::as_str).collect();
    let has: BTreeSet<&str> = evidence.plans.iter().map(String::as_str).collect();
    if offered != has {
        faults.push(format!(
            "{offered:?} are offered, and the broker has {has:?}"
        ));
    }
    for state in &evidence.known.brokers {
        let sync = &state.sync;
        if sync.served < sync.requested || sync.failure.is_some() {
            faults.push(format!("the catalog is not read: {sync:?}"));
        }
    }
}
