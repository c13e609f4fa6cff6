//! Rotation: a bind that succeeds another. Old and new stay side by side.

use super::{Bound, create, discard, fetch, given};
use crate::asker::Stop;
use crate::case::Case;
use crate::chapters::Live;
use crate::exchange::Exchange;
use crate::ledger::BindingId;
use crate::stage::Stage;
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

/// Rotates a binding where the plan says that it can be done; gives the successor.
pub(crate) async fn walk(stage: &Stage, live: &Live, first: &Bound) -> Result<Option<Bound>, Stop> {
    // Only a plan says it; what an offering says does not count.
    if stage.plan().raw["binding_rotatable"].as_bool() != Some(true) {
        not_rotatable(stage, live, first).await?;
        return Ok(None);
    }
    stage.skip(&REFUSED, "the plan says `binding_rotatable: true`");
    unknown_predecessor(stage, live, first).await?;
    let id = BindingId::new(&live.id);
    let bare = json!({ "predecessor_binding_id": first.id.as_str() });
    let full = with_predecessor(&first.body, first.id.as_str());
    let incomplete = first.manner.incomplete;
    let mut body = bare;
    let mut answer = stage.put(Target::Binding(&id), &body, incomplete).await?;
    let taken = answer.must_be(&[201, 202]);
    let refused = taken.is_err();
    stage.judge(&BARE, &answer, taken);
    if refused {
        body = full;
        answer = stage.put(Target::Binding(&id), &body, incomplete).await?;
    }
    stage.judge(&ROTATED, &answer, answer.must_be(&[201, 202]));
    let Some(new) = create::finish(stage, id, body, first.manner, answer).await? else {
        return Ok(None);
    };
    let again = stage.put(new.target(), &new.body, incomplete).await?;
    stage.judge(&REPEAT, &again, again.must_be(&[200]));
    parameters(stage, first, &new).await?;
    given::unlike(stage, &CREDENTIALS, first, &new);
    if let Some((answer, judgement)) = is_there(stage, first).await? {
        stage.judge(&OLD_STAYS, &answer, judgement);
    } else {
        stage.skip(&OLD_STAYS, fetch::NOT_OFFERED);
    }
    Ok(Some(new))
}

/// Sees whether a successor is there when its predecessor is gone.
pub(crate) async fn outlives(stage: &Stage, successor: &Bound) -> Result<(), Stop> {
    match is_there(stage, successor).await? {
        Some((answer, judgement)) => stage.judge(&NEW_STAYS, &answer, judgement),
        None => stage.skip(&NEW_STAYS, fetch::NOT_OFFERED),
    }
    Ok(())
}

async fn not_rotatable(stage: &Stage, live: &Live, first: &Bound) -> Result<(), Stop> {
    for case in CASES.iter().filter(|it| ***it != REFUSED) {
        stage.skip(case, NOT_ROTATABLE);
    }
    let id = BindingId::new(&live.id);
    let body = with_predecessor(&first.body, first.id.as_str());
    let answer = stage.put(Target::Binding(&id), &body, true).await?;
    stage.judge(&REFUSED, &answer, answer.must_be_refused());
    discard(stage, Target::Binding(&id), &answer).await
}

async fn unknown_predecessor(stage: &Stage, live: &Live, first: &Bound) -> Result<(), Stop> {
    let id = BindingId::new(&live.id);
    let nobody = BindingId::new(&live.id);
    let body = with_predecessor(&first.body, nobody.as_str());
    let answer = stage.put(Target::Binding(&id), &body, true).await?;
    stage.judge(&UNKNOWN, &answer, answer.must_be(&[400]));
    discard(stage, Target::Binding(&id), &answer).await
}

fn with_predecessor(body: &Value, predecessor: &str) -> Value {
    let mut body = body.clone();
    body["predecessor_binding_id"] = json!(predecessor);
    body
}

/// Compares the parameters of both, where fetches give them.
async fn parameters(stage: &Stage, old: &Bound, new: &Bound) -> Result<(), Stop> {
    let of = |bound: &Bound| bound.fetched.as_ref()?.field("parameters").cloned();
    let (Some(asked), Some(answer)) = (of(old), &new.fetched) else {
        stage.skip(&PARAMETERS, "fetches do not give parameters");
        return Ok(());
    };
    let judgement = match of(new) {
        Some(got) if got == asked => Ok(()),
        Some(_) => Err("`parameters` are not those of the predecessor".to_owned()),
        None => Err("the predecessor has `parameters`, and the successor has none".to_owned()),
    };
    stage.judge(&PARAMETERS, answer, judgement);
    Ok(())
}

/// Whether a binding is still there and as it was; none if that cannot be seen.
async fn is_there(
    stage: &Stage,
    bound: &Bound,
) -> Result<Option<(Arc<Exchange>, Result<(), String>)>, Stop> {
    // What could never be fetched says nothing now.
    let Some(before) = &bound.fetched else {
        return Ok(None);
    };
    let answer = fetch::ask(stage, bound.target()).await?;
    let mut judgement = answer.must_be(&[200]);
    if judgement.is_ok() && bound.is_stable {
        judgement = given::same(before, &answer);
    }
    Ok(Some((answer, judgement)))
}
