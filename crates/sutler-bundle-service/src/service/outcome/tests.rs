//! Every end of a run of every action, one line each.

use super::{Ending, Outcome, conclude};
use serde_json::{Value, json};
use sutler_bundle::{Action, OnLost};
use sutler_runner::{Exit, RunName, RunResult, Vars};
use uuid::Uuid;

fn vars(value: Value) -> Option<Vars> {
    Some(Vars(serde_json::from_value(value).expect("an object")))
}

fn run() -> RunName {
    RunName {
        operation: Uuid::from_u128(7),
        attempt: 1,
    }
}

fn gave_all() -> RunResult {
    RunResult {
        credentials: vars(json!({ "user": "u" })),
        state: vars(json!({ "db": "d" })),
        binding_state: vars(json!({ "login": "l" })),
        ..RunResult::default()
    }
}

fn ended(action: Action, exit: Exit, result: RunResult) -> Outcome {
    conclude(action, run(), Ending::Exited(exit), result, OnLost::Fail)
}

/// The outcome as a word: `done+` is success with credentials, `aside` a failure with state put aside.
fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done(result) if result.credentials.is_some() => "done+",
        Outcome::Done(_) => "done",
        Outcome::NothingToDo => "nothing",
        Outcome::Failed { aside: Some(_), .. } => "aside",
        Outcome::Failed { aside: None, .. } => "failed",
        Outcome::Unsupported(_) => "unsupported",
        Outcome::Again { .. } => "again",
    }
}

/// Provision, update, deprovision, bind, unbind.
const TABLE: [(Exit, [&str; 5]); 8] = [
    (Exit::Code(0), ["done+", "done+", "done", "done+", "done"]),
    (
        Exit::Code(8),
        ["aside", "unsupported", "failed", "aside", "nothing"],
    ),
    (Exit::Code(1), FAILED),
    (Exit::Code(255), FAILED),
    (Exit::Signal(9), FAILED),
    (Exit::Deadline, FAILED),
    (Exit::Stopped, FAILED),
    (Exit::Memory, FAILED),
];
const FAILED: [&str; 5] = ["aside", "failed", "failed", "aside", "failed"];

#[test]
fn every_exit_of_every_action_has_the_outcome_of_the_table() {
    let actions = [
        Action::Provision,
        Action::Update,
        Action::Deprovision,
        Action::Bind,
        Action::Unbind,
    ];
    for (exit, expected) in TABLE {
        for (action, expected) in actions.into_iter().zip(expected) {
            let outcome = ended(action, exit.clone(), gave_all());
            assert_eq!(word(&outcome), expected, "{action} with {exit:?}");
        }
    }
}

#[test]
fn a_lost_run_is_rerun_or_fails_according_to_the_manifest() {
    for action in Action::ALL {
        let lost = |policy| {
            let ending = Ending::Lost("the host restarted".to_owned());
            conclude(action, run(), ending, RunResult::default(), policy)
        };
        assert_eq!(word(&lost(OnLost::Rerun)), "again", "{action}");
        assert_eq!(word(&lost(OnLost::Fail)), "failed", "{action}");
    }
}

#[test]
fn a_run_that_may_still_be_at_work_is_never_made_again() {
    for action in Action::ALL {
        let ending = Ending::Unreachable("the host does not answer".to_owned());
        let outcome = conclude(action, run(), ending, RunResult::default(), OnLost::Rerun);
        assert_eq!(word(&outcome), "failed", "{action}");
    }
}

#[test]
fn state_set_by_a_lost_run_is_put_aside() {
    for action in [Action::Provision, Action::Bind] {
        let lost = |policy| {
            let ending = Ending::Lost("the host restarted".to_owned());
            conclude(action, run(), ending, gave_all(), policy)
        };
        assert_eq!(word(&lost(OnLost::Fail)), "aside", "{action}");
        let again = lost(OnLost::Rerun);
        let kept = matches!(again, Outcome::Again { aside: Some(_), .. });
        assert!(
            kept,
            "{action}: the next attempt knows of it, and not {again:?}"
        );
    }
}

/// Regression: R38.
#[test]
fn a_provision_need_not_give_credentials_and_a_bind_must() {
    for action in [Action::Provision, Action::Update] {
        assert_eq!(
            word(&ended(action, Exit::Code(0), RunResult::default())),
            "done"
        );
    }
    let Outcome::Failed { sentence, .. } = ended(Action::Bind, Exit::Code(0), RunResult::default())
    else {
        panic!("a bind without credentials has failed");
    };
    assert!(sentence.contains("credentials.json"), "{sentence}");
}

#[test]
fn the_user_reads_the_bundles_own_sentence_or_a_pointer_to_the_log() {
    let sentence_of = |error: Option<&str>| {
        let result = RunResult {
            error: error.map(str::to_owned),
            ..RunResult::default()
        };
        match ended(Action::Provision, Exit::Code(3), result) {
            Outcome::Failed { sentence, .. } => sentence,
            other => panic!("it failed, and not {other:?}"),
        }
    };
    assert_eq!(sentence_of(Some(" No room left. \n")), "No room left.");
    assert_eq!(sentence_of(Some("a\u{7}b")), "a b");
    for nothing in [None, Some("  \n")] {
        let sentence = sentence_of(nothing);
        assert!(sentence.contains("exit code 3"), "{sentence}");
        assert!(sentence.contains("sutler admin logs"), "{sentence}");
    }
    assert_eq!(sentence_of(Some(&"x".repeat(5_000))).len(), 1_000);
}

#[test]
fn an_invalid_result_fails_the_run_and_leaves_the_rest_for_clean_up() {
    for action in [Action::Provision, Action::Bind] {
        let result = RunResult {
            credentials: None,
            refused: vec!["credentials.json is no JSON.".to_owned()],
            ..gave_all()
        };
        let outcome = ended(action, Exit::Code(0), result);
        assert_eq!(word(&outcome), "aside", "{action}");
        let Outcome::Failed { sentence, .. } = outcome else {
            panic!("{action}: it did not fail");
        };
        assert!(sentence.starts_with("credentials.json"), "{sentence}");
    }
}
