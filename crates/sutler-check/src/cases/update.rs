//! Updates that must succeed: parameters, context, without `accepts_incomplete`.
//!
//! Refused updates: `update_refusals.rs`; plan changes: `plan_change.rs`.

use super::refusal::{with, without};
use super::{
    ENDED_BEFORE, LiveInstance, after_update, compare, fetch_instance, last_operation,
    update_refusals,
};
use crate::case::Case;
use crate::client::StopReason;
use crate::exchange::Exchange;
use crate::params::{Parameters, Sample};
use crate::plan_run::{PlanRun, PollEnd};
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) const UNKNOWN: Case = Case::should(
    "update-unknown-instance",
    "B-173",
    "An update of an instance that does not exist is refused.",
);
const PARAMETERS: Case = Case::must(
    "update-parameters",
    "B-162",
    "An update of parameters is answered with 200 when it is done, with 202 while it goes on, and with 422 if it is not supported.",
);
const SAME_VERSION: Case = Case::must(
    "update-maintenance-same",
    "B-167",
    "An update with the catalog's own `maintenance_info.version` is no conflict.",
);
const CONTEXT: Case = Case::must(
    "update-context",
    "B-170",
    "An update of nothing but the context works where the catalog says `allow_context_updates`.",
);
const ENDS: Case = Case::must(
    "update-ends",
    "B-163",
    "An update that was answered with 202 goes on until polls tell its end.",
);
const REPEAT_RUNNING: Case = Case::must(
    "update-repeat-running",
    "B-163",
    "The same update again while it runs is answered with 202 and the same `operation`.",
);
const CONCURRENT: Case = Case::must(
    "update-concurrent",
    "B-168",
    "Another update while one runs is either served or answered with 422 ConcurrencyError.",
);
const ASYNC_REQUIRED: Case = Case::must(
    "update-async-required",
    "B-166",
    "An update that can only be done asynchronously is answered with 422 AsyncRequired without `accepts_incomplete=true`.",
);

pub(crate) const CASES: &[&Case] = &[
    &UNKNOWN,
    &PARAMETERS,
    &SAME_VERSION,
    &CONTEXT,
    &ENDS,
    &REPEAT_RUNNING,
    &CONCURRENT,
    &ASYNC_REQUIRED,
];

/// Cases that need an update in progress.
const OF_RUNNING: &[&Case] = &[&ENDS, &REPEAT_RUNNING, &CONCURRENT, &ASYNC_REQUIRED];

/// One update and its results.
pub(super) struct UpdateAttempt {
    pub body: Value,
    pub first: Arc<Exchange>,
    pub ended: PollEnd,
}

/// Sends all allowed kinds of updates.
pub(crate) async fn walk(run: &PlanRun, live: &mut LiveInstance) -> Result<(), StopReason> {
    update_refusals::walk(run, live).await?;
    let changed = parameters(run, live).await?;
    let context = context(run, live).await?;
    let ran = [&changed, &context]
        .into_iter()
        .flatten()
        .find(|it| it.first.is(&[202]));
    if let Some(change) = ran {
        without_incomplete(run, live, change).await?;
    }
    let kept = [&changed, &context].into_iter().flatten().next();
    live.update = kept.map(|it| it.body.clone());
    let reason = match kept {
        Some(_) => "no update was asynchronous",
        None => "no update was accepted",
    };
    run.skip_all(OF_RUNNING, reason);
    let reason = match live.fetched {
        Some(_) => "no such update was accepted",
        None => "instances cannot be fetched",
    };
    run.skip_all(after_update::CASES, reason);
    run.skip(&fetch_instance::UPDATING, "no update was seen running");
    Ok(())
}

/// Parameters for an update, and others if there are any. Empty ones would prove nothing.
fn two(sample: &Sample) -> Result<(Parameters, Option<Parameters>), String> {
    let other = sample.other().ok().cloned();
    match (sample.valid()?.cloned(), other) {
        (Some(valid), Some(other)) if valid.is_empty() => Ok((other, Some(valid))),
        (Some(valid), other) => Ok((valid, other)),
        (None, _) => {
            Err("the plan has no schema for updates, and no parameters were given".to_owned())
        }
    }
}

async fn parameters(
    run: &PlanRun,
    live: &mut LiveInstance,
) -> Result<Option<UpdateAttempt>, StopReason> {
    let (requested, _) = match two(&run.samples().update) {
        Ok(two) => two,
        Err(reason) => {
            run.skip_all(&[&PARAMETERS, &SAME_VERSION], &reason);
            return Ok(None);
        }
    };
    let mut body = with(&plain(run, live), "parameters", requested.clone());
    match run.maintenance_version() {
        Some(version) => body["maintenance_info"] = json!({"version": version}),
        None => run.skip(&SAME_VERSION, "the plan has no `maintenance_info`"),
    }
    let mut first = run.patch(live.target(), &body, true).await?;
    if run.maintenance_version().is_some() {
        let conflict = first.must_be_error(422, "MaintenanceInfoConflict").is_ok();
        let judgement = match conflict {
            true => Err("the version is the catalog's, and yet it was a conflict".to_owned()),
            false => Ok(()),
        };
        run.record(&SAME_VERSION, &first, judgement);
        if conflict {
            body = without(&body, "maintenance_info");
            first = run.patch(live.target(), &body, true).await?;
        }
    }
    if !accepted(run, &PARAMETERS, &first) {
        return Ok(None);
    }
    let change = finish(run, live, body, first).await?;
    if change.ended == PollEnd::Succeeded {
        after_update::shown(run, live, &change.first, Some(&requested), None).await?;
    }
    Ok(Some(change))
}

async fn context(
    run: &PlanRun,
    live: &mut LiveInstance,
) -> Result<Option<UpdateAttempt>, StopReason> {
    if !run.offering().flag("allow_context_updates") {
        run.skip(&CONTEXT, "the catalog does not say `allow_context_updates`");
        return Ok(None);
    }
    let mut body = without(&plain(run, live), "previous_values");
    body["context"]["instance_name"] = json!("sutler-check-renamed");
    let first = run.patch(live.target(), &body, true).await?;
    run.record(&CONTEXT, &first, first.must_be(&[200, 202]));
    if !first.is(&[200, 202]) {
        return Ok(None);
    }
    let change = finish(run, live, body, first).await?;
    if change.ended == PollEnd::Succeeded {
        after_update::shown(run, live, &change.first, None, None).await?;
    }
    Ok(Some(change))
}

/// Repeats an update that was asynchronous, without `accepts_incomplete`.
async fn without_incomplete(
    run: &PlanRun,
    live: &mut LiveInstance,
    ran: &UpdateAttempt,
) -> Result<(), StopReason> {
    let mut body = ran.body.clone();
    if let (Some(_), Ok((_, Some(other)))) = (body.get("parameters"), two(&run.samples().update)) {
        body["parameters"] = json!(other);
    }
    let answer = run.patch(live.target(), &body, false).await?;
    let judgement = match answer.status() {
        Some(200) => Ok(()),
        _ => answer.must_be_error(422, "AsyncRequired"),
    };
    run.record(&ASYNC_REQUIRED, &answer, judgement);
    if answer.is(&[202]) {
        run.poll_to_end(live.target(), &answer).await?;
    }
    after_update::refresh(run, live).await.map(drop)
}

/// Whether an update was accepted. An unsupported one proves nothing.
pub(super) fn accepted(run: &PlanRun, case: &'static Case, first: &Arc<Exchange>) -> bool {
    let reserved = [
        "AsyncRequired",
        "ConcurrencyError",
        "MaintenanceInfoConflict",
    ];
    let error = first.field("error").and_then(Value::as_str);
    let is_reserved = error.is_some_and(|it| reserved.contains(&it));
    if first.is(&[422]) && !is_reserved {
        let reason = format!("the broker does not support it: {}", first.describe());
        run.skip(case, &reason);
        return false;
    }
    let judgement = match first.is(&[422]) {
        true => Err(format!("this is no case for {}", error.unwrap_or_default())),
        false => first.must_be(&[200, 202]),
    };
    let accepted = judgement.is_ok();
    run.record(case, first, judgement);
    accepted
}

/// Completes an accepted update.
pub(super) async fn finish(
    run: &PlanRun,
    live: &LiveInstance,
    body: Value,
    first: Arc<Exchange>,
) -> Result<UpdateAttempt, StopReason> {
    if !first.is(&[202]) {
        let ended = PollEnd::Succeeded;
        return Ok(UpdateAttempt { body, first, ended });
    }
    let second = running(run, live, &body, &first).await?;
    let polled = run.poll_to_end(live.target(), &first).await?;
    last_operation::judge_polls(run, &polled);
    let last = polled.last();
    let judgement = match polled.ended {
        PollEnd::Succeeded | PollEnd::Failed => Ok(()),
        PollEnd::Gone | PollEnd::Invalid => Err(format!("polls ended with {}", last.got())),
        PollEnd::Overdue => Err("the update did not end in time".to_owned()),
    };
    run.record(&ENDS, last, judgement);
    if let Some(second) = second {
        run.poll_to_end(live.target(), &second).await?;
    }
    if polled.ended == PollEnd::Failed {
        update_refusals::unchanged(run, live).await?;
    }
    let ended = polled.ended;
    Ok(UpdateAttempt { body, first, ended })
}

/// Sends requests during an update. Returns a second update that was accepted meanwhile.
async fn running(
    run: &PlanRun,
    live: &LiveInstance,
    body: &Value,
    first: &Arc<Exchange>,
) -> Result<Option<Arc<Exchange>>, StopReason> {
    let repeat = run.patch(live.target(), body, true).await?;
    let other = match (body.get("parameters"), two(&run.samples().update)) {
        (Some(_), Ok((_, Some(parameters)))) => {
            let other = with(body, "parameters", parameters);
            Some(run.patch(live.target(), &other, true).await?)
        }
        _ => None,
    };
    let fetched = match live.fetched {
        Some(_) => Some(run.fetch(live.target()).await?),
        None => None,
    };
    let polled = run.poll(live.target(), Some(first)).await?;
    if polled.is_running() {
        run.record(&REPEAT_RUNNING, &repeat, compare::operation(first, &repeat));
        if let Some(other) = &other {
            run.record(&CONCURRENT, other, served_or_blocked(other, &[200, 202]));
        }
        if let Some(fetched) = &fetched {
            let judgement = served_or_blocked(fetched, &[200]);
            run.record(&fetch_instance::UPDATING, fetched, judgement);
        }
    } else {
        let cases = [&REPEAT_RUNNING, &CONCURRENT, &fetch_instance::UPDATING];
        run.skip_all(&cases, ENDED_BEFORE);
    }
    Ok(other.filter(|it| it.is(&[202]) && it.operation() != first.operation()))
}

/// Served with one of these, or refused because another operation is in progress.
pub(super) fn served_or_blocked(answer: &Exchange, served: &[u16]) -> Result<(), String> {
    match answer.status() {
        Some(422) => answer.must_be_error(422, "ConcurrencyError"),
        _ => answer.must_be(served),
    }
}

/// An update without any change.
pub(super) fn plain(run: &PlanRun, live: &LiveInstance) -> Value {
    json!({
        "service_id": run.offering().id,
        "context": live.body["context"],
        "previous_values": {"plan_id": run.plan().id},
    })
}

#[cfg(test)]
mod tests {
    use super::served_or_blocked;
    use crate::exchange::Exchange;
    use serde_json::json;

    #[test]
    fn a_concurrent_request_is_served_or_refused_with_a_code() {
        let judged = |status, error: &str| {
            let answer = Exchange::answered(status, &json!({"error": error}));
            served_or_blocked(&answer, &[200, 202]).is_ok()
        };
        assert!(judged(202, ""));
        assert!(judged(422, "ConcurrencyError"));
        assert!(!judged(422, "AsyncRequired"));
        assert!(!judged(409, "ConcurrencyError"));
    }
}
