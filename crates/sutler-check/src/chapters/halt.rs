//! The id of the deleted instance once more; and, where provisions run long enough to see it, a delete
//! of an instance that is still being made.

use super::deprovision::concurrent;
use super::refusal::NOWHERE;
use super::update::served_or_blocked;
use super::{ENDED_BEFORE, Live};
use crate::asker::Stop;
use crate::case::Case;
use crate::exchange::Exchange;
use crate::ledger::InstanceId;
use crate::stage::{Stage, with_incomplete};
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

/// Provisions under an id that was used before, or a new one, and deletes it at once.
pub(crate) async fn walk(stage: &Stage, live: &Live, deleted: bool) -> Result<(), Stop> {
    let fresh = InstanceId::new();
    let mut target = Target::Instance(&fresh);
    let mut first = None;
    if deleted {
        let again = stage.put(live.target(), &live.body, true).await?;
        stage.judge(&REUSED, &again, again.must_be(&[201, 202]));
        if again.is(&[200, 201, 202]) {
            target = live.target();
            first = Some(again);
        }
    } else {
        stage.skip(&REUSED, "the instance could not be deleted");
    }
    if !live.is_async() {
        stage.skip_all(
            &[&ACCEPTED, &HALTED],
            "the plan is provisioned synchronously",
        );
        match first {
            Some(_) => wrong_plan(stage, target).await?,
            None => stage.skip(&WRONG_PLAN, "ids cannot be used again"),
        }
        stage.remove(target).await?;
        return Ok(());
    }
    stage.skip(&WRONG_PLAN, "the plan is provisioned asynchronously");
    let first = match first {
        Some(first) => first,
        None => stage.put(target, &live.body, true).await?,
    };
    let polled = stage.poll(target, Some(&first)).await?;
    if !first.is(&[202]) || !polled.is_running() {
        stage.skip_all(&[&ACCEPTED, &HALTED], ENDED_BEFORE);
        stage.remove(target).await?;
        return Ok(());
    }
    halt(stage, live, target, &first).await
}

/// A deprovision that names a plan which does not exist.
async fn wrong_plan(stage: &Stage, target: Target<'_>) -> Result<(), Stop> {
    let mut owner = stage.owner_of(target);
    NOWHERE.clone_into(&mut owner.plan_id);
    let request = with_incomplete(target.delete(&owner), true);
    let answer = stage.asker.ask(request).await?;
    stage.judge(&WRONG_PLAN, &answer, answer.must_be_refused());
    if answer.is(&[202]) {
        stage.poll_to_end(target, &answer).await?;
    }
    Ok(())
}

async fn halt(
    stage: &Stage,
    live: &Live,
    target: Target<'_>,
    first: &Arc<Exchange>,
) -> Result<(), Stop> {
    if let Some(update) = &live.update {
        let answer = stage.patch(target, update, true).await?;
        concurrent(stage, &answer);
    }
    let (deleted, gone) = stage.remove(target).await?;
    // Whatever the broker said: the provision may still be going on.
    stage.asker.ledger.may_exist(target.made(), stage.owner());
    stage.judge(
        &ACCEPTED,
        &deleted,
        served_or_blocked(&deleted, &[200, 202]),
    );
    stage.poll_to_end(target, first).await?;
    let (after, _) = stage.remove(target).await?;
    if deleted.is(&[200, 202]) && gone {
        let judgement = after.must_be(&[410]);
        let said = judgement.map_err(|said| format!("deleting it once more: {said}"));
        stage.judge(&HALTED, &after, said);
    } else {
        stage.skip(
            &HALTED,
            "the broker does not delete what is still being made",
        );
    }
    Ok(())
}
