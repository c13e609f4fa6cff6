//! The last operation of bindings: polled to its end, asked again, asked in other ways.

use super::Bound;
use crate::asker::Stop;
use crate::case::Case;
use crate::chapters::Live;
use crate::exchange::Exchange;
use crate::ledger::BindingId;
use crate::stage::{Ended, Stage};
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

/// Polls a bind to its end, which has to be success, and asks once more.
pub(crate) async fn to_success(
    stage: &Stage,
    id: &BindingId,
    accepted: &Exchange,
) -> Result<Ended, Stop> {
    let target = Target::Binding(id);
    let polled = stage.poll_to_end(target, accepted).await?;
    let last = polled.last();
    stage.judge(&SUCCEEDS, last, success(polled.ended, last));
    if polled.ended == Ended::Succeeded {
        let again = stage.poll(target, Some(accepted)).await?;
        stage.judge(&AGAIN, &again, still_succeeded(&again));
    }
    Ok(polled.ended)
}

/// Says of a binding that was made at once why its operation was not polled.
pub(crate) fn synchronous(stage: &Stage) {
    for case in [&SUCCEEDS, &HINTS, &EMPTY, &AGAIN] {
        stage.skip(case, super::create::SYNCHRONOUS);
    }
}

/// Polls what never was.
pub(crate) async fn unknown(stage: &Stage, live: &Live) -> Result<(), Stop> {
    let nobody = BindingId::new(&live.id);
    let answer = stage.poll(Target::Binding(&nobody), None).await?;
    stage.judge(&UNKNOWN, &answer, answer.must_be(&[404]));
    Ok(())
}

/// Polls a bind that is done in other ways.
pub(crate) async fn other_ways(stage: &Stage, bound: &Bound) -> Result<(), Stop> {
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
    let answer = stage.asker.ask(request).await?;
    stage.judge(&HINTS, &answer, answer.must_be(&[200]));
    let request = target.poll(&stage.owner(), Some(""));
    let answer = stage.asker.ask(request).await?;
    stage.judge(&EMPTY, &answer, answer.must_be(&[400]));
    Ok(())
}

fn success(ended: Ended, last: &Exchange) -> Result<(), String> {
    match ended {
        Ended::Succeeded => Ok(()),
        Ended::Failed => Err("the bind failed".to_owned()),
        Ended::Gone => Err("polls of a bind were answered with 410".to_owned()),
        Ended::Invalid => Err(format!(
            "expected 200 with a `state`, got {} without one",
            last.got()
        )),
        Ended::Overdue => Err("the bind took too long".to_owned()),
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
