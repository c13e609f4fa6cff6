//! Ids with unusual characters, of instances that do not exist.

use crate::case::{Case, Level, Scope};
use crate::client::StopReason;
use crate::created::InstanceId;
use crate::plan_run::PlanRun;
use crate::target::Target;

const UNUSUAL: Case = Case {
    name: "ids-unusual",
    line: "B-020",
    level: Level::Should,
    scope: Scope::Broker,
    rule: "An id may have any characters, encoded in the path: as long as nothing is there, a poll gets 404 and a delete 410.",
};

pub(crate) const CASES: &[&Case] = &[&UNUSUAL];

/// Requests an absent resource by an id that must be encoded.
pub(crate) async fn walk(run: &PlanRun) -> Result<(), StopReason> {
    let id = InstanceId::unusual();
    let target = Target::Instance(&id);
    let poll = run.poll(target, None).await?;
    run.record_broker(&UNUSUAL, &poll, poll.must_be(&[404]));
    let delete = run.delete(target, true).await?;
    run.record_broker(&UNUSUAL, &delete, delete.must_be(&[410]));
    Ok(())
}
