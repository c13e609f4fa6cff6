//! Updates of the tested instance that must be refused and must not change it.

use super::refusal::{BadBody, ExpectedRefusal, NOWHERE, with, without};
use super::{LiveInstance, compare};
use crate::case::Case;
use crate::client::StopReason;
use crate::exchange::Exchange;
use crate::plan_run::{PlanRun, with_incomplete};
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

/// Maximum number of invalid parameters tried.
const INVALID_PARAMETERS_MAX: usize = 2;

/// Sends updates that must be refused.
pub(crate) async fn walk(run: &PlanRun, live: &LiveInstance) -> Result<(), StopReason> {
    let good = json!({
        "service_id": run.offering().id,
        "context": live.body["context"],
        "previous_values": {"plan_id": run.plan().id},
    });
    let mut all = malformed(run, &good);
    all.extend(unknown(run, &good));
    all.extend(unfit(run, &good));
    all.push(maintenance(run, &good));
    all.extend(fixed_plan(run, &good));
    let mut refused = true;
    for bad in &all {
        let request = with_incomplete(live.target().request(Method::Patch), true);
        let answer = run.client.ask(request.body(bad.body.clone())).await?;
        run.record(bad.case, &answer, bad.check(&answer));
        refused &= answer.must_be_refused().is_ok();
        if answer.is(&[202]) {
            run.poll_to_end(live.target(), &answer).await?;
        }
    }
    if refused {
        unchanged(run, live).await
    } else {
        run.skip(&UNCHANGED, "an update that had to be refused was accepted");
        Ok(())
    }
}

/// Checks that the instance is unchanged.
pub(crate) async fn unchanged(run: &PlanRun, live: &LiveInstance) -> Result<(), StopReason> {
    let (answer, judgement) = if let Some(before) = &live.fetched {
        let now = run.fetch(live.target()).await?;
        let judgement = now.must_be(&[200]).and_then(|()| {
            let now = now.json().unwrap_or(&Value::Null);
            compare::unchanged(before, now)
        });
        (now, judgement)
    } else if live.repeats {
        let again: Arc<Exchange> = run.put(live.target(), &live.body, true).await?;
        let judgement = again.must_be(&[200]);
        (again, judgement)
    } else {
        run.skip(
            &UNCHANGED,
            "instances cannot be fetched, and repeats are not answered with 200",
        );
        return Ok(());
    };
    run.record(&UNCHANGED, &answer, judgement);
    Ok(())
}

fn malformed(run: &PlanRun, good: &Value) -> Vec<BadBody> {
    let plan = with(good, "plan_id", run.plan().id.as_str());
    let bad =
        |case, what, body: &Value| BadBody::new(case, what, body, ExpectedRefusal::BadRequest);
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
        BadBody {
            case: &MALFORMED,
            what: "half a body".to_owned(),
            body: cut,
            expected: ExpectedRefusal::BadRequest,
        },
    ]
}

fn unknown(run: &PlanRun, good: &Value) -> Vec<BadBody> {
    let bad = |case, what, body: &Value| BadBody::new(case, what, body, ExpectedRefusal::Refused);
    let plan = |id: &str| with(good, "plan_id", id);
    let service = with(&plan(&run.plan().id), "service_id", NOWHERE);
    let mut all = vec![
        bad(&UNKNOWN_SERVICE, "an unknown `service_id`", &service),
        bad(&UNKNOWN_PLAN, "an unknown `plan_id`", &plan(NOWHERE)),
    ];
    match run.foreign_plan() {
        Some(it) => all.push(bad(
            &FOREIGN_PLAN,
            "a plan of another offering",
            &plan(&it.id),
        )),
        None => run.skip(&FOREIGN_PLAN, "the catalog has no plan of another offering"),
    }
    all
}

fn unfit(run: &PlanRun, good: &Value) -> Vec<BadBody> {
    match run.samples().update.invalid() {
        Ok(invalid) => BadBody::unfit(&PARAMETERS, invalid, INVALID_PARAMETERS_MAX, good),
        Err(reason) => {
            run.skip(&PARAMETERS, reason);
            Vec::new()
        }
    }
}

fn maintenance(run: &PlanRun, good: &Value) -> BadBody {
    if run.maintenance_version().is_some() {
        run.skip(&NO_MAINTENANCE, "the plan has `maintenance_info`");
        BadBody::of_no_version(&CONFLICT, good)
    } else {
        run.skip(&CONFLICT, "the plan has no `maintenance_info`");
        BadBody::of_no_version(&NO_MAINTENANCE, good)
    }
}

fn fixed_plan(run: &PlanRun, good: &Value) -> Option<BadBody> {
    if run.plan().flag(run.offering(), "plan_updateable") {
        run.skip(&FIXED_PLAN, "the plan is `plan_updateable`");
        return None;
    }
    let Some(sibling) = run.sibling() else {
        run.skip(
            &FIXED_PLAN,
            "there is no other plan of the offering to ask for",
        );
        return None;
    };
    let body = with(good, "plan_id", sibling.id.as_str());
    let expected = ExpectedRefusal::Unprocessable;
    Some(BadBody::new(&FIXED_PLAN, "another plan", &body, expected))
}
