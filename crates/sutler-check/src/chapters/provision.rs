//! Provision: the instance that most other chapters use is made here. What is asked once it is there:
//! `repeat.rs`.

use super::{ENDED_BEFORE, Live, fetch_instance, last_operation, sameness};
use crate::asker::Stop;
use crate::case::Case;
use crate::exchange::Exchange;
use crate::ledger::InstanceId;
use crate::stage::{Ended, Stage};
use crate::target::Target;
use serde_json::{Value, json};
use std::sync::Arc;

const ACCEPTED: Case = Case::should(
    "provision-accepted",
    "B-120",
    "A provision whose parameters fit the plan's schema is accepted.",
);
const CREATED: Case = Case::must(
    "provision-created",
    "B-121",
    "A provision that makes an instance is answered with 201.",
);
const STARTED: Case = Case::must(
    "provision-started",
    "B-122",
    "A provision that goes on after its answer is answered with 202, and goes on until polls tell its end.",
);
const DONE: Case = Case::must(
    "provision-done",
    "B-084",
    "A provision that was answered with 201 is done: it is not in progress.",
);
const SAME_VERSION: Case = Case::must(
    "provision-maintenance-same",
    "B-128",
    "A provision with the catalog's own `maintenance_info.version` is no conflict.",
);
const REPEAT_RUNNING: Case = Case::must(
    "provision-repeat-running",
    "B-087",
    "The same provision again while it runs is answered with 202 and the same `operation`.",
);
const CONFLICT_RUNNING: Case = Case::must(
    "provision-conflict-running",
    "B-126",
    "A provision with other attributes under the id of one that runs is answered with 409.",
);

pub(crate) const CASES: &[&Case] = &[
    &ACCEPTED,
    &CREATED,
    &STARTED,
    &DONE,
    &SAME_VERSION,
    &REPEAT_RUNNING,
    &CONFLICT_RUNNING,
];

const SYNCHRONOUS: &str = "the plan is provisioned synchronously";
const ASYNCHRONOUS: &str = "the plan is provisioned asynchronously";

/// Makes the instance; the reason if there is none.
pub(crate) async fn walk(stage: &Stage, body: Value) -> Result<Result<Live, String>, Stop> {
    let id = InstanceId::new();
    let (body, first) = begin(stage, Target::Instance(&id), body).await?;
    if first.must_be_refused().is_ok() {
        let said = format!("the provision was refused: {}", first.told());
        let advice = "if the plan needs parameters that its schema does not tell, give them";
        stage.judge(&ACCEPTED, &first, Err(format!("{said}; {advice}")));
        return Ok(Err(said));
    }
    stage.judge(&ACCEPTED, &first, Ok(()));
    let live = Live::new(id, body, first);
    let made = match live.first.status() {
        Some(201) => done(stage, &live).await?,
        Some(202) => running(stage, &live).await?,
        _ => {
            stage.judge(&CREATED, &live.first, live.first.must_be(&[201, 202]));
            Err(format!(
                "the provision was answered with {}",
                live.first.got()
            ))
        }
    };
    Ok(made.map(|()| live))
}

/// Sends the body, with the plan's version if it has one; without it, if that is a conflict.
async fn begin(
    stage: &Stage,
    target: Target<'_>,
    mut body: Value,
) -> Result<(Value, Arc<Exchange>), Stop> {
    let Some(version) = stage.maintenance_version() else {
        stage.skip(&SAME_VERSION, "the plan has no `maintenance_info`");
        let answer = stage.put(target, &body, true).await?;
        return Ok((body, answer));
    };
    let plain = body.clone();
    body["maintenance_info"] = json!({"version": version});
    let answer = stage.put(target, &body, true).await?;
    if answer
        .must_be_error(422, "MaintenanceInfoConflict")
        .is_err()
    {
        stage.judge(&SAME_VERSION, &answer, Ok(()));
        return Ok((body, answer));
    }
    let said = format!("{version:?} is the catalog's version, and yet it was a conflict");
    stage.judge(&SAME_VERSION, &answer, Err(said));
    let answer = stage.put(target, &plain, true).await?;
    Ok((plain, answer))
}

async fn done(stage: &Stage, live: &Live) -> Result<Result<(), String>, Stop> {
    stage.judge(&CREATED, &live.first, Ok(()));
    stage.skip_all(&[&STARTED, &REPEAT_RUNNING, &CONFLICT_RUNNING], SYNCHRONOUS);
    let polled = stage.poll(live.target(), None).await?;
    let judgement = if polled.is_running() {
        Err("the provision was answered with 201, and is in progress".to_owned())
    } else {
        Ok(())
    };
    stage.judge(&DONE, &polled, judgement);
    Ok(Ok(()))
}

async fn running(stage: &Stage, live: &Live) -> Result<Result<(), String>, Stop> {
    stage.skip_all(&[&CREATED, &DONE], ASYNCHRONOUS);
    let target = live.target();
    let repeat = stage.put(target, &live.body, true).await?;
    let other = stage
        .put(target, &other_organization(&live.body), true)
        .await?;
    let fetched = match stage.offering().flag("instances_retrievable") {
        true => Some(stage.fetch(target).await?),
        false => None,
    };
    let polled = stage.poll(target, Some(&live.first)).await?;
    if polled.is_running() {
        let same = sameness::operation(&live.first, &repeat);
        stage.judge(&REPEAT_RUNNING, &repeat, same);
        stage.judge(&CONFLICT_RUNNING, &other, other.must_be(&[409]));
        if let Some(fetched) = &fetched {
            let case = &fetch_instance::RUNNING;
            stage.judge(case, fetched, fetched.must_be(&[404]));
        }
    } else {
        let cases = [&REPEAT_RUNNING, &CONFLICT_RUNNING, &fetch_instance::RUNNING];
        stage.skip_all(&cases, ENDED_BEFORE);
    }
    let ended = stage.poll_to_end(target, &live.first).await?;
    last_operation::judge_polls(stage, &ended);
    let last = ended.last();
    let judgement = match ended.ended {
        Ended::Succeeded | Ended::Failed => Ok(()),
        Ended::Gone | Ended::Invalid => Err(format!("polls ended with {}", last.got())),
        Ended::Overdue => Err("the provision did not end in time".to_owned()),
    };
    stage.judge(&STARTED, last, judgement);
    match ended.ended {
        Ended::Succeeded => Ok(Ok(())),
        _ => Ok(Err(format!(
            "the provision did not succeed: {}",
            last.told()
        ))),
    }
}

/// The same body for another organization.
pub(crate) fn other_organization(body: &Value) -> Value {
    let mut other = body.clone();
    other["organization_guid"] = json!("sutler-check-other-organization");
    other["context"]["organization_guid"] = json!("sutler-check-other-organization");
    other
}
