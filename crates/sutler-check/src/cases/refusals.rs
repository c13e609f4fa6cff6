//! Provisions that must be refused, each with its own id; none may leave an instance behind.

use super::refusal::{BadBody, ExpectedRefusal, NOWHERE, with, without};
use crate::case::Case;
use crate::client::StopReason;
use crate::created::InstanceId;
use crate::exchange::Exchange;
use crate::plan_run::{PlanRun, with_incomplete};
use crate::target::Target;
use serde_json::{Value, json};
use sutler_client::wire::Method;

const SERVICE: Case = Case::must(
    "provision-without-service",
    "B-124",
    "A provision without `service_id`, or with an empty one, is answered with 400.",
);
const PLAN: Case = Case::must(
    "provision-without-plan",
    "B-124",
    "A provision without `plan_id`, or with an empty one, is answered with 400.",
);
const ORGANIZATION: Case = Case::must(
    "provision-without-organization",
    "B-124",
    "A provision without `organization_guid`, or with an empty one, is answered with 400.",
);
const SPACE: Case = Case::must(
    "provision-without-space",
    "B-124",
    "A provision without `space_guid`, or with an empty one, is answered with 400.",
);
const MALFORMED: Case = Case::must(
    "provision-malformed",
    "B-124",
    "A provision whose body is not JSON, or has values of wrong types, is answered with 400.",
);
const UNKNOWN_SERVICE: Case = Case::must(
    "provision-unknown-service",
    "B-120",
    "A provision of a service that is not in the catalog is refused.",
);
const UNKNOWN_PLAN: Case = Case::must(
    "provision-unknown-plan",
    "B-120",
    "A provision of a plan that is not in the catalog is refused.",
);
const FOREIGN_PLAN: Case = Case::must(
    "provision-foreign-plan",
    "B-120",
    "A provision of one offering with a plan of another is refused.",
);
const INVALID_DATA: Case = Case::may(
    "provision-invalid-data",
    "B-125",
    "A provision with an unknown service or plan is refused with 400.",
);
const PARAMETERS: Case = Case::should(
    "provision-invalid-parameters",
    "B-129",
    "A provision whose parameters do not fit the plan's schema is refused with 400.",
);
const CONFLICT: Case = Case::must(
    "provision-maintenance-conflict",
    "B-128",
    "A provision with another `maintenance_info.version` than the catalog's is answered with 422 MaintenanceInfoConflict.",
);
const NO_MAINTENANCE: Case = Case::should(
    "provision-maintenance-unknown",
    "B-128",
    "A provision with a `maintenance_info.version` for a plan that has none is answered with 422 MaintenanceInfoConflict.",
);
const NOTHING_MADE: Case = Case::must(
    "provision-refused-makes-nothing",
    "B-035",
    "A provision that was refused has made nothing: a delete of its id is answered with 410.",
);

pub(crate) const CASES: &[&Case] = &[
    &SERVICE,
    &PLAN,
    &ORGANIZATION,
    &SPACE,
    &MALFORMED,
    &UNKNOWN_SERVICE,
    &UNKNOWN_PLAN,
    &FOREIGN_PLAN,
    &INVALID_DATA,
    &PARAMETERS,
    &CONFLICT,
    &NO_MAINTENANCE,
    &NOTHING_MADE,
];

/// Maximum number of invalid parameters tried.
const INVALID_PARAMETERS_MAX: usize = 4;

/// Sends requests that must be refused. `good` is a valid body.
pub(crate) async fn walk(
    run: &PlanRun,
    good: &Value,
    gone_is_reported: bool,
) -> Result<(), StopReason> {
    let mut all = incomplete(good);
    all.extend(malformed(good));
    all.extend(unknown(run, good));
    all.extend(unfit(run, good));
    all.push(maintenance(run, good));
    for bad in &all {
        let id = InstanceId::new();
        let target = Target::Instance(&id);
        let request = with_incomplete(target.request(Method::Put), true).body(bad.body.clone());
        let answer = run.put_request(target, request).await?;
        run.record(bad.case, &answer, bad.check(&answer));
        if matches!(bad.case.line, "B-120") && answer.must_be_refused().is_ok() {
            let judgement = answer.must_be(&[400]);
            let message = judgement.map_err(|message| format!("with {}: {message}", bad.what));
            run.record(&INVALID_DATA, &answer, message);
        }
        nothing_made(run, target, &answer, gone_is_reported).await?;
    }
    Ok(())
}

async fn nothing_made(
    run: &PlanRun,
    target: Target<'_>,
    refusal: &Exchange,
    gone_is_reported: bool,
) -> Result<(), StopReason> {
    let (deleted, _) = run.remove(target).await?;
    if refusal.must_be_refused().is_err() {
        return Ok(());
    }
    if !gone_is_reported {
        run.skip(
            &NOTHING_MADE,
            "deletes do not tell whether there was anything",
        );
        return Ok(());
    }
    let judgement = deleted.must_be(&[410]).map_err(|message| {
        let refused = refusal.got();
        format!("the provision was answered with {refused}, and then deleting it: {message}")
    });
    run.record(&NOTHING_MADE, &deleted, judgement);
    Ok(())
}

fn incomplete(good: &Value) -> Vec<BadBody> {
    let fields = [
        (&SERVICE, "service_id"),
        (&PLAN, "plan_id"),
        (&ORGANIZATION, "organization_guid"),
        (&SPACE, "space_guid"),
    ];
    let bad = |case, what: String, body: Value| {
        BadBody::new(case, &what, &body, ExpectedRefusal::BadRequest)
    };
    let mut all = Vec::new();
    for (case, field) in fields {
        all.push(bad(case, format!("no `{field}`"), without(good, field)));
        all.push(bad(
            case,
            format!("an empty `{field}`"),
            with(good, field, ""),
        ));
    }
    all
}

fn malformed(good: &Value) -> Vec<BadBody> {
    let bodies = [
        ("a number as `service_id`", with(good, "service_id", 1)),
        ("a list as `plan_id`", with(good, "plan_id", json!([]))),
        ("a text as `parameters`", with(good, "parameters", "x")),
        ("a list as `context`", with(good, "context", json!([]))),
        ("a list as the body", json!([good])),
    ];
    let mut all: Vec<BadBody> = bodies
        .iter()
        .map(|(what, body)| BadBody::new(&MALFORMED, what, body, ExpectedRefusal::BadRequest))
        .collect();
    let mut cut = good.to_string();
    cut.pop();
    all.push(BadBody {
        case: &MALFORMED,
        what: "half a body".to_owned(),
        body: cut,
        expected: ExpectedRefusal::BadRequest,
    });
    all
}

fn unknown(run: &PlanRun, good: &Value) -> Vec<BadBody> {
    let refused = ExpectedRefusal::Refused;
    let mut all = vec![
        BadBody::new(
            &UNKNOWN_SERVICE,
            "an unknown `service_id`",
            &with(good, "service_id", NOWHERE),
            refused,
        ),
        BadBody::new(
            &UNKNOWN_PLAN,
            "an unknown `plan_id`",
            &with(good, "plan_id", NOWHERE),
            refused,
        ),
    ];
    match run.foreign_plan() {
        Some(plan) => {
            let body = with(good, "plan_id", plan.id.as_str());
            all.push(BadBody::new(
                &FOREIGN_PLAN,
                "a plan of another offering",
                &body,
                refused,
            ));
        }
        None => run.skip(&FOREIGN_PLAN, "the catalog has no plan of another offering"),
    }
    all
}

fn unfit(run: &PlanRun, good: &Value) -> Vec<BadBody> {
    match run.samples().provision.invalid() {
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
