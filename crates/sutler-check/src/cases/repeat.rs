//! Repeated provisions of an existing instance: 200 for the same request, 409 for a different one.

use super::LiveInstance;
use super::provision::other_organization;
use super::refusal::{with, without};
use crate::case::Case;
use crate::catalog::Plan;
use crate::client::StopReason;
use crate::plan_run::PlanRun;
use serde_json::{Value, json};

const SAME: Case = Case::should(
    "provision-repeat-done",
    "B-123",
    "The same provision again is answered with 200 once the instance is there.",
);
const ORGANIZATION: Case = Case::must(
    "provision-conflict-organization",
    "B-126",
    "A provision under an id that exists for another organization is answered with 409.",
);
const SPACE: Case = Case::must(
    "provision-conflict-space",
    "B-126",
    "A provision under an id that exists in another space is answered with 409.",
);
const PLAN: Case = Case::must(
    "provision-conflict-plan",
    "B-126",
    "A provision under an id that exists with another plan is answered with 409.",
);
const PARAMETERS: Case = Case::must(
    "provision-conflict-parameters",
    "B-126",
    "A provision under an id that exists with other parameters is answered with 409.",
);
const UNCHANGED: Case = Case::must(
    "provision-conflict-changes-nothing",
    "B-035",
    "A provision that was refused as a conflict changes nothing: the first one is still answered with 200.",
);
const UNKNOWN_FIELDS: Case = Case::must(
    "provision-unknown-fields",
    "B-003",
    "Fields of a provision that nobody knows are ignored: it is the same with them as without.",
);

pub(crate) const CASES: &[&Case] = &[
    &SAME,
    &ORGANIZATION,
    &SPACE,
    &PLAN,
    &PARAMETERS,
    &UNCHANGED,
    &UNKNOWN_FIELDS,
];

const NOT_REPEATED: &str = "the same provision again is not answered with 200";

/// Repeats the provision of an existing instance.
pub(crate) async fn walk(run: &PlanRun, live: &mut LiveInstance) -> Result<(), StopReason> {
    let mut repeats = true;
    for accepts_incomplete in [true, false] {
        let same = run
            .put(live.target(), &live.body, accepts_incomplete)
            .await?;
        run.record(&SAME, &same, same.must_be(&[200]));
        repeats &= same.is(&[200]);
    }
    live.repeats = repeats;
    for (case, body) in others(run, &live.body) {
        let answer = run.put(live.target(), &body, true).await?;
        run.record(case, &answer, answer.must_be(&[409]));
    }
    if !repeats {
        run.skip_all(&[&UNCHANGED, &UNKNOWN_FIELDS], NOT_REPEATED);
        return Ok(());
    }
    let same = run.put(live.target(), &live.body, true).await?;
    run.record(&UNCHANGED, &same, same.must_be(&[200]));
    let mut more = with(
        &live.body,
        "sutler-check",
        json!({"nobody": ["knows", "this"]}),
    );
    more["context"]["sutler-check"] = json!(true);
    let more = run.put(live.target(), &more, true).await?;
    run.record(&UNKNOWN_FIELDS, &more, more.must_be(&[200]));
    Ok(())
}

/// Bodies that differ in one attribute.
fn others(run: &PlanRun, body: &Value) -> Vec<(&'static Case, Value)> {
    let mut space = with(body, "space_guid", "sutler-check-other-space");
    space["context"]["space_guid"] = json!("sutler-check-other-space");
    let mut all: Vec<(&'static Case, Value)> =
        vec![(&ORGANIZATION, other_organization(body)), (&SPACE, space)];
    // With invalid parameters the refusal would have another reason.
    let fits = |it: &&Plan| it.raw["schemas"] == run.plan().raw["schemas"];
    match run.sibling().filter(fits) {
        Some(plan) => {
            let mut other = with(body, "plan_id", plan.id.as_str());
            // The version belongs to the plan: a wrong one would be another conflict.
            match &plan.raw["maintenance_info"]["version"] {
                Value::String(version) => {
                    other["maintenance_info"] = json!({"version": version});
                }
                _ => other = without(&other, "maintenance_info"),
            }
            all.push((&PLAN, other));
        }
        None => run.skip(
            &PLAN,
            "there is no other plan of the offering with the same schemas",
        ),
    }
    match run.samples().provision.other() {
        Ok(parameters) => {
            let other = with(body, "parameters", parameters.clone());
            all.push((&PARAMETERS, other));
        }
        Err(reason) => run.skip(&PARAMETERS, reason),
    }
    all
}
