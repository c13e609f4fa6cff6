//! Cases about polls of existing, deleted and unknown instances.
//!
//! The form of the answers is checked in `response_rules.rs`.

use super::LiveInstance;
use crate::case::Case;
use crate::client::StopReason;
use crate::exchange::Exchange;
use crate::plan_run::{PlanRun, PollResult};
use serde_json::Value;
use sutler_client::wire::{Method, Request};

pub(super) const UNKNOWN: Case = Case::must(
    "last-operation-unknown",
    "B-104",
    "A poll of an instance that does not exist is answered with 404.",
);
const EMPTY_OPERATION: Case = Case::must(
    "last-operation-empty",
    "B-103",
    "A poll with an empty `operation` is answered with 400.",
);
const NEVER_GONE: Case = Case::must(
    "last-operation-410",
    "B-105",
    "A poll is never answered with 410 for a provision or an update.",
);
const AGAIN: Case = Case::should(
    "last-operation-again",
    "B-106",
    "A poll after the end tells the end again.",
);
const WITHOUT_HINTS: Case = Case::must(
    "last-operation-hints",
    "B-108",
    "A poll without `service_id` and `plan_id` is answered like one with them.",
);
const WITHOUT_OPERATION: Case = Case::may(
    "last-operation-unnamed",
    "B-108",
    "A poll without `operation` is answered with the state of the latest operation.",
);
const OTHER_OPERATION: Case = Case::may(
    "last-operation-other",
    "B-103",
    "A poll with an `operation` that the broker does not know is answered with the state of the latest one.",
);
pub(super) const OLD_PLAN: Case = Case::must(
    "last-operation-old-plan",
    "B-108",
    "A poll about a change of plans is answered when it names the plan before the change.",
);

pub(crate) const CASES: &[&Case] = &[
    &UNKNOWN,
    &EMPTY_OPERATION,
    &NEVER_GONE,
    &AGAIN,
    &WITHOUT_HINTS,
    &WITHOUT_OPERATION,
    &OTHER_OPERATION,
    &OLD_PLAN,
];

/// Polls of an instance whose provision has ended.
pub(crate) async fn walk(run: &PlanRun, live: &LiveInstance) -> Result<(), StopReason> {
    if !live.is_async() {
        let cases = [&EMPTY_OPERATION, &AGAIN, &WITHOUT_HINTS, &WITHOUT_OPERATION];
        let reason = "the plan is provisioned synchronously: there is nothing to poll";
        run.skip_all(&cases, reason);
        run.skip_all(&[&OTHER_OPERATION, &NEVER_GONE], reason);
        return Ok(());
    }
    let again = run.poll(live.target(), Some(&live.first)).await?;
    run.record(&AGAIN, &again, succeeded(&again));
    let bare = poll(live, live.first.operation());
    let bare = run.client.ask(bare).await?;
    run.record(&WITHOUT_HINTS, &bare, has_state(&bare));
    let empty = run.client.ask(poll(live, Some(""))).await?;
    run.record(&EMPTY_OPERATION, &empty, empty.must_be(&[400]));
    let other = run.client.ask(poll(live, Some("sutler-check"))).await?;
    run.record(&OTHER_OPERATION, &other, has_state(&other));
    if live.first.operation().is_none() {
        run.skip(&WITHOUT_OPERATION, "the broker names no operations");
        return Ok(());
    }
    let unnamed = run.client.ask(poll(live, None)).await?;
    run.record(&WITHOUT_OPERATION, &unnamed, has_state(&unnamed));
    Ok(())
}

/// Checks the polls of a provision or an update.
pub(crate) fn judge_polls(run: &PlanRun, polled: &PollResult) {
    for answer in &polled.answers {
        let judgement = match answer.status() {
            Some(410) => Err("a provision or an update is not gone".to_owned()),
            _ => Ok(()),
        };
        run.record(&NEVER_GONE, answer, judgement);
    }
}

/// Fails unless the answer has the state of an operation.
pub(super) fn has_state(answer: &Exchange) -> Result<(), String> {
    answer.must_be(&[200])?;
    match answer.field("state") {
        Some(Value::String(_)) => Ok(()),
        _ => Err("there is no `state`".to_owned()),
    }
}

fn succeeded(answer: &Exchange) -> Result<(), String> {
    has_state(answer)?;
    match answer.field("state").and_then(Value::as_str) {
        Some("succeeded") => Ok(()),
        _ => Err("the operation had succeeded, and now it has not".to_owned()),
    }
}

/// A poll without hints.
fn poll(live: &LiveInstance, operation: Option<&str>) -> Request {
    let mut request = live.target().request(Method::Get);
    request.path.push("last_operation".to_owned());
    match operation {
        Some(operation) => request.query("operation", operation),
        None => request,
    }
}
