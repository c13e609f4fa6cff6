//! Provision: the instance that most other chapters use is made here.

use super::Live;
use crate::asker::Stop;
use crate::case::{Case, Level, Scope};
use crate::ledger::InstanceId;
use crate::stage::{Ended, Stage};
use crate::target::Target;

const CREATED: Case = Case {
    name: "provision-created",
    line: "B-121",
    level: Level::Must,
    scope: Scope::Plan,
    rule: "A provision that is done with the answer is answered with 201, one that goes on with 202.",
};

pub(crate) const CASES: &[&Case] = &[&CREATED];

/// Makes the instance; none if the broker would not.
pub(crate) async fn walk(stage: &Stage) -> Result<Option<Live>, Stop> {
    let id = InstanceId::new();
    let target = Target::Instance(&id);
    let body = stage.provision_body();
    let answer = stage.put(target, &body, true).await?;
    stage.judge(&CREATED, &answer, answer.must_be(&[201, 202]));
    let live = match answer.status() {
        Some(201) => true,
        Some(202) => stage.poll_to_end(target, &answer).await?.ended == Ended::Succeeded,
        _ => false,
    };
    Ok(live.then_some(Live { id, body }))
}
