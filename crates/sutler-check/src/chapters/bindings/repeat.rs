//! A bind that is asked for again: the same once more, and something else under the same id.

use super::ask::{self, Other};
use super::{Bound, given};
use crate::asker::Stop;
use crate::case::Case;
use crate::exchange::Exchange;
use crate::stage::Stage;
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

/// Why 409 could not be seen.
pub(crate) const OTHERS_REFUSED: &str =
    "the broker refuses the other parameters that were tried, whatever the id";

/// Repeats a bind that is done; tells whether any answer held credentials.
pub(crate) async fn walk(stage: &Stage, bound: &Bound) -> Result<bool, Stop> {
    let mut credentials = bound.answers().any(|it| given::credentials(it).is_some());
    let mut modes = vec![true];
    if !bound.manner.incomplete {
        modes.push(false);
    }
    for incomplete in modes {
        let answer = stage.put(bound.target(), &bound.body, incomplete).await?;
        stage.judge(&DONE, &answer, answer.must_be(&[200]));
        if !answer.is(&[200]) {
            stage.skip(&SAME, "the repeated bind was not answered with 200");
            continue;
        }
        credentials |= given::credentials(&answer).is_some();
        for known in bound.answers() {
            stage.judge(&SAME, &answer, given::same(known, &answer));
        }
    }
    let other = match ask::other(stage, &bound.body) {
        Other::Body(other) => other,
        Other::None(reason) => {
            stage.skip(&CONFLICT, &reason);
            return Ok(credentials);
        }
    };
    let incomplete = bound.manner.incomplete;
    let answer = stage.put(bound.target(), &other, incomplete).await?;
    judge_conflict(stage, &CONFLICT, &answer);
    Ok(credentials)
}

/// Judges the answer to a bind with other parameters under an id that is taken.
pub(crate) fn judge_conflict(stage: &Stage, case: &'static Case, answer: &Arc<Exchange>) {
    match conflict(answer) {
        Some(judgement) => stage.judge(case, answer, judgement),
        None => stage.skip(case, OTHERS_REFUSED),
    }
}

/// What an answer shows about the conflict; none if the parameters were refused for themselves.
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
