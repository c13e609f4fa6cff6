//! One test per rule, named after the behaviour.
//!
//! The tables in `tests/transitions/` cover every state and event; here a reader finds a line of the checklist
//! by its meaning. Instances are in `rules/instance.rs`, bindings in `rules/binding.rs`, rules of both below.

mod binding;
mod instance;

use super::fixtures::{NEW, OTHER, async_request};
use crate::lifecycle::{Asynchrony, Reply, ResponseMode};
use crate::refusal::Refusal;

/// Holds: B-082, B-083, B-084, B-085.
#[test]
fn what_the_plan_and_the_platform_say_decides_who_waits() {
    let cases = [
        (Asynchrony::Never, false, Ok(ResponseMode::Inline)),
        (Asynchrony::Never, true, Ok(ResponseMode::Inline)),
        (Asynchrony::Preferred, false, Ok(ResponseMode::Inline)),
        (Asynchrony::Preferred, true, Ok(ResponseMode::Background)),
        (Asynchrony::Required, true, Ok(ResponseMode::Background)),
        (Asynchrony::Required, false, Err(Refusal::AsyncRequired)),
    ];
    for (rule, accepts_incomplete, mode) in cases {
        assert_eq!(
            async_request(rule, accepts_incomplete).response_mode(),
            mode,
            "{rule:?}"
        );
    }
}

/// Holds: B-082, B-083, B-087.
#[test]
fn who_joins_gets_the_running_operation_and_never_a_202_it_did_not_ask_for() {
    for rule in [
        Asynchrony::Never,
        Asynchrony::Preferred,
        Asynchrony::Required,
    ] {
        assert_eq!(
            async_request(rule, true).join(OTHER),
            Ok(Reply::Joined(OTHER)),
            "{rule:?}"
        );
        assert_ne!(
            async_request(rule, true).join(OTHER),
            Ok(Reply::Joined(NEW)),
            "{rule:?}"
        );
    }
    let without = |rule| async_request(rule, false).join(OTHER);
    assert_eq!(without(Asynchrony::Preferred), Ok(Reply::Joined(OTHER)));
    assert_eq!(without(Asynchrony::Required), Err(Refusal::AsyncRequired));
}
