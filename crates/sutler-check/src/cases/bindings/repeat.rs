//! Repeated binds: the same request again, and a different one with the same id.

use super::bind_body::{self, OtherBind};
use super::{LiveBinding, binding_contents};
use crate::case::Case;
use crate::client::StopReason;
use crate::exchange::Exchange;
use crate::plan_run::PlanRun;
use std::sync::Arc;

const DONE: Case = Case::should(
    "bind-repeat-done",
    "B-183",
    "A bind that asks for the binding that is there is answered with 200.",
);

const SAME: Case = Case::should(
    "bind-repeat-same",
    "B-190",
    "What a repeated bind gives is what the first one gave, or nothing.",
);

const CONFLICT: Case = Case::must(
    "bind-conflict",
    "B-186",
    "A bind with other parameters under an id that is taken is answered with 409.",
);

pub(crate) const CASES: &[&Case] = &[&DONE, &SAME, &CONFLICT];

/// Reason if 409 could not be observed.
pub(crate) const OTHERS_REFUSED: &str =
    "the broker refuses the other parameters that were tried, whatever the id";

/// Repeats a finished bind; returns whether any answer contained credentials.
pub(crate) async fn walk(run: &PlanRun, bound: &LiveBinding) -> Result<bool, StopReason> {
    let mut credentials = bound
        .answers()
        .any(|it| binding_contents::credentials(it).is_some());
    let mut modes = vec![true];
    if !bound.mode.incomplete {
        modes.push(false);
    }
    for incomplete in modes {
        let answer = run.put(bound.target(), &bound.body, incomplete).await?;
        run.record(&DONE, &answer, answer.must_be(&[200]));
        if !answer.is(&[200]) {
            run.skip(&SAME, "the repeated bind was not answered with 200");
            continue;
        }
        credentials |= binding_contents::credentials(&answer).is_some();
        for known in bound.answers() {
            run.record(&SAME, &answer, binding_contents::same(known, &answer));
        }
    }
    let other = match bind_body::other(run, &bound.body) {
        OtherBind::Body(other) => other,
        OtherBind::None(reason) => {
            run.skip(&CONFLICT, &reason);
            return Ok(credentials);
        }
    };
    let incomplete = bound.mode.incomplete;
    let answer = run.put(bound.target(), &other, incomplete).await?;
    check_conflict(run, &CONFLICT, &answer);
    Ok(credentials)
}

/// Checks the answer to a bind with other parameters and a used id.
pub(crate) fn check_conflict(run: &PlanRun, case: &'static Case, answer: &Arc<Exchange>) {
    match conflict(answer) {
        Some(judgement) => run.record(case, answer, judgement),
        None => run.skip(case, OTHERS_REFUSED),
    }
}

/// Verdict about the conflict; `None` if the parameters themselves were refused.
fn conflict(answer: &Exchange) -> Option<Result<(), String>> {
    match answer.status() {
        Some(409) => Some(Ok(())),
        Some(422) if answer.must_be_error(422, "ConcurrencyError").is_ok() => Some(Ok(())),
        Some(400..=499) => None,
        _ => Some(answer.must_be(&[409])),
    }
}

#[cfg(test)]
mod tests {
    use super::conflict;
    use crate::exchange::Exchange;
    use serde_json::json;

    #[test]
    fn a_conflict_is_409_or_busy_and_a_refusal_of_the_parameters_shows_nothing() {
        let judged = |status, body| conflict(&Exchange::answered(status, &body));
        assert_eq!(judged(409, json!({})), Some(Ok(())));
        let busy = json!({ "error": "ConcurrencyError" });
        assert_eq!(judged(422, busy), Some(Ok(())));
        assert_eq!(judged(400, json!({})), None);
        assert_eq!(judged(422, json!({})), None);
        for status in [200, 201, 202, 500] {
            assert!(judged(status, json!({})).unwrap().is_err());
        }
    }
}
