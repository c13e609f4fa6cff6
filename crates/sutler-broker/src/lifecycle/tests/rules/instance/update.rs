//! Rules of updates, one test each.

use super::{ALL_ALLOWED, answer, data_after, decided, ended, update, update_under};
use crate::lifecycle::instance::{
    Change, Event, HookOutput, Instance, InstanceSpec, Update, UpdateFacts, decide,
};
use crate::lifecycle::tests::fixtures::{
    NEW, UPDATE, asynchronously, change, changed_spec, instance, instance_output, kept, spec,
    synchronously, value,
};
use crate::lifecycle::{End, Reply, ResponseMode};
use crate::refusal::Refusal;
use serde_json::json;

/// Holds: B-161.
#[test]
fn an_update_leaves_alone_what_it_does_not_name() {
    let mut at = instance("updating");
    if let Instance::Updating { change, .. } = &mut at {
        *change = Change {
            maintenance_version: Some("2.0.0".to_owned()),
            ..Change::default()
        }
        .into();
    }
    let event = ended(UPDATE, End::Succeeded(HookOutput::default()));
    let next = decide(at, event).expect("not refused").next;
    let wanted = InstanceSpec {
        maintenance_version: Some("2.0.0".to_owned()),
        ..spec()
    };
    let data = next.data().expect("it is live");
    assert_eq!((&*data.spec, &data.state), (&wanted, &kept()));
}

/// Holds: B-162.
#[test]
fn an_update_is_applied_when_it_succeeded_and_one_without_effect_is_already_done() {
    let data = data_after("updating", ended(UPDATE, End::Succeeded(instance_output())));
    assert_eq!(*data.spec, changed_spec());
    let reply = answer("live", update(Change::default(), synchronously()));
    assert_eq!(reply, Ok(Reply::AlreadyDone));
}

/// Holds: B-160, B-164.
#[test]
fn an_update_that_names_another_service_is_invalid() {
    for state in ["live", "creating", "updating", "deleting"] {
        let asked = Update {
            service_id: value(json!("queue")),
            change: change().into(),
            against: None,
            facts: ALL_ALLOWED,
            dashboard_url: None,
            async_request: asynchronously(),
        };
        let reply = answer(state, Event::Update(Box::new(asked)));
        assert!(matches!(reply, Err(Refusal::Invalid(_))), "{state}");
    }
}

/// Holds: B-165.
#[test]
fn a_change_that_the_plan_or_the_service_does_not_support_is_refused() {
    let fixed = UpdateFacts {
        plan_updateable: false,
        ..ALL_ALLOWED
    };
    let never = UpdateFacts {
        offered: false,
        ..ALL_ALLOWED
    };
    for facts in [fixed, never] {
        let reply = answer("live", update_under(facts, change(), asynchronously()));
        assert!(matches!(reply, Err(Refusal::Unsupported(_))), "{facts:?}");
    }
}

/// Holds: B-167.
#[test]
fn an_update_to_another_maintenance_version_than_the_catalogs_is_refused() {
    let facts = UpdateFacts {
        maintenance_conflict: true,
        ..ALL_ALLOWED
    };
    let reply = answer("live", update_under(facts, change(), asynchronously()));
    assert_eq!(reply, Err(Refusal::MaintenanceConflict));
}

/// Holds: B-091, B-168.
#[test]
fn an_update_waits_for_any_other_operation() {
    for state in [
        "creating",
        "creating again",
        "updating",
        "updating (given up)",
        "deleting",
    ] {
        let other = Change {
            parameters: Some(value(json!({"size": 7}))),
            ..Change::default()
        };
        let reply = answer(state, update(other, asynchronously()));
        assert!(matches!(reply, Err(Refusal::Busy(_))), "{state}");
    }
}

/// Holds: B-037, B-169.
#[test]
fn an_update_that_failed_was_refused_or_was_given_up_changes_nothing_of_the_instance() {
    let success = End::Succeeded(instance_output());
    let cases = [
        ("updating", End::Failed),
        ("updating", End::Refused),
        ("updating (given up)", success),
        ("updating (given up)", End::Failed),
    ];
    for (state, end) in cases {
        let decision = decided(state, ended(UPDATE, end.clone()));
        let Instance::Live { data } = decision.next else {
            panic!("{state}, {end:?}: it is not live")
        };
        assert_eq!(*data.spec, spec(), "{state}, {end:?}");
        assert_eq!(data.dashboard_url.as_deref(), Some("https://dashboard/1"));
    }
}

/// Holds: B-170.
#[test]
fn the_context_alone_can_change_where_the_service_says_so() {
    let moved = Change {
        context: Some(value(json!({"platform": "x"}))),
        ..Change::default()
    };
    let allowed = UpdateFacts {
        offered: false,
        plan_updateable: false,
        ..ALL_ALLOWED
    };
    let reply = answer(
        "live",
        update_under(allowed, moved.clone(), synchronously()),
    );
    assert_eq!(reply, Ok(Reply::Started(NEW, ResponseMode::Inline)));
    let forbidden = UpdateFacts {
        context_updates: false,
        ..ALL_ALLOWED
    };
    let reply = answer("live", update_under(forbidden, moved, synchronously()));
    assert!(matches!(reply, Err(Refusal::Unsupported(_))));
}

/// Holds: B-171.
#[test]
fn an_update_without_a_dashboard_keeps_the_old_one() {
    let started = decided("live", update(change(), asynchronously())).next;
    let event = ended(NEW, End::Succeeded(HookOutput::default()));
    let next = decide(started, event).expect("not refused").next;
    let data = next.data().expect("it is live");
    assert_eq!(data.dashboard_url.as_deref(), Some("https://dashboard/1"));
}
