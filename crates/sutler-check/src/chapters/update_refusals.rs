//! Updates that have to be refused, of the instance that is there: afterwards it is as before.

use super::refusal::{Bad, Expected, NOWHERE, with, without};
use super::{Live, sameness};
use crate::asker::Stop;
use crate::case::Case;
use crate::exchange::Exchange;
use crate::stage::{Stage, with_incomplete};
use serde_json::{Value, json};
use std::sync::Arc;
use sutler_client::wire::Method;

const SERVICE: Case = Case::must(
    "update-without-service",
    "B-164",
    "An update without `service_id`, or with an empty one, is answered with 400.",
);
const MALFORMED: Case = Case::must(
    "update-malformed",
    "B-164",
    "An update whose body is not JSON, or has values of wrong types, is answered with 400.",
);
const UNKNOWN_SERVICE: Case = Case::must(
    "update-unknown-service",
    "B-160",
    "An update that names a service that is not in the catalog is refused.",
);
const UNKNOWN_PLAN: Case = Case::must(
    "update-unknown-plan",
    "B-160",
    "An update to a plan that is not in the catalog is refused.",
);
const FOREIGN_PLAN: Case = Case::must(
    "update-foreign-plan",
    "B-160",
    "An update to a plan of another offering is refused.",
);
const PARAMETERS: Case = Case::may(
    "update-invalid-parameters",
    "B-164",
    "An update whose parameters do not fit the plan's schema is refused with 400.",
);
const CONFLICT: Case = Case::must(
    "update-maintenance-conflict",
    "B-167",
    "An update with another `maintenance_info.version` than the catalog's is answered with 422 MaintenanceInfoConflict.",
);
const NO_MAINTENANCE: Case = Case::should(
    "update-maintenance-unknown",
    "B-167",
    "An update with a `maintenance_info.version` for a plan that has none is answered with 422 MaintenanceInfoConflict.",
);
const FIXED_PLAN: Case = Case::must(
    "update-plan-fixed",
    "B-165",
    "An update to another plan is answered with 422 where plans are not `plan_updateable`.",
);
const UNCHANGED: Case = Case::must(
    "update-refused-changes-nothing",
    "B-037",
    "An update that was refused or has failed has changed nothing.",
);

pub(crate) const CASES: &[&Case] = &[
    &SERVICE,
    &MALFORMED,
    &UNKNOWN_SERVICE,
    &UNKNOWN_PLAN,
    &FOREIGN_PLAN,
    &PARAMETERS,
    &CONFLICT,
    &NO_MAINTENANCE,
    &FIXED_PLAN,
    &UNCHANGED,
];

/// Parameters that do not fit are tried this often at most.
const INVALID_PARAMETERS_MAX: usize = 2;

/// Asks for what has to be refused.
pub(crate) async fn walk(stage: &Stage, live: &Live) -> Result<(), Stop> {
    let good = json!({
        "service_id": stage.offering().id,
        "context": live.body["context"],
        "previous_values": {"plan_id": stage.plan().id},
    });
    let mut all = malformed(stage, &good);
    all.extend(unknown(stage, &good));
    all.extend(unfit(stage, &good));
    all.push(maintenance(stage, &good));
    all.extend(fixed_plan(stage, &good));
    let mut refused = true;
    for bad in &all {
        let request = with_incomplete(live.target().request(Method::Patch), true);
        let answer = stage.asker.ask(request.body(bad.body.clone())).await?;
        stage.judge(bad.case, &answer, bad.judge(&answer));
        refused &= answer.must_be_refused().is_ok();
        if answer.is(&[202]) {
            stage.poll_to_end(live.target(), &answer).await?;
        }
    }
    if refused {
        unchanged(stage, live).await
    } else {
        stage.skip(&UNCHANGED, "an update that had to be refused was accepted");
        Ok(())
    }
}

/// Sees whether the instance is as it was before.
pub(crate) async fn unchanged(stage: &Stage, live: &Live) -> Result<(), Stop> {
    let (answer, judgement) = if let Some(before) = &live.fetched {
        let now = stage.fetch(live.target()).await?;
        let judgement = now.must_be(&[200]).and_then(|()| {
            let now = now.json().unwrap_or(&Value::Null);
            sameness::unchanged(before, now)
        });
        (now, judgement)
    } else if live.repeats {
        let again: Arc<Exchange> = stage.put(live.target(), &live.body, true).await?;
        let judgement = again.must_be(&[200]);
        (again, judgement)
    } else {
        stage.skip(
            &UNCHANGED,
            "instances cannot be fetched, and repeats are not answered with 200",
        );
        return Ok(());
    };
    stage.judge(&UNCHANGED, &answer, judgement);
    Ok(())
}

fn malformed(stage: &Stage, good: &Value) -> Vec<Bad> {
    let plan = with(good, "plan_id", stage.plan().id.as_str());
    let bad = |case, what, body: &Value| Bad::new(case, what, body, Expected::BadRequest);
    let mut cut = good.to_string();
    cut.pop();
    vec![
        bad(&SERVICE, "no `service_id`", &without(&plan, "service_id")),
        bad(
            &SERVICE,
            "an empty `service_id`",
            &with(&plan, "service_id", ""),
        ),
        bad(
            &MALFORMED,
            "a number as `service_id`",
            &with(&plan, "service_id", 1),
        ),
        bad(
            &MALFORMED,
            "a list as `plan_id`",
            &with(good, "plan_id", json!([])),
        ),
        bad(
            &MALFORMED,
            "a text as `parameters`",
            &with(good, "parameters", "x"),
        ),
        Bad {
            case: &MALFORMED,
            what: "half a body".to_owned(),
            body: cut,
            expected: Expected::BadRequest,
        },
    ]
}

fn unknown(stage: &Stage, good: &Value) -> Vec<Bad> {
    let bad = |case, what, body: &Value| Bad::new(case, what, body, Expected::Refused);
    let plan = |id: &str| with(good, "plan_id", id);
    let service = with(&plan(&stage.plan().id), "service_id", NOWHERE);
    let mut all = vec![
        bad(&UNKNOWN_SERVICE, "an unknown `service_id`", &service),
        bad(&UNKNOWN_PLAN, "an unknown `plan_id`", &plan(NOWHERE)),
    ];
    match stage.foreign_plan() {
        Some(it) => all.push(bad(
            &FOREIGN_PLAN,
            "a plan of another offering",
            &plan(&it.id),
        )),
        None => stage.skip(&FOREIGN_PLAN, "the catalog has no plan of another offering"),
    }
    all
}

fn unfit(stage: &Stage, good: &Value) -> Vec<Bad> {
    match stage.samples().update.invalid() {
        Ok(invalid) => Bad::unfit(&PARAMETERS, invalid, INVALID_PARAMETERS_MAX, good),
        Err(reason) => {
            stage.skip(&PARAMETERS, reason);
            Vec::new()
        }
    }
}

fn maintenance(stage: &Stage, good: &Value) -> Bad {
    if stage.maintenance_version().is_some() {
        stage.skip(&NO_MAINTENANCE, "the plan has `maintenance_info`");
        Bad::of_no_version(&CONFLICT, good)
    } else {
        stage.skip(&CONFLICT, "the plan has no `maintenance_info`");
        Bad::of_no_version(&NO_MAINTENANCE, good)
    }
}

fn fixed_plan(stage: &Stage, good: &Value) -> Option<Bad> {
    if stage.plan().flag(stage.offering(), "plan_updateable") {
        stage.skip(&FIXED_PLAN, "the plan is `plan_updateable`");
        return None;
    }
    let Some(sibling) = stage.sibling() else {
        stage.skip(
            &FIXED_PLAN,
            "there is no other plan of the offering to ask for",
        );
        return None;
    };
    let body = with(good, "plan_id", sibling.id.as_str());
    let expected = Expected::Unprocessable;
    Some(Bad::new(&FIXED_PLAN, "another plan", &body, expected))
}
