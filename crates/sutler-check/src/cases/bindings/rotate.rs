//! Rotation: a bind with a predecessor; both bindings exist afterwards.

use super::{LiveBinding, binding_contents, create, discard, fetch};
use crate::case::Case;
use crate::cases::LiveInstance;
use crate::client::StopReason;
use crate::created::BindingId;
use crate::exchange::Exchange;
use crate::plan_run::PlanRun;
use crate::target::Target;
use serde_json::{Value, json};
use std::sync::Arc;

const REFUSED: Case = Case::may(
    "rotate-not-rotatable",
    "B-200",
    "A plan that does not say `binding_rotatable: true` refuses a bind with a predecessor.",
);

const UNKNOWN: Case = Case::must(
    "rotate-unknown-predecessor",
    "B-201",
    "A rotation whose predecessor is no binding of the instance is answered with 400.",
);

const BARE: Case = Case::may(
    "rotate-predecessor-only",
    "B-201",
    "A rotation needs nothing but `predecessor_binding_id`.",
);

const ROTATED: Case = Case::must(
    "rotate-created",
    "B-200",
    "A plan that says `binding_rotatable: true` makes a successor: 201, or 202 while it goes on.",
);

const PARAMETERS: Case = Case::must(
    "rotate-parameters",
    "B-202",
    "A successor has the parameters of its predecessor.",
);

const REPEAT: Case = Case::should(
    "rotate-repeat",
    "B-202",
    "The same rotation again, when it is done, is answered with 200.",
);

const CREDENTIALS: Case = Case::should(
    "rotate-credentials",
    "B-202",
    "A successor has credentials of its own.",
);

const OLD_STAYS: Case = Case::must(
    "rotate-old-stays",
    "B-203",
    "A predecessor stays as it is when it has a successor.",
);

const NEW_STAYS: Case = Case::must(
    "rotate-new-stays",
    "B-203",
    "A successor stays when its predecessor is removed.",
);

pub(crate) const CASES: &[&Case] = &[
    &REFUSED,
    &UNKNOWN,
    &BARE,
    &ROTATED,
    &PARAMETERS,
    &REPEAT,
    &CREDENTIALS,
    &OLD_STAYS,
    &NEW_STAYS,
];

const NOT_ROTATABLE: &str = "the plan does not say `binding_rotatable: true`";

/// Rotates a binding if the plan allows it; returns the successor.
pub(crate) async fn walk(
    run: &PlanRun,
    live: &LiveInstance,
    first: &LiveBinding,
) -> Result<Option<LiveBinding>, StopReason> {
    // Only the flag of the plan counts, not that of the offering.
    if run.plan().raw["binding_rotatable"].as_bool() != Some(true) {
        not_rotatable(run, live, first).await?;
        return Ok(None);
    }
    run.skip(&REFUSED, "the plan says `binding_rotatable: true`");
    unknown_predecessor(run, live, first).await?;
    let id = BindingId::new(&live.id);
    let bare = json!({ "predecessor_binding_id": first.id.as_str() });
    let full = with_predecessor(&first.body, first.id.as_str());
    let incomplete = first.mode.incomplete;
    let mut body = bare;
    let mut answer = run.put(Target::Binding(&id), &body, incomplete).await?;
    let taken = answer.must_be(&[201, 202]);
    let refused = taken.is_err();
    run.record(&BARE, &answer, taken);
    if refused {
        body = full;
        answer = run.put(Target::Binding(&id), &body, incomplete).await?;
    }
    run.record(&ROTATED, &answer, answer.must_be(&[201, 202]));
    let Some(new) = create::finish(run, id, body, first.mode, answer).await? else {
        return Ok(None);
    };
    let again = run.put(new.target(), &new.body, incomplete).await?;
    run.record(&REPEAT, &again, again.must_be(&[200]));
    parameters(run, first, &new).await?;
    binding_contents::unlike(run, &CREDENTIALS, first, &new);
    if let Some((answer, judgement)) = is_there(run, first).await? {
        run.record(&OLD_STAYS, &answer, judgement);
    } else {
        run.skip(&OLD_STAYS, fetch::NOT_OFFERED);
    }
    Ok(Some(new))
}

/// Checks that a successor exists after its predecessor was deleted.
pub(crate) async fn outlives(run: &PlanRun, successor: &LiveBinding) -> Result<(), StopReason> {
    match is_there(run, successor).await? {
        Some((answer, judgement)) => run.record(&NEW_STAYS, &answer, judgement),
        None => run.skip(&NEW_STAYS, fetch::NOT_OFFERED),
    }
    Ok(())
}

async fn not_rotatable(
    run: &PlanRun,
    live: &LiveInstance,
    first: &LiveBinding,
) -> Result<(), StopReason> {
    for case in CASES.iter().filter(|it| ***it != REFUSED) {
        run.skip(case, NOT_ROTATABLE);
    }
    let id = BindingId::new(&live.id);
    let body = with_predecessor(&first.body, first.id.as_str());
    let answer = run.put(Target::Binding(&id), &body, true).await?;
    run.record(&REFUSED, &answer, answer.must_be_refused());
    discard(run, Target::Binding(&id), &answer).await
}

async fn unknown_predecessor(
    run: &PlanRun,
    live: &LiveInstance,
    first: &LiveBinding,
) -> Result<(), StopReason> {
    let id = BindingId::new(&live.id);
    let absent_id = BindingId::new(&live.id);
    let body = with_predecessor(&first.body, absent_id.as_str());
    let answer = run.put(Target::Binding(&id), &body, true).await?;
    run.record(&UNKNOWN, &answer, answer.must_be(&[400]));
    discard(run, Target::Binding(&id), &answer).await
}

fn with_predecessor(body: &Value, predecessor: &str) -> Value {
    let mut body = body.clone();
    body["predecessor_binding_id"] = json!(predecessor);
    body
}

/// Compares the parameters of both, if fetches return them.
async fn parameters(run: &PlanRun, old: &LiveBinding, new: &LiveBinding) -> Result<(), StopReason> {
    let of = |bound: &LiveBinding| bound.fetched.as_ref()?.field("parameters").cloned();
    let (Some(requested), Some(answer)) = (of(old), &new.fetched) else {
        run.skip(&PARAMETERS, "fetches do not give parameters");
        return Ok(());
    };
    let judgement = match of(new) {
        Some(got) if got == requested => Ok(()),
        Some(_) => Err("`parameters` are not those of the predecessor".to_owned()),
        None => Err("the predecessor has `parameters`, and the successor has none".to_owned()),
    };
    run.record(&PARAMETERS, answer, judgement);
    Ok(())
}

/// Whether a binding still exists unchanged; `None` if that cannot be observed.
async fn is_there(
    run: &PlanRun,
    bound: &LiveBinding,
) -> Result<Option<(Arc<Exchange>, Result<(), String>)>, StopReason> {
    // A binding that could never be fetched proves nothing now.
    let Some(before) = &bound.fetched else {
        return Ok(None);
    };
    let answer = fetch::ask(run, bound.target()).await?;
    let mut judgement = answer.must_be(&[200]);
    if judgement.is_ok() && bound.is_stable {
        judgement = binding_contents::same(before, &answer);
    }
    Ok(Some((answer, judgement)))
}
