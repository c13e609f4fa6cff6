//! Changing the plan of an instance, where the catalog says that plans can be changed. It is done with
//! an instance to spare: what comes after is about the other plan.

use super::refusal::with;
use super::update::{accepted, finish, plain};
use super::{Live, last_operation, updated};
use crate::asker::Stop;
use crate::case::Case;
use crate::ledger::Owner;
use crate::stage::{Ended, Stage};

const PLAN: Case = Case::must(
    "update-plan",
    "B-165",
    "An update to another plan is answered with 200, 202, or 422 if this change is not supported.",
);

pub(crate) const CASES: &[&Case] = &[&PLAN];

/// Enters that no plan could be changed.
pub(crate) fn skip(stage: &Stage, reason: &str) {
    stage.skip_all(&[&PLAN, &last_operation::OLD_PLAN], reason);
}

/// Changes the plan of an instance that no other chapter needs as it is.
pub(crate) async fn walk(stage: &Stage, live: &mut Live) -> Result<(), Stop> {
    if !stage.plan().flag(stage.offering(), "plan_updateable") {
        skip(stage, "the plan is not `plan_updateable`");
        return Ok(());
    }
    let Some(sibling) = stage.sibling() else {
        skip(stage, "there is no other plan of the offering to change to");
        return Ok(());
    };
    let body = with(&plain(stage, live), "plan_id", sibling.id.as_str());
    let first = stage.patch(live.target(), &body, true).await?;
    if !accepted(stage, &PLAN, &first) {
        stage.skip(
            &last_operation::OLD_PLAN,
            "the broker does not make this change",
        );
        return Ok(());
    }
    let change = finish(stage, live, body, first).await?;
    if change.first.is(&[202]) {
        let polled = stage.poll(live.target(), Some(&change.first)).await?;
        let judgement = last_operation::has_state(&polled);
        stage.judge(&last_operation::OLD_PLAN, &polled, judgement);
    } else {
        let reason = "the plan is changed synchronously: there is nothing to poll";
        stage.skip(&last_operation::OLD_PLAN, reason);
    }
    if change.ended == Ended::Succeeded {
        let owner = Owner {
            service_id: stage.offering().id.clone(),
            plan_id: sibling.id.clone(),
        };
        stage.asker.ledger.may_exist(live.target().made(), owner);
        updated::shown(stage, live, &change.first, None, Some(&sibling.id)).await?;
    }
    Ok(())
}
