//! Rules of an instance, one test each; rules of its updates are in `instance/update.rs`.

mod update;

use crate::lifecycle::instance::{
    Change, Event, HookOutput, Instance, InstanceData, InstanceSpec, Provision, Update,
    UpdateFacts, decide, fetch, parent,
};
use crate::lifecycle::tests::fixtures::{
    CREATE, DELETE, FIRST, INSTANCE_STATES, NEW, OTHER, UPDATE, async_request, asynchronously,
    change, changed_spec, impossibly, instance, instance_output, kept, saved, spec, synchronously,
    value,
};
use crate::lifecycle::{
    AsyncRequest, Asynchrony, Decision, Effect, End, Reply, ResponseMode, Verb,
};
use crate::refusal::{Refusal, Resource};
use serde_json::json;
use sutler_journal::OperationId;

fn provision(wanted: InstanceSpec, async_request: AsyncRequest) -> Event {
    Event::Provision(Box::new(Provision {
        same: spec().same_request(&wanted),
        wanted: wanted.into(),
        against: None,
        maintenance_conflict: false,
        dashboard_url: None,
        async_request,
    }))
}

const ALL_ALLOWED: UpdateFacts = UpdateFacts {
    offered: true,
    plan_updateable: true,
    context_updates: true,
    maintenance_conflict: false,
};

fn update_under(facts: UpdateFacts, change: Change, async_request: AsyncRequest) -> Event {
    Event::Update(Box::new(Update {
        service_id: spec().service_id,
        change: change.into(),
        against: None,
        facts,
        dashboard_url: None,
        async_request,
    }))
}

fn update(change: Change, async_request: AsyncRequest) -> Event {
    update_under(ALL_ALLOWED, change, async_request)
}

fn deprovision(async_request: AsyncRequest) -> Event {
    Event::Deprovision {
        async_request,
        force: false,
    }
}

fn ended(operation: OperationId, end: End<HookOutput>) -> Event {
    Event::Ended { operation, end }
}

fn decided(state: &str, event: Event) -> Decision<Instance> {
    decide(instance(state), event).expect("not refused")
}

fn answer(state: &str, event: Event) -> Result<Reply, Refusal> {
    decide(instance(state), event).map(|decision| decision.reply)
}

fn data_after(state: &str, event: Event) -> InstanceData {
    let next = decided(state, event).next;
    next.data().expect("something is known of it").clone()
}

fn other_parameters() -> InstanceSpec {
    InstanceSpec {
        parameters: value(json!({"size": 9})),
        ..spec()
    }
}

/// Holds: B-081, B-121.
#[test]
fn a_provision_whose_caller_waits_starts_one_operation_and_answers_with_its_result() {
    let decision = decided("absent", provision(spec(), synchronously()));
    assert_eq!(decision.reply, Reply::Started(NEW, ResponseMode::Inline));
    assert_eq!(decision.effects, [Effect::Start(Verb::Provision, NEW)]);
}

/// Holds: B-084, B-122.
#[test]
fn a_provision_is_answered_202_where_plan_and_platform_agree() {
    let decision = decided("absent", provision(spec(), asynchronously()));
    assert_eq!(
        decision.reply,
        Reply::Started(NEW, ResponseMode::Background)
    );
}

/// Holds: B-085.
#[test]
fn a_synchronous_plan_ignores_accepts_incomplete() {
    let asked = async_request(Asynchrony::Never, true);
    let inline = Ok(Reply::Started(NEW, ResponseMode::Inline));
    assert_eq!(answer("absent", provision(spec(), asked)), inline);
    assert_eq!(answer("live", update(change(), asked)), inline);
    assert_eq!(answer("live", deprovision(asked)), inline);
}

/// Holds: B-087, B-122, B-163, B-252.
#[test]
fn a_repeated_request_joins_the_operation_under_way() {
    let put = answer("creating", provision(spec(), asynchronously()));
    assert_eq!(put, Ok(Reply::Joined(CREATE)));
    let patch = answer("updating", update(change(), asynchronously()));
    assert_eq!(patch, Ok(Reply::Joined(UPDATE)));
    for state in [
        "deleting",
        "deleting a failed create",
        "deleting over a create",
    ] {
        let delete = answer(state, deprovision(asynchronously()));
        assert_eq!(delete, Ok(Reply::Joined(DELETE)), "{state}");
    }
}

/// Holds: B-123, D-03.
#[test]
fn an_identical_provision_of_a_live_instance_is_already_done_in_both_modes() {
    for asked in [synchronously(), asynchronously(), impossibly()] {
        let reply = answer("live", provision(spec(), asked));
        assert_eq!(reply, Ok(Reply::AlreadyDone), "{asked:?}");
    }
}

/// Holds: B-126.
#[test]
fn a_different_provision_of_a_taken_id_conflicts() {
    for state in [
        "creating",
        "creating again",
        "live",
        "updating",
        "updating (given up)",
    ] {
        let reply = answer(state, provision(other_parameters(), asynchronously()));
        assert_eq!(reply, Err(Refusal::Conflict(Resource::Instance)), "{state}");
    }
}

/// Holds: B-126, D-04.
#[test]
fn service_plan_parameters_organization_and_space_make_a_request_different_and_the_context_not() {
    let differing = [
        InstanceSpec {
            service_id: value(json!("queue")),
            ..spec()
        },
        InstanceSpec {
            plan_id: value(json!("large")),
            ..spec()
        },
        other_parameters(),
        InstanceSpec {
            organization_guid: "elsewhere".to_owned(),
            ..spec()
        },
        InstanceSpec {
            space_guid: "elsewhere".to_owned(),
            ..spec()
        },
    ];
    for wanted in differing {
        assert!(!spec().same_request(&wanted), "{wanted:?}");
    }
    let moved = InstanceSpec {
        context: None,
        ..spec()
    };
    assert!(spec().same_request(&moved));
}

/// Holds: D-04.
#[test]
fn after_an_update_a_provision_is_compared_with_what_is_there_now() {
    let now = data_after("updating", ended(UPDATE, End::Succeeded(instance_output()))).spec;
    assert!(now.same_request(&changed_spec()));
    assert!(!now.same_request(&spec()));
}

/// Holds: B-083, B-127, B-166, B-254.
#[test]
fn what_can_only_be_asynchronous_says_so() {
    let refused = Err(Refusal::AsyncRequired);
    for state in [
        "absent",
        "creating",
        "creating again",
        "create-failed",
        "gone",
    ] {
        assert_eq!(
            answer(state, provision(spec(), impossibly())),
            refused,
            "{state}"
        );
    }
    for state in [
        "live",
        "updating",
        "updating (given up)",
        "creating",
        "deleting",
    ] {
        assert_eq!(
            answer(state, update(change(), impossibly())),
            refused,
            "{state}"
        );
    }
    for state in INSTANCE_STATES {
        assert_eq!(answer(state, deprovision(impossibly())), refused, "{state}");
    }
}

/// Holds: B-128, D-05.
#[test]
fn a_provision_with_another_maintenance_version_than_the_catalogs_is_refused() {
    for state in ["absent", "create-failed", "gone"] {
        let asked = Provision {
            wanted: spec().into(),
            same: true,
            against: None,
            maintenance_conflict: true,
            dashboard_url: None,
            async_request: asynchronously(),
        };
        let reply = answer(state, Event::Provision(Box::new(asked)));
        assert_eq!(reply, Err(Refusal::MaintenanceConflict), "{state}");
    }
}

/// Holds: B-132.
#[test]
fn an_id_can_be_used_again_and_begins_with_nothing_of_the_old_instance() {
    let data = data_after("gone", provision(spec(), asynchronously()));
    assert_eq!((data.state, data.made, data.last), (None, NEW, NEW));
}

#[test]
fn a_provision_over_a_failed_one_goes_on_with_what_that_saved() {
    for wanted in [spec(), other_parameters()] {
        let data = data_after("create-failed", provision(wanted.clone(), asynchronously()));
        assert_eq!((&*data.spec, data.state), (&wanted, kept()));
    }
}

/// A refusal made nothing, but the attempt before it may have: forgetting it would leave an orphan.
#[test]
fn a_refused_provision_over_a_failed_one_leaves_something_to_delete() {
    let decision = decided("create-failed", provision(spec(), asynchronously()));
    let refused = decide(decision.next, ended(NEW, End::Refused)).expect("not refused");
    assert!(matches!(refused.next, Instance::CreateFailed { .. }));
    let first = decided("creating", ended(CREATE, End::Refused));
    assert_eq!(first.next, Instance::refused(CREATE));
}

/// Holds: B-152.
#[test]
fn an_instance_that_is_not_there_yet_or_no_more_is_not_found() {
    for state in [
        "absent",
        "creating",
        "creating again",
        "create-failed",
        "gone",
    ] {
        let missing = Err(Refusal::NotFound(Resource::Instance));
        assert_eq!(fetch(&instance(state)), missing, "{state}");
    }
}

/// Holds: B-153.
#[test]
fn an_instance_that_is_being_updated_cannot_be_fetched_now() {
    for state in ["updating", "updating (given up)"] {
        assert!(
            matches!(fetch(&instance(state)), Err(Refusal::Busy(_))),
            "{state}"
        );
    }
}

/// Holds: B-173, D-12, D-13.
#[test]
fn an_unknown_instance_cannot_be_updated_nor_bound_to() {
    for state in ["absent", "create-failed", "gone"] {
        let reply = answer(state, update(change(), asynchronously()));
        assert_eq!(reply, Err(Refusal::NotFound(Resource::Instance)), "{state}");
        assert_eq!(parent(&instance(state)).0, None, "{state}");
    }
}

/// Holds: B-252, B-253, D-13.
#[test]
fn a_deprovision_removes_what_is_there_and_an_unknown_instance_is_gone() {
    let started = decided("live", deprovision(synchronously()));
    assert_eq!(started.reply, Reply::Started(NEW, ResponseMode::Inline));
    let end = ended(NEW, End::Succeeded(HookOutput::default()));
    let next = decide(started.next, end).expect("not refused").next;
    assert_eq!(next, Instance::gone(NEW));
    for state in ["absent", "gone"] {
        let reply = answer(state, deprovision(asynchronously()));
        assert_eq!(reply, Err(Refusal::Gone(Resource::Instance)), "{state}");
    }
}

/// Holds: B-254.
#[test]
fn an_instance_that_is_being_updated_cannot_be_deleted_now() {
    for state in ["updating", "updating (given up)"] {
        let reply = answer(state, deprovision(asynchronously()));
        assert!(matches!(reply, Err(Refusal::Busy(_))), "{state}");
    }
}

/// Holds: B-255.
#[test]
fn a_deprovision_over_a_provision_halts_it_waits_for_its_end_and_then_deletes() {
    let accepted = decided("creating", deprovision(asynchronously()));
    let halting = [
        Effect::Cancel(CREATE),
        Effect::StartWaiting(Verb::Deprovision, NEW),
    ];
    assert_eq!(accepted.effects, halting);
    for end in [End::Succeeded(instance_output()), End::Failed, End::Refused] {
        let woken = decide(accepted.next.clone(), ended(CREATE, end)).expect("not refused");
        assert_eq!(woken.effects, [Effect::Wake(NEW)]);
        let failed = decide(woken.next, ended(NEW, End::Failed)).expect("not refused");
        assert!(
            matches!(failed.next, Instance::CreateFailed { .. }),
            "never live"
        );
    }
}

/// Holds: B-083, B-126, B-254, D-06.
#[test]
fn the_reason_that_no_waiting_mends_is_given_first() {
    let stale = UpdateFacts {
        maintenance_conflict: true,
        ..ALL_ALLOWED
    };
    for state in ["live", "creating", "updating (given up)", "deleting"] {
        let reply = answer(state, update_under(stale, change(), impossibly()));
        assert_eq!(reply, Err(Refusal::MaintenanceConflict), "{state}");
    }
    let reply = answer("live", provision(other_parameters(), impossibly()));
    assert_eq!(reply, Err(Refusal::Conflict(Resource::Instance)));
    let reply = answer("absent", deprovision(impossibly()));
    assert_eq!(reply, Err(Refusal::AsyncRequired));
}

#[test]
fn a_late_result_of_another_operation_changes_nothing() {
    for state in INSTANCE_STATES {
        for operation in [OTHER, FIRST] {
            let end = End::Succeeded(instance_output());
            let decision = decided(state, ended(operation, end));
            assert_eq!(decision.next, instance(state), "{state}");
            assert!(decision.effects.is_empty(), "{state}");
        }
    }
}

#[test]
fn nothing_is_said_of_a_delete_that_still_waits() {
    let state = "deleting over a create";
    let says = [
        ended(DELETE, End::Succeeded(HookOutput::default())),
        Event::Saved {
            operation: DELETE,
            state: saved(),
        },
    ];
    for event in says {
        assert_eq!(decided(state, event).next, instance(state));
    }
}

#[test]
fn the_running_operations_of_an_instance_are_never_swept() {
    let pins = |state| instance(state).pins();
    assert_eq!(pins("creating again"), [CREATE]);
    assert_eq!(pins("updating"), [UPDATE]);
    assert_eq!(pins("deleting"), [DELETE]);
    assert_eq!(pins("deleting over a create"), [CREATE, DELETE]);
}

#[test]
fn the_end_of_a_binding_wakes_only_what_waits_for_bindings() {
    for state in INSTANCE_STATES {
        let waits = matches!(
            state,
            "updating" | "updating (given up)" | "deleting" | "deleting a failed create"
        );
        let at = instance(state);
        assert_eq!(at.awaits_bindings().is_some(), waits, "{state}");
    }
}
