//! Rules of a binding, one test each.

use crate::lifecycle::binding::{
    Bind, Binding, BindingSpec, Event, HookOutput, Parent, Unbind, decide, fetch,
};
use crate::lifecycle::tests::fixtures::{
    BINDING_STATES, CREATE, DELETE, NEW, OTHER, async_request, asynchronously, binding,
    binding_output, binding_spec, impossibly, kept, synchronously, value,
};
use crate::lifecycle::{
    AsyncRequest, Asynchrony, Decision, Effect, End, Reply, ResponseMode, Verb,
};
use crate::refusal::{Refusal, Resource};
use serde_json::json;
use sutler_journal::OperationId;

const BUSY: Parent = Parent::Busy("The service instance is being updated.");

fn bind(wanted: BindingSpec, async_request: AsyncRequest) -> Bind {
    Bind {
        same: binding_spec().same_request(&wanted),
        wanted: wanted.into(),
        parent: Parent::Live,
        against: None,
        async_request,
    }
}

fn put(asked: Bind) -> Event {
    Event::Bind(Box::new(asked))
}

fn unbind(async_request: AsyncRequest) -> Unbind {
    Unbind {
        ids_given: true,
        parent: Parent::Live,
        cascade: false,
        force: false,
        async_request,
    }
}

fn ended(operation: OperationId, end: End<HookOutput>) -> Event {
    Event::Ended { operation, end }
}

fn decided(state: &str, event: Event) -> Decision<Binding> {
    decide(binding(state), event).expect("not refused")
}

fn answer(state: &str, event: Event) -> Result<Reply, Refusal> {
    decide(binding(state), event).map(|decision| decision.reply)
}

fn other() -> BindingSpec {
    BindingSpec {
        parameters: value(json!({"role": "writer"})),
        ..binding_spec()
    }
}

/// Holds: B-081, B-182.
#[test]
fn a_bind_whose_caller_waits_starts_one_operation_and_answers_with_its_result() {
    let decision = decided("absent", put(bind(binding_spec(), synchronously())));
    assert_eq!(decision.reply, Reply::Started(NEW, ResponseMode::Inline));
    assert_eq!(decision.effects, [Effect::Start(Verb::Bind, NEW)]);
    let end = ended(NEW, End::Succeeded(binding_output()));
    let next = decide(decision.next, end).expect("not refused").next;
    let given = fetch(&next).expect("it is live").given.clone();
    assert!(given == Some(*binding_output().given));
}

/// Holds: B-183, D-03.
#[test]
fn an_identical_bind_of_a_live_binding_is_already_done_in_both_modes() {
    for asked in [synchronously(), asynchronously(), impossibly()] {
        let reply = answer("live", put(bind(binding_spec(), asked)));
        assert_eq!(reply, Ok(Reply::AlreadyDone), "{asked:?}");
    }
}

/// Holds: B-087, B-184, B-242.
#[test]
fn a_repeated_bind_or_unbind_joins_the_operation_under_way() {
    let reply = answer("creating", put(bind(binding_spec(), asynchronously())));
    assert_eq!(reply, Ok(Reply::Joined(CREATE)));
    for state in [
        "deleting",
        "deleting a failed create",
        "deleting over a create",
    ] {
        let reply = answer(state, Event::Unbind(unbind(asynchronously())));
        assert_eq!(reply, Ok(Reply::Joined(DELETE)), "{state}");
    }
}

/// Holds: B-186.
#[test]
fn a_different_bind_of_a_taken_id_conflicts() {
    for state in ["creating", "creating again", "live"] {
        let reply = answer(state, put(bind(other(), asynchronously())));
        assert_eq!(reply, Err(Refusal::Conflict(Resource::Binding)), "{state}");
    }
}

/// Holds: B-186, B-202.
#[test]
fn service_plan_parameters_application_and_predecessor_make_a_bind_different_and_the_context_not() {
    let differing = [
        BindingSpec {
            service_id: value(json!("queue")),
            ..binding_spec()
        },
        BindingSpec {
            plan_id: value(json!("large")),
            ..binding_spec()
        },
        other(),
        BindingSpec {
            bind_resource: Some(value(json!({"route": "r"}))),
            ..binding_spec()
        },
        BindingSpec {
            app_guid: None,
            ..binding_spec()
        },
        BindingSpec {
            predecessor: Some(value(json!("old"))),
            ..binding_spec()
        },
    ];
    for wanted in differing {
        assert!(!binding_spec().same_request(&wanted), "{wanted:?}");
    }
    let context = Some(value(json!({"platform": "kubernetes"})));
    assert!(binding_spec().same_request(&BindingSpec {
        context,
        ..binding_spec()
    }));
}

/// Holds: B-187, B-200.
#[test]
fn what_the_plan_has_against_a_new_binding_is_said_and_old_bindings_do_not_mind() {
    let objections = [
        Refusal::RequiresApp,
        Refusal::Invalid("not rotatable".to_owned()),
    ];
    for objection in objections {
        let event = || {
            let against = Some(objection.clone());
            put(Bind {
                against,
                ..bind(binding_spec(), impossibly())
            })
        };
        for state in ["absent", "create-failed", "gone"] {
            assert_eq!(answer(state, event()), Err(objection.clone()), "{state}");
        }
        assert_eq!(answer("live", event()), Ok(Reply::AlreadyDone));
    }
}

/// Holds: B-083, B-188, B-244.
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
        let reply = answer(state, put(bind(binding_spec(), impossibly())));
        assert_eq!(reply, refused, "{state}");
    }
    for state in BINDING_STATES {
        let reply = answer(state, Event::Unbind(unbind(impossibly())));
        assert_eq!(reply, refused, "{state}");
    }
}

/// Holds: B-085.
#[test]
fn a_synchronous_plan_ignores_accepts_incomplete() {
    let asked = async_request(Asynchrony::Never, true);
    let inline = Ok(Reply::Started(NEW, ResponseMode::Inline));
    assert_eq!(answer("absent", put(bind(binding_spec(), asked))), inline);
    assert_eq!(answer("live", Event::Unbind(unbind(asked))), inline);
}

/// Holds: B-087, B-091, B-188.
#[test]
fn a_new_binding_waits_for_the_operation_on_its_instance_and_an_old_one_does_not() {
    let event = || {
        put(Bind {
            parent: BUSY,
            ..bind(binding_spec(), asynchronously())
        })
    };
    for state in ["absent", "create-failed", "gone"] {
        assert!(
            matches!(answer(state, event()), Err(Refusal::Busy(_))),
            "{state}"
        );
    }
    assert_eq!(answer("live", event()), Ok(Reply::AlreadyDone));
    assert_eq!(answer("creating", event()), Ok(Reply::Joined(CREATE)));
}

/// Holds: B-198, D-12, D-13.
#[test]
fn nothing_is_bound_to_an_instance_that_is_not_there() {
    let event = put(Bind {
        parent: Parent::Missing,
        ..bind(binding_spec(), asynchronously())
    });
    assert_eq!(
        answer("absent", event),
        Err(Refusal::NotFound(Resource::Instance))
    );
}

/// Holds: B-232.
#[test]
fn a_binding_that_is_not_there_yet_or_no_more_is_not_found() {
    for state in BINDING_STATES.into_iter().filter(|state| *state != "live") {
        let missing = Err(Refusal::NotFound(Resource::Binding));
        assert_eq!(fetch(&binding(state)), missing, "{state}");
    }
    assert!(fetch(&binding("live")).is_ok());
}

/// Holds: B-240, B-243, D-06.
#[test]
fn an_unbind_without_service_and_plan_is_invalid_unless_there_is_nothing_to_unbind() {
    let event = || {
        Event::Unbind(Unbind {
            ids_given: false,
            ..unbind(asynchronously())
        })
    };
    for state in BINDING_STATES {
        let reply = answer(state, event());
        match state {
            "absent" | "gone" => assert_eq!(reply, Err(Refusal::Gone(Resource::Binding))),
            _ => assert!(matches!(reply, Err(Refusal::Invalid(_))), "{state}"),
        }
    }
}

/// Holds: B-242, B-243, D-13.
#[test]
fn an_unbind_removes_what_is_there_and_an_unknown_binding_is_gone() {
    let started = decided("live", Event::Unbind(unbind(synchronously())));
    assert_eq!(started.reply, Reply::Started(NEW, ResponseMode::Inline));
    let end = ended(NEW, End::Succeeded(HookOutput::default()));
    let next = decide(started.next, end).expect("not refused").next;
    assert_eq!(next, Binding::gone(NEW));
    for state in ["absent", "gone"] {
        let reply = answer(state, Event::Unbind(unbind(asynchronously())));
        assert_eq!(reply, Err(Refusal::Gone(Resource::Binding)), "{state}");
    }
}

/// Holds: B-244.
#[test]
fn an_unbind_waits_for_the_operation_on_its_instance_unless_that_takes_its_bindings_along() {
    for state in ["creating", "create-failed", "live"] {
        let asked = Unbind {
            parent: BUSY,
            ..unbind(asynchronously())
        };
        let reply = answer(state, Event::Unbind(asked));
        assert!(matches!(reply, Err(Refusal::Busy(_))), "{state}");
        let cascade = Event::Unbind(Unbind {
            cascade: true,
            ..asked
        });
        let begun = Ok(Reply::Started(NEW, ResponseMode::Background));
        assert_eq!(answer(state, cascade), begun, "{state}");
    }
}

/// Holds: B-245.
#[test]
fn an_unbind_over_a_bind_halts_it_waits_for_its_end_and_then_deletes() {
    let accepted = decided("creating", Event::Unbind(unbind(asynchronously())));
    let halting = [
        Effect::Cancel(CREATE),
        Effect::StartWaiting(Verb::Unbind, NEW),
    ];
    assert_eq!(accepted.effects, halting);
    for end in [End::Succeeded(binding_output()), End::Failed, End::Refused] {
        let woken = decide(accepted.next.clone(), ended(CREATE, end)).expect("not refused");
        assert_eq!(woken.effects, [Effect::Wake(NEW)]);
        let failed = decide(woken.next, ended(NEW, End::Failed)).expect("not refused");
        assert!(
            matches!(failed.next, Binding::CreateFailed { .. }),
            "never live"
        );
    }
}

#[test]
fn a_bind_over_a_failed_one_goes_on_with_what_that_saved() {
    for wanted in [binding_spec(), other()] {
        let next = decided("create-failed", put(bind(wanted.clone(), asynchronously()))).next;
        let data = next.data().expect("it is being made");
        assert_eq!((&*data.spec, &data.state), (&wanted, &kept()));
    }
}

/// A refusal made nothing, but the attempt before it may have: forgetting it would leave an orphan.
#[test]
fn a_refused_bind_over_a_failed_one_leaves_something_to_delete() {
    let begun = decided("create-failed", put(bind(binding_spec(), asynchronously())));
    let refused = decide(begun.next, ended(NEW, End::Refused)).expect("not refused");
    assert!(matches!(refused.next, Binding::CreateFailed { .. }));
    let first = decided("creating", ended(CREATE, End::Refused));
    assert_eq!(first.next, Binding::refused(CREATE));
}

#[test]
fn a_late_result_of_another_operation_changes_nothing() {
    for state in BINDING_STATES {
        let decision = decided(state, ended(OTHER, End::Succeeded(binding_output())));
        assert_eq!(decision.next, binding(state), "{state}");
        assert!(decision.effects.is_empty(), "{state}");
    }
}

#[test]
fn the_running_operations_of_a_binding_are_never_swept_and_make_it_busy() {
    assert_eq!(binding("creating again").pins(), [CREATE]);
    assert_eq!(binding("deleting").pins(), [DELETE]);
    assert_eq!(binding("deleting over a create").pins(), [CREATE, DELETE]);
    for state in BINDING_STATES {
        let works = state.starts_with("creating") || state.starts_with("deleting");
        assert_eq!(binding(state).is_busy(), works, "{state}");
    }
}
