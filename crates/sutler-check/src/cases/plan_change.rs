//! Plan changes, where the catalog allows them.
//!
//! Uses an extra instance, because later cases depend on the plan of the main one.

use super::refusal::with;
use super::update::{accepted, finish, plain};
use super::{LiveInstance, after_update, last_operation};
use crate::case::Case;
use crate::client::StopReason;
use crate::created::Owner;
use crate::plan_run::{PlanRun, PollEnd};

const PLAN: Case = Case::must(
    "update-plan",
    "B-165",
    "An update to another plan is answered with 200, 202, or 422 if this change is not supported.",
);

pub(crate) const CASES: &[&Case] = &[&PLAN];

/// Records that no plan could be changed.
pub(crate) fn skip(run: &PlanRun, reason: &str) {
    run.skip_all(&[&PLAN, &last_operation::OLD_PLAN], reason);
}

/// Changes the plan of an instance that no other case needs.
pub(crate) async fn walk(run: &PlanRun, live: &mut LiveInstance) -> Result<(), StopReason> {
    if !run.plan().flag(run.offering(), "plan_updateable") {
        skip(run, "the plan is not `plan_updateable`");
        return Ok(());
    }
    let Some(sibling) = run.sibling() else {
        skip(run, "there is no other plan of the offering to change to");
        return Ok(());
    };
    let body = with(&plain(run, live), "plan_id", sibling.id.as_str());
    let first = run.patch(live.target(), &body, true).await?;
    if !accepted(run, &PLAN, &first) {
        run.skip(
            &last_operation::OLD_PLAN,
            "the broker does not make this change",
        );
        return Ok(());
    }
    let change = finish(run, live, body, first).await?;
    if change.first.is(&[202]) {
        let polled = run.poll(live.target(), Some(&change.first)).await?;
        let judgement = last_operation::has_state(&polled);
        run.record(&last_operation::OLD_PLAN, &polled, judgement);
    } else {
        let reason = "the plan is changed synchronously: there is nothing to poll";
        run.skip(&last_operation::OLD_PLAN, reason);
    }
    if change.ended == PollEnd::Succeeded {
        let owner = Owner {
            service_id: run.offering().id.clone(),
            plan_id: sibling.id.clone(),
        };
        run.client.created.may_exist(live.target().made(), owner);
        after_update::shown(run, live, &change.first, None, Some(&sibling.id)).await?;
    }
    Ok(())
}
