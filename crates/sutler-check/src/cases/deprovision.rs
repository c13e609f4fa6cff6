//! Deprovision: the tested instance is deleted and stays deleted.

use super::{ENDED_BEFORE, LiveInstance, compare, fetch_instance};
use crate::case::Case;
use crate::client::StopReason;
use crate::exchange::Exchange;
use crate::options::Profile;
use crate::plan_run::{PlanRun, PollEnd, ended, with_incomplete};
use serde_json::json;
use std::sync::Arc;
use sutler_client::wire::Method;

const SERVICE: Case = Case::must(
    "deprovision-without-service",
    "B-250",
    "A deprovision without `service_id` is answered with 400.",
);
const PLAN: Case = Case::must(
    "deprovision-without-plan",
    "B-250",
    "A deprovision without `plan_id` is answered with 400.",
);
const DELETED: Case = Case::must(
    "deprovision-deleted",
    "B-252",
    "A deprovision is answered with 200 when it is done, and with 202 while it goes on until polls tell its end.",
);
const REPEAT_RUNNING: Case = Case::must(
    "deprovision-repeat-running",
    "B-252",
    "The same deprovision again while it runs is answered with 202 and the same `operation`.",
);
const CONCURRENT: Case = Case::must(
    "concurrency-error",
    "B-091",
    "A request that is refused with 422 because another operation runs says ConcurrencyError.",
);
const GONE: Case = Case::must(
    "deprovision-gone",
    "B-253",
    "A deprovision of an instance that was deleted is answered with 410.",
);
const POLLED: Case = Case::should(
    "last-operation-deleted",
    "B-105",
    "A poll after a finished asynchronous delete is answered with 200 `succeeded` or with 410 (with 410 in the profile compat-2.13).",
);
const UPDATED: Case = Case::should(
    "update-deleted-instance",
    "B-173",
    "An update of an instance that was deleted is refused.",
);

pub(crate) const CASES: &[&Case] = &[
    &SERVICE,
    &PLAN,
    &DELETED,
    &REPEAT_RUNNING,
    &CONCURRENT,
    &GONE,
    &POLLED,
    &UPDATED,
];

/// Deletes the instance; returns the answer to the accepted delete.
pub(crate) async fn walk(
    run: &PlanRun,
    live: &LiveInstance,
) -> Result<Option<Arc<Exchange>>, StopReason> {
    if incomplete(run, live).await? {
        run.skip_all(
            CASES,
            "the instance was deleted by a request that had to be refused",
        );
        return Ok(None);
    }
    let answer = run.delete(live.target(), true).await?;
    let gone = match answer.status() {
        Some(202) => running(run, live, &answer).await?,
        _ => {
            run.record(&DELETED, &answer, answer.must_be(&[200]));
            let reason = "the plan is deprovisioned synchronously";
            run.skip_all(&[&REPEAT_RUNNING, &CONCURRENT, &POLLED], reason);
            answer.is(&[200])
        }
    };
    if !gone {
        run.skip_all(CASES, "the instance could not be deleted");
        return Ok(None);
    }
    after(run, live, &answer).await?;
    Ok(Some(answer))
}

/// Sends deletes without mandatory parameters; returns whether one was accepted.
async fn incomplete(run: &PlanRun, live: &LiveInstance) -> Result<bool, StopReason> {
    let owner = run.owner_of(live.target());
    let fields = [
        (&SERVICE, "plan_id", &owner.plan_id),
        (&PLAN, "service_id", &owner.service_id),
    ];
    for (case, name, value) in fields {
        let request = live.target().request(Method::Delete).query(name, value);
        let answer = run.client.ask(with_incomplete(request, true)).await?;
        run.record(case, &answer, answer.must_be(&[400]));
        if answer.is(&[202]) {
            run.poll_to_end(live.target(), &answer).await?;
        }
        if answer.is(&[200, 202]) {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn running(
    run: &PlanRun,
    live: &LiveInstance,
    first: &Arc<Exchange>,
) -> Result<bool, StopReason> {
    let target = live.target();
    let repeat = run.delete(target, true).await?;
    let update = match &live.update {
        Some(body) => Some(run.patch(target, body, true).await?),
        None => None,
    };
    let polled = run.poll(target, Some(first)).await?;
    if polled.is_running() {
        run.record(&REPEAT_RUNNING, &repeat, compare::operation(first, &repeat));
        if let Some(update) = &update {
            concurrent(run, update);
        }
        run.skip(
            &CONCURRENT,
            "nothing was refused with 422 while another operation ran",
        );
    } else {
        run.skip_all(&[&REPEAT_RUNNING, &CONCURRENT], ENDED_BEFORE);
    }
    let ended = run.poll_to_end(target, first).await?;
    let judgement = match ended.ended {
        PollEnd::Succeeded | PollEnd::Gone | PollEnd::Failed => Ok(()),
        PollEnd::Invalid => Err(format!("polls ended with {}", ended.last().got())),
        PollEnd::Overdue => Err("the deprovision did not end in time".to_owned()),
    };
    run.record(&DELETED, ended.last(), judgement);
    let gone = matches!(ended.ended, PollEnd::Succeeded | PollEnd::Gone);
    if gone {
        run.client.created.is_gone(&target.made());
    }
    Ok(gone)
}

/// Checks an answer during another operation: a 422 must have an error code.
pub(super) fn concurrent(run: &PlanRun, answer: &Arc<Exchange>) {
    if answer.is(&[422]) {
        let judgement = answer.must_be_error(422, "ConcurrencyError");
        run.record(&CONCURRENT, answer, judgement);
    }
}

/// Checks requests about a deleted instance.
async fn after(run: &PlanRun, live: &LiveInstance, first: &Exchange) -> Result<(), StopReason> {
    let target = live.target();
    if first.is(&[202]) {
        let polled = run.poll(target, Some(first)).await?;
        let judgement = gone(&polled, run.client.options.profile);
        run.record(&POLLED, &polled, judgement);
    }
    let again = run.delete(target, true).await?;
    run.record(&GONE, &again, again.must_be(&[410]));
    if live.fetched.is_some() {
        let fetched = run.fetch(target).await?;
        let judgement = fetched.must_be(&[404]);
        run.record(&fetch_instance::DELETED, &fetched, judgement);
    }
    let update = json!({"service_id": run.offering().id, "plan_id": run.plan().id});
    let update = run.patch(target, &update, true).await?;
    run.record(&UPDATED, &update, update.must_be_refused());
    Ok(())
}

fn gone(polled: &Exchange, profile: Profile) -> Result<(), String> {
    match (profile, ended(polled)) {
        (_, Some(PollEnd::Gone)) | (Profile::V2_17, Some(PollEnd::Succeeded)) => Ok(()),
        (Profile::V2_17, _) => Err(format!(
            "expected 200 `succeeded` or 410, got {}",
            polled.got()
        )),
        (Profile::Compat2_13, _) => polled.must_be(&[410]),
    }
}

#[cfg(test)]
mod tests {
    use super::gone;
    use crate::exchange::Exchange;
    use crate::options::Profile;
    use serde_json::json;

    #[test]
    fn polls_after_a_delete_depend_on_the_profile() {
        let judged = |status, state, profile| {
            let polled = Exchange::answered(status, &json!({"state": state}));
            gone(&polled, profile).is_ok()
        };
        assert!(judged(200, "succeeded", Profile::V2_17));
        assert!(!judged(200, "succeeded", Profile::Compat2_13));
        for profile in [Profile::V2_17, Profile::Compat2_13] {
            assert!(judged(410, "", profile));
            assert!(!judged(404, "", profile));
            assert!(!judged(200, "in progress", profile));
        }
    }
}
