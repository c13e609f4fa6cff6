//! The first binding: requested with minimal fields, then with an application, then asynchronously.
//!
//! Each refusal on the way must use the error code of the specification.

use super::bind_body::{self, BindMode};
use super::{LiveBinding, binding_contents, fetch, polls};
use crate::case::Case;
use crate::cases::LiveInstance;
use crate::client::StopReason;
use crate::created::BindingId;
use crate::exchange::Exchange;
use crate::plan_run::{PlanRun, PollEnd};
use crate::target::Target;
use serde_json::Value;
use std::sync::Arc;

const CREATED: Case = Case::must(
    "bind-created",
    "B-182",
    "A bind that is done with the answer is answered with 201, one that goes on with 202.",
);

const REQUIRES_APP: Case = Case::must(
    "bind-requires-app",
    "B-187",
    "A bind that is refused because it names no application is refused with 422 RequiresApp.",
);

const ASYNC_REQUIRED: Case = Case::must(
    "bind-async-required",
    "B-188",
    "A bind that can only be done asynchronously is refused with 422 AsyncRequired to who does not accept that.",
);

const RETRIEVABLE: Case = Case::must(
    "bind-async-retrievable",
    "B-113",
    "An offering whose binds are answered with 202 says `bindings_retrievable: true`: how else would credentials be had.",
);

pub(crate) const CASES: &[&Case] = &[&CREATED, &REQUIRES_APP, &ASYNC_REQUIRED, &RETRIEVABLE];

/// One attempt at a bind.
struct Attempt {
    mode: BindMode,
    answer: Arc<Exchange>,
}

/// Creates the first binding; `None` if the broker refused.
pub(crate) async fn walk(
    run: &PlanRun,
    live: &LiveInstance,
) -> Result<Option<LiveBinding>, StopReason> {
    let id = BindingId::new(&live.id);
    let target = Target::Binding(&id);
    let mut attempts = Vec::new();
    let mut mode = Some(BindMode::BARE);
    let mut body = Value::Null;
    while let Some(next) = mode {
        body = bind_body::body(run, next);
        let answer = run.put(target, &body, next.incomplete).await?;
        mode = next.after(&answer);
        attempts.push(Attempt { mode: next, answer });
    }
    let Some(last) = attempts.last() else {
        return Ok(None);
    };
    let (mode, answer) = (last.mode, last.answer.clone());
    run.record(&CREATED, &answer, answer.must_be(&[201, 202]));
    refusals(run, &attempts);
    finish(run, id, body, mode, answer).await
}

/// Completes an accepted bind: polls, fetches, and checks the contents.
pub(crate) async fn finish(
    run: &PlanRun,
    id: BindingId,
    body: Value,
    mode: BindMode,
    made_by: Arc<Exchange>,
) -> Result<Option<LiveBinding>, StopReason> {
    if made_by.is(&[202]) {
        accepted(run, &made_by);
        if polls::to_success(run, &id, &made_by).await? != PollEnd::Succeeded {
            return Ok(None);
        }
    } else {
        run.skip(&RETRIEVABLE, SYNCHRONOUS);
        if !made_by.is(&[200, 201]) {
            return Ok(None);
        }
    }
    let mut bound = LiveBinding {
        id,
        body,
        mode,
        made_by,
        fetched: None,
        is_stable: false,
    };
    bound.fetched = fetch::first(run, &bound).await?;
    binding_contents::check(run, &bound);
    Ok(Some(bound))
}

/// Reason why cases about asynchronous binds do not apply.
pub(crate) const SYNCHRONOUS: &str = "the bind was not answered with 202";

/// Checks a 202.
pub(crate) fn accepted(run: &PlanRun, answer: &Arc<Exchange>) {
    let retrievable = run.offering().flag("bindings_retrievable");
    let judgement = if retrievable {
        Ok(())
    } else {
        Err("the bind was answered with 202, and the offering does not say `bindings_retrievable: true`".to_owned())
    };
    run.record(&RETRIEVABLE, answer, judgement);
}

fn refusals(run: &PlanRun, attempts: &[Attempt]) {
    let rows = [
        (
            &REQUIRES_APP,
            "RequiresApp",
            missed_app as fn(BindMode, BindMode) -> bool,
            "the broker binds without an application",
        ),
        (
            &ASYNC_REQUIRED,
            "AsyncRequired",
            missed_async,
            "the broker binds synchronously for who asks for that",
        ),
    ];
    for (case, error, missed, unseen) in rows {
        match refused_for(attempts, error, missed) {
            Some(refusal) => run.record(case, refusal, refusal.must_be_error(422, error)),
            None => run.skip(case, unseen),
        }
    }
}

fn missed_app(before: BindMode, after: BindMode) -> bool {
    !before.app && after.app
}

fn missed_async(before: BindMode, after: BindMode) -> bool {
    !before.incomplete && after.incomplete
}

/// The refusal for this reason: its `error` names it, or the next attempt succeeded and differed
/// only in it.
fn refused_for<'a>(
    attempts: &'a [Attempt],
    error: &str,
    missed: fn(BindMode, BindMode) -> bool,
) -> Option<&'a Arc<Exchange>> {
    let message = attempts
        .iter()
        .find(|it| it.answer.must_be_error(422, error).is_ok());
    if let Some(message) = message {
        return Some(&message.answer);
    }
    let [.., before, after] = attempts else {
        return None;
    };
    let taken = after.answer.is(&[200, 201, 202]);
    (taken && missed(before.mode, after.mode)).then_some(&before.answer)
}

#[cfg(test)]
mod tests {
    use super::{Attempt, missed_app, missed_async, refused_for};
    use crate::cases::bindings::bind_body::BindMode;
    use crate::exchange::Exchange;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn attempt(app: bool, incomplete: bool, status: u16, body: &Value) -> Attempt {
        Attempt {
            mode: BindMode { app, incomplete },
            answer: Arc::new(Exchange::answered(status, body)),
        }
    }

    #[test]
    fn a_refusal_with_a_code_is_found_at_any_attempt() {
        let attempts = [
            attempt(false, false, 422, &json!({ "error": "RequiresApp" })),
            attempt(true, false, 422, &json!({ "error": "AsyncRequired" })),
            attempt(true, true, 202, &json!({})),
        ];
        let app = refused_for(&attempts, "RequiresApp", missed_app);
        assert!(Arc::ptr_eq(app.unwrap(), &attempts[0].answer));
        let async_required = refused_for(&attempts, "AsyncRequired", missed_async);
        assert!(Arc::ptr_eq(async_required.unwrap(), &attempts[1].answer));
    }

    #[test]
    fn a_refusal_without_a_code_is_attributed_by_the_missing_option() {
        let attempts = [
            attempt(false, false, 400, &json!({})),
            attempt(true, false, 201, &json!({})),
        ];
        assert!(refused_for(&attempts, "RequiresApp", missed_app).is_some());
        assert!(refused_for(&attempts, "AsyncRequired", missed_async).is_none());
    }

    #[test]
    fn a_broker_that_refuses_every_bind_did_not_refuse_a_missing_option() {
        let attempts = [
            attempt(true, false, 400, &json!({})),
            attempt(true, true, 400, &json!({})),
        ];
        assert!(refused_for(&attempts, "AsyncRequired", missed_async).is_none());
    }
}
