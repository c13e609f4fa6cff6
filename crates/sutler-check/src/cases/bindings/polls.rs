//! Polls of binding operations: to the end, repeated, and with other parameters.

use super::LiveBinding;
use crate::case::Case;
use crate::cases::LiveInstance;
use crate::client::StopReason;
use crate::created::BindingId;
use crate::exchange::Exchange;
use crate::plan_run::{PlanRun, PollEnd};
use crate::target::Target;
use serde_json::Value;
use std::sync::Arc;
use sutler_client::wire::Method;

const SUCCEEDS: Case = Case::must(
    "bind-polled",
    "B-110",
    "Polls of a bind are answered with 200 and its state, until it succeeds.",
);

const HINTS: Case = Case::must(
    "binding-poll-without-hints",
    "B-110",
    "A poll of a binding needs neither `service_id` nor `plan_id`.",
);

const EMPTY: Case = Case::must(
    "binding-poll-empty-operation",
    "B-110",
    "A poll of a binding with an empty `operation` is malformed and answered with 400.",
);

const AGAIN: Case = Case::should(
    "binding-poll-again",
    "B-110",
    "How a bind ended is told again to who asks again.",
);

const UNKNOWN: Case = Case::must(
    "binding-poll-unknown",
    "B-111",
    "A poll of a binding that does not exist is answered with 404.",
);

pub(crate) const CASES: &[&Case] = &[&SUCCEEDS, &HINTS, &EMPTY, &AGAIN, &UNKNOWN];

/// Polls a bind to its end, which must be success, and polls once more.
pub(crate) async fn to_success(
    run: &PlanRun,
    id: &BindingId,
    accepted: &Exchange,
) -> Result<PollEnd, StopReason> {
    let target = Target::Binding(id);
    let polled = run.poll_to_end(target, accepted).await?;
    let last = polled.last();
    run.record(&SUCCEEDS, last, success(polled.ended, last));
    if polled.ended == PollEnd::Succeeded {
        let again = run.poll(target, Some(accepted)).await?;
        run.record(&AGAIN, &again, still_succeeded(&again));
    }
    Ok(polled.ended)
}

/// Records why the operation of a synchronous binding was not polled.
pub(crate) fn synchronous(run: &PlanRun) {
    for case in [&SUCCEEDS, &HINTS, &EMPTY, &AGAIN] {
        run.skip(case, super::create::SYNCHRONOUS);
    }
}

/// Polls a binding that never existed.
pub(crate) async fn unknown(run: &PlanRun, live: &LiveInstance) -> Result<(), StopReason> {
    let absent_id = BindingId::new(&live.id);
    let answer = run.poll(Target::Binding(&absent_id), None).await?;
    run.record(&UNKNOWN, &answer, answer.must_be(&[404]));
    Ok(())
}

/// Polls a finished bind with other parameters.
pub(crate) async fn other_ways(run: &PlanRun, bound: &LiveBinding) -> Result<(), StopReason> {
    if !bound.was_asynchronous() {
        return Ok(());
    }
    let (target, accepted) = (bound.target(), &bound.made_by);
    let mut bare = target.request(Method::Get);
    bare.path.push("last_operation".to_owned());
    let operation = accepted.field("operation").and_then(Value::as_str);
    let request = match operation {
        Some(operation) => bare.query("operation", operation),
        None => bare,
    };
    let answer = run.client.ask(request).await?;
    run.record(&HINTS, &answer, answer.must_be(&[200]));
    let request = target.poll(&run.owner(), Some(""));
    let answer = run.client.ask(request).await?;
    run.record(&EMPTY, &answer, answer.must_be(&[400]));
    Ok(())
}

fn success(ended: PollEnd, last: &Exchange) -> Result<(), String> {
    match ended {
        PollEnd::Succeeded => Ok(()),
        PollEnd::Failed => Err("the bind failed".to_owned()),
        PollEnd::Gone => Err("polls of a bind were answered with 410".to_owned()),
        PollEnd::Invalid => Err(format!(
            "expected 200 with a `state`, got {} without one",
            last.got()
        )),
        PollEnd::Overdue => Err("the bind took too long".to_owned()),
    }
}

fn still_succeeded(again: &Arc<Exchange>) -> Result<(), String> {
    again.must_be(&[200])?;
    match again.field("state").and_then(Value::as_str) {
        Some("succeeded") => Ok(()),
        Some(other) => Err(format!("said `succeeded` first, and then {other:?}")),
        None => Err("said `succeeded` first, and then no `state`".to_owned()),
    }
}
