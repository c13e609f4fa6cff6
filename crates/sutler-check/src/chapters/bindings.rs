//! Bindings of the walk's instance, from the first bind to the last unbind. Each file is a chapter
//! with its own cases; here is their order, and what they share.
//!
//! Few bindings are made: one that is asked about most, one more that is made and removed
//! asynchronously where the broker does that, a third while the second is being made, a successor
//! where the plan rotates, and one that is deleted while it is made. Read `create.rs` first.

pub(crate) mod create;
pub(crate) mod fetch;
pub(crate) mod given;
pub(crate) mod halt;
pub(crate) mod polls;
pub(crate) mod refusals;
pub(crate) mod repeat;
pub(crate) mod rotate;
pub(crate) mod running;
pub(crate) mod unbind;

mod ask;

use super::Live;
use crate::asker::Stop;
use crate::case::Case;
use crate::exchange::Exchange;
use crate::ledger::BindingId;
use crate::stage::Stage;
use crate::target::Target;
use serde_json::Value;
use std::sync::Arc;

/// The cases of all chapters about bindings, in the order of the walk.
const CASES: &[&[&Case]] = &[
    refusals::CASES,
    create::CASES,
    polls::CASES,
    fetch::CASES,
    given::CASES,
    repeat::CASES,
    running::CASES,
    rotate::CASES,
    unbind::CASES,
    halt::CASES,
];

/// A binding that was made and is there.
pub(crate) struct Bound {
    pub id: BindingId,
    /// The body that made it.
    pub body: Value,
    pub manner: ask::Manner,
    /// The answer that made it, or began to.
    pub made_by: Arc<Exchange>,
    /// The answer to the first fetch, where bindings can be fetched.
    pub fetched: Option<Arc<Exchange>>,
    /// Whether a later fetch gave the same: some brokers make credentials anew each time.
    pub is_stable: bool,
}

impl Bound {
    pub(crate) fn target(&self) -> Target<'_> {
        Target::Binding(&self.id)
    }

    /// Whether it was made while the platform polled.
    pub(crate) fn was_asynchronous(&self) -> bool {
        self.made_by.is(&[202])
    }

    /// The answers that may say what there is to know of it.
    pub(crate) fn answers(&self) -> impl Iterator<Item = &Arc<Exchange>> {
        let made_by = (!self.was_asynchronous()).then_some(&self.made_by);
        made_by.into_iter().chain(&self.fetched)
    }
}

/// Walks everything about bindings on one instance.
pub(crate) async fn walk(stage: &Stage, live: &Live) -> Result<(), Stop> {
    let unseen = if stage.plan().flag(stage.offering(), "bindable") {
        walk_bindable(stage, live).await?
    } else {
        refusals::not_bindable(stage, live).await?;
        "the plan is not bindable"
    };
    for cases in CASES {
        stage.skip_all(cases, unseen);
    }
    Ok(())
}

/// Walks a plan that can be bound; tells why what was not seen was not.
async fn walk_bindable(stage: &Stage, live: &Live) -> Result<&'static str, Stop> {
    stage.skip(&refusals::NOT_BINDABLE, "the plan is bindable");
    let Some(mut first) = create::walk(stage, live).await? else {
        refusals::walk(stage, live, ask::Manner::FULL).await?;
        return Ok("no binding could be made");
    };
    refusals::walk(stage, live, first.manner).await?;
    let credentials = repeat::walk(stage, &first).await?;
    fetch::credentials(stage, &first, credentials);
    first.is_stable = fetch::again(stage, live, &first).await?;
    polls::unknown(stage, live).await?;
    let crowd = running::walk(stage, live, &first).await?;
    if let Some(second) = &crowd.second {
        polls::other_ways(stage, second).await?;
        fetch::credentials(stage, second, credentials);
        given::unlike(stage, &given::UNIQUE, &first, second);
    }
    let successor = rotate::walk(stage, live, &first).await?;
    unbind::walk(stage, live, &first).await?;
    if let Some(successor) = &successor {
        rotate::outlives(stage, successor).await?;
        discard(stage, successor.target(), &successor.made_by).await?;
    }
    if let Some(second) = &crowd.second {
        unbind::remove(stage, second, true).await?;
    }
    if let Some((third, answer)) = &crowd.third {
        discard(stage, Target::Binding(third), answer).await?;
    }
    halt::walk(stage, &first).await?;
    Ok("the walk did not come by it")
}

/// Removes what an answer may have made, without judging how.
pub(crate) async fn discard(
    stage: &Stage,
    target: Target<'_>,
    made_by: &Exchange,
) -> Result<(), Stop> {
    if !made_by.is(&[200, 201, 202]) {
        return Ok(());
    }
    if made_by.is(&[202]) {
        stage.poll_to_end(target, made_by).await?;
    }
    stage.remove(target).await?;
    Ok(())
}
