//! Cases about bindings of the tested instance, from the first bind to the last unbind.
//!
//! Each file has its own cases; this file has their order and shared types. Few bindings are created: one for
//! most cases, one created and removed asynchronously where the broker does that, a third while the second is
//! in progress, a successor where the plan rotates, and one that is deleted while it is created. Read
//! `create.rs` first.

pub(crate) mod binding_contents;
pub(crate) mod create;
pub(crate) mod fetch;
pub(crate) mod polls;
pub(crate) mod refusals;
pub(crate) mod repeat;
pub(crate) mod rotate;
pub(crate) mod running;
pub(crate) mod unbind;
pub(crate) mod unbind_during_bind;

mod bind_body;

use super::LiveInstance;
use crate::case::Case;
use crate::client::StopReason;
use crate::created::BindingId;
use crate::exchange::Exchange;
use crate::plan_run::PlanRun;
use crate::target::Target;
use serde_json::Value;
use std::sync::Arc;

/// All cases about bindings, in order.
const CASES: &[&[&Case]] = &[
    refusals::CASES,
    create::CASES,
    polls::CASES,
    fetch::CASES,
    binding_contents::CASES,
    repeat::CASES,
    running::CASES,
    rotate::CASES,
    unbind::CASES,
    unbind_during_bind::CASES,
];

/// An existing binding.
pub(crate) struct LiveBinding {
    pub id: BindingId,
    /// The body that created it.
    pub body: Value,
    pub mode: bind_body::BindMode,
    /// The first answer to the bind that created it.
    pub made_by: Arc<Exchange>,
    /// The answer to the first fetch, if bindings can be fetched.
    pub fetched: Option<Arc<Exchange>>,
    /// Whether a later fetch returned the same: some brokers generate new credentials each time.
    pub is_stable: bool,
}

impl LiveBinding {
    pub(crate) fn target(&self) -> Target<'_> {
        Target::Binding(&self.id)
    }

    /// Whether it was created asynchronously.
    pub(crate) fn was_asynchronous(&self) -> bool {
        self.made_by.is(&[202])
    }

    /// The answers that may contain its fields.
    pub(crate) fn answers(&self) -> impl Iterator<Item = &Arc<Exchange>> {
        let made_by = (!self.was_asynchronous()).then_some(&self.made_by);
        made_by.into_iter().chain(&self.fetched)
    }
}

/// Runs all cases about bindings on one instance.
pub(crate) async fn walk(run: &PlanRun, live: &LiveInstance) -> Result<(), StopReason> {
    let unseen = if run.plan().flag(run.offering(), "bindable") {
        walk_bindable(run, live).await?
    } else {
        refusals::not_bindable(run, live).await?;
        "the plan is not bindable"
    };
    for cases in CASES {
        run.skip_all(cases, unseen);
    }
    Ok(())
}

/// Checks a bindable plan; records why other cases do not apply.
async fn walk_bindable(run: &PlanRun, live: &LiveInstance) -> Result<&'static str, StopReason> {
    run.skip(&refusals::NOT_BINDABLE, "the plan is bindable");
    let Some(mut first) = create::walk(run, live).await? else {
        refusals::walk(run, live, bind_body::BindMode::FULL).await?;
        return Ok("no binding could be made");
    };
    refusals::walk(run, live, first.mode).await?;
    let credentials = repeat::walk(run, &first).await?;
    fetch::credentials(run, &first, credentials);
    first.is_stable = fetch::again(run, live, &first).await?;
    polls::unknown(run, live).await?;
    let crowd = running::walk(run, live, &first).await?;
    if let Some(second) = &crowd.second {
        polls::other_ways(run, second).await?;
        fetch::credentials(run, second, credentials);
        binding_contents::unlike(run, &binding_contents::UNIQUE, &first, second);
    }
    let successor = rotate::walk(run, live, &first).await?;
    unbind::walk(run, live, &first).await?;
    if let Some(successor) = &successor {
        rotate::outlives(run, successor).await?;
        discard(run, successor.target(), &successor.made_by).await?;
    }
    if let Some(second) = &crowd.second {
        unbind::remove(run, second, true).await?;
    }
    if let Some((third, answer)) = &crowd.third {
        discard(run, Target::Binding(third), answer).await?;
    }
    unbind_during_bind::walk(run, &first).await?;
    Ok("the walk did not come by it")
}

/// Deletes a binding that an answer may have created, without verdicts.
pub(crate) async fn discard(
    run: &PlanRun,
    target: Target<'_>,
    made_by: &Exchange,
) -> Result<(), StopReason> {
    if !made_by.is(&[200, 201, 202]) {
        return Ok(());
    }
    if made_by.is(&[202]) {
        run.poll_to_end(target, made_by).await?;
    }
    run.remove(target).await?;
    Ok(())
}
