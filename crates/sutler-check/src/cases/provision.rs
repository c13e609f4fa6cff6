//! Provision: creates the instance that most other cases use. Repeated provisions: `repeat.rs`.

use super::{ENDED_BEFORE, LiveInstance, compare, fetch_instance, last_operation};
use crate::case::Case;
use crate::client::StopReason;
use crate::created::InstanceId;
use crate::exchange::Exchange;
use crate::plan_run::{PlanRun, PollEnd};
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

/// Creates the instance; the reason if there is none.
pub(crate) async fn walk(
    run: &PlanRun,
    body: Value,
) -> Result<Result<LiveInstance, String>, StopReason> {
    let id = InstanceId::new();
    let (body, first) = begin(run, Target::Instance(&id), body).await?;
    if first.must_be_refused().is_ok() {
        let message = format!("the provision was refused: {}", first.describe());
        let advice = "if the plan needs parameters that its schema does not tell, give them";
        run.record(&ACCEPTED, &first, Err(format!("{message}; {advice}")));
        return Ok(Err(message));
    }
    run.record(&ACCEPTED, &first, Ok(()));
    let live = LiveInstance::new(id, body, first);
    let made = match live.first.status() {
        Some(201) => done(run, &live).await?,
        Some(202) => running(run, &live).await?,
        _ => {
            run.record(&CREATED, &live.first, live.first.must_be(&[201, 202]));
            Err(format!(
                "the provision was answered with {}",
                live.first.got()
            ))
        }
    };
    Ok(made.map(|()| live))
}

/// Sends the body with the plan's version, if it has one, and without it after a conflict.
async fn begin(
    run: &PlanRun,
    target: Target<'_>,
    mut body: Value,
) -> Result<(Value, Arc<Exchange>), StopReason> {
    let Some(version) = run.maintenance_version() else {
        run.skip(&SAME_VERSION, "the plan has no `maintenance_info`");
        let answer = run.put(target, &body, true).await?;
        return Ok((body, answer));
    };
    let plain = body.clone();
    body["maintenance_info"] = json!({"version": version});
    let answer = run.put(target, &body, true).await?;
    if answer
        .must_be_error(422, "MaintenanceInfoConflict")
        .is_err()
    {
        run.record(&SAME_VERSION, &answer, Ok(()));
        return Ok((body, answer));
    }
    let message = format!("{version:?} is the catalog's version, and yet it was a conflict");
    run.record(&SAME_VERSION, &answer, Err(message));
    let answer = run.put(target, &plain, true).await?;
    Ok((plain, answer))
}

async fn done(run: &PlanRun, live: &LiveInstance) -> Result<Result<(), String>, StopReason> {
    run.record(&CREATED, &live.first, Ok(()));
    run.skip_all(&[&STARTED, &REPEAT_RUNNING, &CONFLICT_RUNNING], SYNCHRONOUS);
    let polled = run.poll(live.target(), None).await?;
    let judgement = if polled.is_running() {
        Err("the provision was answered with 201, and is in progress".to_owned())
    } else {
        Ok(())
    };
    run.record(&DONE, &polled, judgement);
    Ok(Ok(()))
}

async fn running(run: &PlanRun, live: &LiveInstance) -> Result<Result<(), String>, StopReason> {
    run.skip_all(&[&CREATED, &DONE], ASYNCHRONOUS);
    let target = live.target();
    let repeat = run.put(target, &live.body, true).await?;
    let other = run
        .put(target, &other_organization(&live.body), true)
        .await?;
    let fetched = match run.offering().flag("instances_retrievable") {
        true => Some(run.fetch(target).await?),
        false => None,
    };
    let polled = run.poll(target, Some(&live.first)).await?;
    if polled.is_running() {
        let same = compare::operation(&live.first, &repeat);
        run.record(&REPEAT_RUNNING, &repeat, same);
        run.record(&CONFLICT_RUNNING, &other, other.must_be(&[409]));
        if let Some(fetched) = &fetched {
            let case = &fetch_instance::RUNNING;
            run.record(case, fetched, fetched.must_be(&[404]));
        }
    } else {
        let cases = [&REPEAT_RUNNING, &CONFLICT_RUNNING, &fetch_instance::RUNNING];
        run.skip_all(&cases, ENDED_BEFORE);
    }
    let ended = run.poll_to_end(target, &live.first).await?;
    last_operation::judge_polls(run, &ended);
    let last = ended.last();
    let judgement = match ended.ended {
        PollEnd::Succeeded | PollEnd::Failed => Ok(()),
        PollEnd::Gone | PollEnd::Invalid => Err(format!("polls ended with {}", last.got())),
        PollEnd::Overdue => Err("the provision did not end in time".to_owned()),
    };
    run.record(&STARTED, last, judgement);
    match ended.ended {
        PollEnd::Succeeded => Ok(Ok(())),
        _ => Ok(Err(format!(
            "the provision did not succeed: {}",
            last.describe()
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
