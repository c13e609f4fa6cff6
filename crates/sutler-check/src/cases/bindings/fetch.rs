//! Fetches bindings, if the offering sets `bindings_retrievable`.

use super::{LiveBinding, binding_contents};
use crate::case::Case;
use crate::cases::LiveInstance;
use crate::client::StopReason;
use crate::created::BindingId;
use crate::exchange::Exchange;
use crate::plan_run::PlanRun;
use crate::target::Target;
use std::sync::Arc;
use sutler_client::wire::Method;

const FETCHED: Case = Case::must(
    "binding-fetch",
    "B-230",
    "Where `bindings_retrievable` is true, a binding that is there is fetched with 200.",
);

const AT_ONCE: Case = Case::must(
    "binding-fetch-at-once",
    "B-113",
    "Once a poll has said that a bind succeeded, the binding can be fetched.",
);

const CREDENTIALS: Case = Case::must(
    "binding-fetch-credentials",
    "B-231",
    "After an asynchronous bind a fetch gives the credentials, if the broker makes any.",
);

const SAME: Case = Case::should(
    "binding-fetch-same",
    "B-231",
    "What a fetch gives is what the bind gave.",
);

const PARAMETERS: Case = Case::may(
    "binding-fetch-parameters",
    "B-233",
    "A fetch gives the parameters that the binding was made with.",
);

const UNKNOWN: Case = Case::must(
    "binding-fetch-unknown",
    "B-232",
    "A fetch of a binding that does not exist is answered with 404.",
);

const GONE: Case = Case::must(
    "binding-fetch-gone",
    "B-232",
    "A fetch of a binding that was removed is answered with 404.",
);

pub(crate) const CASES: &[&Case] = &[
    &FETCHED,
    &AT_ONCE,
    &CREDENTIALS,
    &SAME,
    &PARAMETERS,
    &UNKNOWN,
    &GONE,
];

/// Reason if bindings cannot be fetched.
pub(crate) const NOT_OFFERED: &str = "the offering does not say `bindings_retrievable: true`";

/// Whether bindings can be fetched.
pub(crate) fn is_offered(run: &PlanRun) -> bool {
    run.offering().flag("bindings_retrievable")
}

/// Fetches a binding.
pub(crate) async fn ask(run: &PlanRun, target: Target<'_>) -> Result<Arc<Exchange>, StopReason> {
    let owner = run.owner();
    let request = target
        .request(Method::Get)
        .query("service_id", &owner.service_id)
        .query("plan_id", &owner.plan_id);
    run.client.ask(request).await
}

/// Fetches a binding directly after its creation.
pub(crate) async fn first(
    run: &PlanRun,
    bound: &LiveBinding,
) -> Result<Option<Arc<Exchange>>, StopReason> {
    if !is_offered(run) {
        for case in CASES {
            run.skip(case, NOT_OFFERED);
        }
        return Ok(None);
    }
    let answer = ask(run, bound.target()).await?;
    let case = if bound.was_asynchronous() {
        &AT_ONCE
    } else {
        &FETCHED
    };
    run.record(case, &answer, answer.must_be(&[200]));
    Ok(answer.is(&[200]).then_some(answer))
}

/// Fetches the binding again after other requests, and one that never existed; returns whether
/// the answers are equal.
pub(crate) async fn again(
    run: &PlanRun,
    live: &LiveInstance,
    bound: &LiveBinding,
) -> Result<bool, StopReason> {
    if !is_offered(run) {
        return Ok(false);
    }
    let absent_id = BindingId::new(&live.id);
    let answer = ask(run, Target::Binding(&absent_id)).await?;
    run.record(&UNKNOWN, &answer, answer.must_be(&[404]));
    let answer = ask(run, bound.target()).await?;
    run.record(&FETCHED, &answer, answer.must_be(&[200]));
    if !answer.is(&[200]) {
        return Ok(false);
    }
    let mut is_stable = true;
    for known in bound.answers() {
        let judgement = binding_contents::same(known, &answer);
        is_stable &= judgement.is_ok();
        run.record(&SAME, &answer, judgement);
    }
    let requested = bound.body.get("parameters");
    match (requested, answer.field("parameters")) {
        (None, _) => run.skip(&PARAMETERS, "the bind had no parameters"),
        (Some(requested), Some(got)) if requested == got => {
            run.record(&PARAMETERS, &answer, Ok(()))
        }
        (Some(_), Some(_)) => {
            let message = "`parameters` are not those of the bind".to_owned();
            run.record(&PARAMETERS, &answer, Err(message));
        }
        (Some(_), None) => {
            let message = "there are no `parameters`".to_owned();
            run.record(&PARAMETERS, &answer, Err(message));
        }
    }
    Ok(is_stable)
}

/// Checks the first fetch after an asynchronous bind; `elsewhere`: other answers of this plan's
/// bindings contained credentials.
pub(crate) fn credentials(run: &PlanRun, bound: &LiveBinding, elsewhere: bool) {
    let Some(fetched) = &bound.fetched else {
        return;
    };
    if !bound.was_asynchronous() {
        return run.skip(&CREDENTIALS, super::create::SYNCHRONOUS);
    }
    if binding_contents::credentials(fetched).is_some() {
        run.record(&CREDENTIALS, fetched, Ok(()));
    } else if elsewhere {
        let message = "the broker makes credentials, and the fetch gave none".to_owned();
        run.record(&CREDENTIALS, fetched, Err(message));
    } else {
        run.skip(&CREDENTIALS, "the broker was not seen to make credentials");
    }
}

/// Fetches a deleted binding.
pub(crate) async fn gone(run: &PlanRun, target: Target<'_>) -> Result<(), StopReason> {
    if is_offered(run) {
        let answer = ask(run, target).await?;
        run.record(&GONE, &answer, answer.must_be(&[404]));
    }
    Ok(())
}
