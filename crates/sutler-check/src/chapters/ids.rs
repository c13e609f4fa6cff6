//! Ids of any characters: nothing is there under them, and nobody stumbles.

use crate::asker::Stop;
use crate::case::{Case, Level, Scope};
use crate::ledger::InstanceId;
use crate::stage::Stage;
use crate::target::Target;

const UNUSUAL: Case = Case {
    name: "ids-unusual",
    line: "B-020",
    level: Level::Should,
    scope: Scope::Broker,
    rule: "An id may have any characters, encoded in the path: as long as nothing is there, a poll gets 404 and a delete 410.",
};

pub(crate) const CASES: &[&Case] = &[&UNUSUAL];

/// Asks for what is not there, under an id that has to be encoded.
pub(crate) async fn walk(stage: &Stage) -> Result<(), Stop> {
    let id = InstanceId::unusual();
    let target = Target::Instance(&id);
    let poll = stage.poll(target, None).await?;
    stage.judge_broker(&UNUSUAL, &poll, poll.must_be(&[404]));
    let delete = stage.delete(target, true).await?;
    stage.judge_broker(&UNUSUAL, &delete, delete.must_be(&[410]));
    Ok(())
}
