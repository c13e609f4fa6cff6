//! The walk through a broker and its plans, chapter by chapter. Each chapter owns its cases and says
//! of each what it saw, or why it could not see it.

pub(crate) mod additions;
pub(crate) mod auth;
pub(crate) mod bindings;
pub(crate) mod catalog;
pub(crate) mod content;
pub(crate) mod deprovision;
pub(crate) mod fetch_instance;
pub(crate) mod halt;
pub(crate) mod headers;
pub(crate) mod ids;
pub(crate) mod last_operation;
mod plan_change;
pub(crate) mod provision;
pub(crate) mod races;
mod refusal;
pub(crate) mod refusals;
pub(crate) mod repeat;
mod sameness;
mod ten;
pub(crate) mod unknown;
pub(crate) mod update;
pub(crate) mod update_refusals;
pub(crate) mod updated;

use crate::asker::Stop;
use crate::case::{Case, Scope};
use crate::exchange::Exchange;
use crate::ledger::InstanceId;
use crate::stage::Stage;
use crate::target::Target;
use serde_json::Value;
use std::sync::Arc;

/// The cases of all chapters, in the order of the walk.
pub(crate) const CASES: &[&[&Case]] = &[
    catalog::CASES,
    auth::CASES,
    headers::CASES,
    additions::CASES,
    ids::CASES,
    unknown::CASES,
    refusals::CASES,
    provision::CASES,
    fetch_instance::CASES,
    last_operation::CASES,
    repeat::CASES,
    content::CASES,
    bindings::refusals::CASES,
    bindings::create::CASES,
    bindings::polls::CASES,
    bindings::fetch::CASES,
    bindings::given::CASES,
    bindings::repeat::CASES,
    bindings::running::CASES,
    bindings::rotate::CASES,
    bindings::unbind::CASES,
    bindings::halt::CASES,
    update_refusals::CASES,
    update::CASES,
    updated::CASES,
    deprovision::CASES,
    races::CASES,
    plan_change::CASES,
    halt::CASES,
];

/// Why a case that needs an operation under way was not seen.
pub(crate) const ENDED_BEFORE: &str = "the operation ended before it could be seen running";

/// An instance that was made and is there.
pub(crate) struct Live {
    pub id: InstanceId,
    /// The body that made it.
    pub body: Value,
    /// The first answer to that body: 201 or 202.
    pub first: Arc<Exchange>,
    /// What the last fetch showed, where instances can be fetched.
    pub fetched: Option<Value>,
    /// Whether the same PUT again was answered with 200.
    pub repeats: bool,
    /// The body of an update that was accepted.
    pub update: Option<Value>,
}

impl Live {
    fn new(id: InstanceId, body: Value, first: Arc<Exchange>) -> Self {
        Self {
            id,
            body,
            first,
            fetched: None,
            repeats: false,
            update: None,
        }
    }

    pub(crate) fn target(&self) -> Target<'_> {
        Target::Instance(&self.id)
    }

    /// Whether its provision went on after the answer.
    pub(crate) fn is_async(&self) -> bool {
        self.first.is(&[202])
    }
}

/// Walks one plan; the first one also through what holds for the whole broker.
pub(crate) async fn walk_plan(stage: &Stage) -> Result<(), Stop> {
    if stage.asker.is_first_walk() {
        auth::walk(stage).await?;
        headers::walk(stage).await?;
        additions::walk(stage).await?;
        ids::walk(stage).await?;
    }
    let body = stage.provision_body();
    let gone_is_told = unknown::walk(stage).await?;
    refusals::walk(stage, &body, gone_is_told).await?;
    let mut live = match provision::walk(stage, body).await? {
        Ok(live) => live,
        Err(reason) => {
            skip_rest(stage, &reason);
            return Ok(());
        }
    };
    fetch_instance::walk(stage, &mut live).await?;
    repeat::walk(stage, &mut live).await?;
    content::walk(stage, &live).await?;
    last_operation::walk(stage, &live).await?;
    bindings::walk(stage, &live).await?;
    update::walk(stage, &mut live).await?;
    let deleted = deprovision::walk(stage, &live).await?;
    races::walk(stage, &live, deleted.as_deref()).await?;
    halt::walk(stage, &live, deleted.is_some()).await
}

/// No case of the plan that was not seen will be.
fn skip_rest(stage: &Stage, reason: &str) {
    let all = CASES.iter().copied().flatten().copied();
    for case in all.filter(|it| it.scope == Scope::Plan) {
        stage.skip(case, reason);
    }
}
