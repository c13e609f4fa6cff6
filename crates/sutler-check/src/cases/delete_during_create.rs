//! Reuse of a deleted instance id; and deprovision during a provision in progress.

use super::deprovision::concurrent;
use super::refusal::NOWHERE;
use super::update::served_or_blocked;
use super::{ENDED_BEFORE, LiveInstance};
use crate::case::Case;
use crate::client::StopReason;
use crate::created::InstanceId;
use crate::exchange::Exchange;
use crate::plan_run::{PlanRun, with_incomplete};
use crate::target::Target;
use std::sync::Arc;

const REUSED: Case = Case::may(
    "provision-reuse",
    "B-132",
    "The id of an instance that was deleted can be used again.",
);
const ACCEPTED: Case = Case::must(
    "deprovision-during-provision",
    "B-254",
    "A deprovision during the provision is accepted, or answered with 422 ConcurrencyError.",
);
const HALTED: Case = Case::must(
    "deprovision-halts-provision",
    "B-255",
    "A deprovision that is accepted during the provision halts it: at the end there is no instance.",
);

const WRONG_PLAN: Case = Case::may(
    "deprovision-wrong-plan",
    "B-250",
    "A deprovision that names another plan than the instance's is refused.",
);

pub(crate) const CASES: &[&Case] = &[&REUSED, &WRONG_PLAN, &ACCEPTED, &HALTED];

/// Provisions with a used id or a new one, and deletes it at once.
pub(crate) async fn walk(
    run: &PlanRun,
    live: &LiveInstance,
    deleted: bool,
) -> Result<(), StopReason> {
    let fresh = InstanceId::new();
    let mut target = Target::Instance(&fresh);
    let mut first = None;
    if deleted {
        let again = run.put(live.target(), &live.body, true).await?;
        run.record(&REUSED, &again, again.must_be(&[201, 202]));
        if again.is(&[200, 201, 202]) {
            target = live.target();
            first = Some(again);
        }
    } else {
        run.skip(&REUSED, "the instance could not be deleted");
    }
    if !live.is_async() {
        run.skip_all(
            &[&ACCEPTED, &HALTED],
            "the plan is provisioned synchronously",
        );
        match first {
            Some(_) => wrong_plan(run, target).await?,
            None => run.skip(&WRONG_PLAN, "ids cannot be used again"),
        }
        run.remove(target).await?;
        return Ok(());
    }
    run.skip(&WRONG_PLAN, "the plan is provisioned asynchronously");
    let first = match first {
        Some(first) => first,
        None => run.put(target, &live.body, true).await?,
    };
    let polled = run.poll(target, Some(&first)).await?;
    if !first.is(&[202]) || !polled.is_running() {
        run.skip_all(&[&ACCEPTED, &HALTED], ENDED_BEFORE);
        run.remove(target).await?;
        return Ok(());
    }
    halt(run, live, target, &first).await
}

/// A deprovision with an unknown plan.
async fn wrong_plan(run: &PlanRun, target: Target<'_>) -> Result<(), StopReason> {
    let mut owner = run.owner_of(target);
    NOWHERE.clone_into(&mut owner.plan_id);
    let request = with_incomplete(target.delete(&owner), true);
    let answer = run.client.ask(request).await?;
    run.record(&WRONG_PLAN, &answer, answer.must_be_refused());
    if answer.is(&[202]) {
        run.poll_to_end(target, &answer).await?;
    }
    Ok(())
}

async fn halt(
    run: &PlanRun,
    live: &LiveInstance,
    target: Target<'_>,
    first: &Arc<Exchange>,
) -> Result<(), StopReason> {
    if let Some(update) = &live.update {
        let answer = run.patch(target, update, true).await?;
        concurrent(run, &answer);
    }
    let (deleted, gone) = run.remove(target).await?;
    // The provision may still be in progress, whatever the broker answered.
    run.client.created.may_exist(target.made(), run.owner());
    run.record(
        &ACCEPTED,
        &deleted,
        served_or_blocked(&deleted, &[200, 202]),
    );
    run.poll_to_end(target, first).await?;
    let (after, _) = run.remove(target).await?;
    if deleted.is(&[200, 202]) && gone {
        let judgement = after.must_be(&[410]);
        let message = judgement.map_err(|message| format!("deleting it once more: {message}"));
        run.record(&HALTED, &after, message);
    } else {
        run.skip(
            &HALTED,
            "the broker does not delete what is still being made",
        );
    }
    Ok(())
}
