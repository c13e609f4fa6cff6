//! The walk through a broker and its plans, chapter by chapter. Each chapter owns its cases and says
//! of each what it saw, or why it could not see it.

pub(crate) mod catalog;
pub(crate) mod deprovision;
pub(crate) mod provision;

use crate::asker::Stop;
use crate::case::Case;
use crate::ledger::InstanceId;
use crate::stage::Stage;
use serde_json::Value;

/// The cases of all chapters, in the order of the walk.
pub(crate) const CASES: &[&[&Case]] = &[catalog::CASES, provision::CASES, deprovision::CASES];

/// An instance that was made and is there.
pub(crate) struct Live {
    pub id: InstanceId,
    /// The body that made it.
    pub body: Value,
}

/// Walks one plan.
pub(crate) async fn walk_plan(stage: &Stage) -> Result<(), Stop> {
    let Some(live) = provision::walk(stage).await? else {
        return Ok(());
    };
    deprovision::walk(stage, &live).await
}
