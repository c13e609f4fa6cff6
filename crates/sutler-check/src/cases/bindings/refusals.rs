//! Binds that must be refused, with an id that must never exist.

use super::bind_body::{self, BindMode};
use super::discard;
use crate::case::Case;
use crate::cases::LiveInstance;
use crate::cases::refusal::{BadBody, ExpectedRefusal, NOWHERE, with, without};
use crate::client::StopReason;
use crate::created::{BindingId, InstanceId};
use crate::plan_run::{PlanRun, with_incomplete};
use crate::target::Target;
use serde_json::{Value, json};
use sutler_client::wire::Method;

pub(crate) const NOT_BINDABLE: Case = Case::must(
    "bind-not-bindable",
    "B-180",
    "A plan that can be bound says `bindable: true`; one that does not refuses binds.",
);

const NO_SERVICE: Case = Case::must(
    "bind-without-service-id",
    "B-185",
    "A bind whose `service_id` is missing or empty is answered with 400.",
);

const NO_PLAN: Case = Case::must(
    "bind-without-plan-id",
    "B-185",
    "A bind whose `plan_id` is missing or empty is answered with 400.",
);

const WRONG_TYPES: Case = Case::must(
    "bind-wrong-types",
    "B-185",
    "A bind with a field of the wrong type is answered with 400.",
);

const MALFORMED: Case = Case::must(
    "bind-malformed",
    "B-185",
    "A bind whose body is not a JSON object is answered with 400.",
);

const EMPTY_APP: Case = Case::should(
    "bind-empty-app-guid",
    "B-181",
    "A bind with an empty `app_guid` is answered with 400.",
);

const UNKNOWN_IDS: Case = Case::may(
    "bind-unknown-ids",
    "B-185",
    "A bind whose `service_id` or `plan_id` the catalog does not have is answered with 400.",
);

const OTHER_PLAN: Case = Case::may(
    "bind-other-plan",
    "B-198",
    "A bind that names another plan than the instance's is refused.",
);

const INVALID: Case = Case::should(
    "bind-invalid-parameters",
    "B-185",
    "A bind whose parameters break the plan's schema is refused.",
);

const NO_INSTANCE: Case = Case::should(
    "bind-unknown-instance",
    "B-198",
    "A bind to an instance that does not exist is refused with 404, or another 4xx.",
);

const NOTHING_LEFT: Case = Case::must(
    "bind-refused-leaves-nothing",
    "B-035",
    "After binds that were refused there is no binding: an unbind is answered with 410.",
);

pub(crate) const CASES: &[&Case] = &[
    &NOT_BINDABLE,
    &NO_SERVICE,
    &NO_PLAN,
    &WRONG_TYPES,
    &MALFORMED,
    &EMPTY_APP,
    &UNKNOWN_IDS,
    &OTHER_PLAN,
    &INVALID,
    &NO_INSTANCE,
    &NOTHING_LEFT,
];

/// Binds an instance of a plan that is not bindable.
pub(crate) async fn not_bindable(run: &PlanRun, live: &LiveInstance) -> Result<(), StopReason> {
    let id = BindingId::new(&live.id);
    let body = bind_body::body(run, BindMode::FULL);
    let answer = run.put(Target::Binding(&id), &body, true).await?;
    run.record(&NOT_BINDABLE, &answer, answer.must_be_refused());
    discard(run, Target::Binding(&id), &answer).await
}

/// Sends all binds that must be refused; `mode` is the mode of an accepted bind.
pub(crate) async fn walk(
    run: &PlanRun,
    live: &LiveInstance,
    mode: BindMode,
) -> Result<(), StopReason> {
    let good = bind_body::body(run, mode);
    let mut all = faulty(&good);
    all.extend(invalid(run, &good));
    all.extend(other_plan(run, &good));
    let mut id = BindingId::new(&live.id);
    for bad in all {
        let target = Target::Binding(&id);
        let request = with_incomplete(target.request(Method::Put), true);
        let request = request.body(bad.body.clone());
        let answer = run.put_request(target, request).await?;
        run.record(bad.case, &answer, bad.check(&answer));
        if answer.is(&[200, 201, 202]) {
            discard(run, target, &answer).await?;
            id = BindingId::new(&live.id);
        }
    }
    let answer = run.delete(Target::Binding(&id), true).await?;
    run.record(&NOTHING_LEFT, &answer, answer.must_be(&[410]));
    nowhere(run, &good).await
}

/// Binds an instance that does not exist.
async fn nowhere(run: &PlanRun, good: &Value) -> Result<(), StopReason> {
    let id = BindingId::new(&InstanceId::new());
    let target = Target::Binding(&id);
    let answer = run.put(target, good, true).await?;
    run.record(&NO_INSTANCE, &answer, answer.must_be_refused());
    if answer.is(&[200, 201, 202]) {
        return discard(run, target, &answer).await;
    }
    run.client.created.is_gone(&target.made());
    Ok(())
}

/// Valid binds with one fault each.
fn faulty(good: &Value) -> Vec<BadBody> {
    let bad = |case, what: &str, body: Value| {
        BadBody::new(case, what, &body, ExpectedRefusal::BadRequest)
    };
    let empty = |name| with(good, name, "");
    let mut all = vec![
        bad(&NO_SERVICE, "no `service_id`", without(good, "service_id")),
        bad(&NO_SERVICE, "an empty `service_id`", empty("service_id")),
        bad(&NO_PLAN, "no `plan_id`", without(good, "plan_id")),
        bad(&NO_PLAN, "an empty `plan_id`", empty("plan_id")),
        bad(&MALFORMED, "a list as body", json!([])),
        bad(&EMPTY_APP, "an empty `app_guid`", empty("app_guid")),
    ];
    let mut cut = bad(&MALFORMED, "half a body", json!(null));
    "{\"service_id\": ".clone_into(&mut cut.body);
    all.push(cut);
    let wrong = [
        ("service_id", json!(17)),
        ("plan_id", json!([])),
        ("parameters", json!("sutler-check")),
        ("bind_resource", json!("sutler-check")),
        ("context", json!([])),
    ];
    for (name, value) in wrong {
        let what = format!("{value} as `{name}`");
        all.push(bad(&WRONG_TYPES, &what, with(good, name, value)));
    }
    for name in ["service_id", "plan_id"] {
        let what = format!("an unknown `{name}`");
        all.push(bad(&UNKNOWN_IDS, &what, with(good, name, NOWHERE)));
    }
    all
}

/// Maximum number of invalid parameters tried.
const INVALID_MAX: usize = 4;

/// Valid binds except for their parameters.
fn invalid(run: &PlanRun, good: &Value) -> Vec<BadBody> {
    let all = match run.samples().bind.invalid() {
        Ok(all) => all,
        Err(reason) => {
            run.skip(&INVALID, reason);
            return Vec::new();
        }
    };
    let bad = all.iter().take(INVALID_MAX).map(|it| {
        let what = format!("parameters {}", it.what);
        let body = with(good, "parameters", it.parameters.clone());
        BadBody::new(&INVALID, &what, &body, ExpectedRefusal::Refused)
    });
    bad.collect()
}

/// A valid bind except that it names another plan of the catalog.
fn other_plan(run: &PlanRun, good: &Value) -> Option<BadBody> {
    let Some(other) = run.sibling() else {
        run.skip(&OTHER_PLAN, "the offering has no other plan to name");
        return None;
    };
    let body = with(good, "plan_id", other.id.as_str());
    let what = "the `plan_id` of another plan";
    Some(BadBody::new(
        &OTHER_PLAN,
        what,
        &body,
        ExpectedRefusal::Refused,
    ))
}
