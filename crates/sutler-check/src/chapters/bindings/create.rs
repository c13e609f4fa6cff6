//! The first binding. It is asked for with as little as possible, then with an application, then
//! with patience: what the broker refuses on the way must be said in the right words.

use super::ask::{self, Manner};
use super::{Bound, fetch, given, polls};
use crate::asker::Stop;
use crate::case::Case;
use crate::chapters::Live;
use crate::exchange::Exchange;
use crate::ledger::BindingId;
use crate::stage::{Ended, Stage};
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
    manner: Manner,
    answer: Arc<Exchange>,
}

/// Makes the first binding; none if the broker would not.
pub(crate) async fn walk(stage: &Stage, live: &Live) -> Result<Option<Bound>, Stop> {
    let id = BindingId::new(&live.id);
    let target = Target::Binding(&id);
    let mut attempts = Vec::new();
    let mut manner = Some(Manner::BARE);
    let mut body = Value::Null;
    while let Some(next) = manner {
        body = ask::body(stage, next);
        let answer = stage.put(target, &body, next.incomplete).await?;
        manner = next.after(&answer);
        attempts.push(Attempt {
            manner: next,
            answer,
        });
    }
    let Some(last) = attempts.last() else {
        return Ok(None);
    };
    let (manner, answer) = (last.manner, last.answer.clone());
    stage.judge(&CREATED, &answer, answer.must_be(&[201, 202]));
    refusals(stage, &attempts);
    finish(stage, id, body, manner, answer).await
}

/// Sees a bind that was answered to its end: polls, fetches, and judges what was given.
pub(crate) async fn finish(
    stage: &Stage,
    id: BindingId,
    body: Value,
    manner: Manner,
    made_by: Arc<Exchange>,
) -> Result<Option<Bound>, Stop> {
    if made_by.is(&[202]) {
        accepted(stage, &made_by);
        if polls::to_success(stage, &id, &made_by).await? != Ended::Succeeded {
            return Ok(None);
        }
    } else {
        stage.skip(&RETRIEVABLE, SYNCHRONOUS);
        if !made_by.is(&[200, 201]) {
            return Ok(None);
        }
    }
    let mut bound = Bound {
        id,
        body,
        manner,
        made_by,
        fetched: None,
        is_stable: false,
    };
    bound.fetched = fetch::first(stage, &bound).await?;
    given::judge(stage, &bound);
    Ok(Some(bound))
}

/// Why nothing is seen of asynchronous binds.
pub(crate) const SYNCHRONOUS: &str = "the bind was not answered with 202";

/// What a 202 has to be.
pub(crate) fn accepted(stage: &Stage, answer: &Arc<Exchange>) {
    let retrievable = stage.offering().flag("bindings_retrievable");
    let judgement = if retrievable {
        Ok(())
    } else {
        Err("the bind was answered with 202, and the offering does not say `bindings_retrievable: true`".to_owned())
    };
    stage.judge(&RETRIEVABLE, answer, judgement);
}

fn refusals(stage: &Stage, attempts: &[Attempt]) {
    let rows = [
        (
            &REQUIRES_APP,
            "RequiresApp",
            missed_app as fn(Manner, Manner) -> bool,
            "the broker binds without an application",
        ),
        (
            &ASYNC_REQUIRED,
            "AsyncRequired",
            missed_patience,
            "the broker binds synchronously for who asks for that",
        ),
    ];
    for (case, error, missed, unseen) in rows {
        match refused_for(attempts, error, missed) {
            Some(refusal) => stage.judge(case, refusal, refusal.must_be_error(422, error)),
            None => stage.skip(case, unseen),
        }
    }
}

fn missed_app(before: Manner, after: Manner) -> bool {
    !before.app && after.app
}

fn missed_patience(before: Manner, after: Manner) -> bool {
    !before.incomplete && after.incomplete
}

/// The refusal that was for this reason: it says so, or only what it lacked made the next attempt
/// the one that was taken.
fn refused_for<'a>(
    attempts: &'a [Attempt],
    error: &str,
    missed: fn(Manner, Manner) -> bool,
) -> Option<&'a Arc<Exchange>> {
    let said = attempts
        .iter()
        .find(|it| it.answer.must_be_error(422, error).is_ok());
    if let Some(said) = said {
        return Some(&said.answer);
    }
    let [.., before, after] = attempts else {
        return None;
    };
    let taken = after.answer.is(&[200, 201, 202]);
    (taken && missed(before.manner, after.manner)).then_some(&before.answer)
}

#[cfg(test)]
mod tests {
    use super::{Attempt, missed_app, missed_patience, refused_for};
    use crate::chapters::bindings::ask::Manner;
    use crate::exchange::Exchange;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn attempt(app: bool, incomplete: bool, status: u16, body: &Value) -> Attempt {
        Attempt {
            manner: Manner { app, incomplete },
            answer: Arc::new(Exchange::answered(status, body)),
        }
    }

    #[test]
    fn a_refusal_that_says_why_is_found_wherever_it_was() {
        let attempts = [
            attempt(false, false, 422, &json!({ "error": "RequiresApp" })),
            attempt(true, false, 422, &json!({ "error": "AsyncRequired" })),
            attempt(true, true, 202, &json!({})),
        ];
        let app = refused_for(&attempts, "RequiresApp", missed_app);
        assert!(Arc::ptr_eq(app.unwrap(), &attempts[0].answer));
        let patience = refused_for(&attempts, "AsyncRequired", missed_patience);
        assert!(Arc::ptr_eq(patience.unwrap(), &attempts[1].answer));
    }

    #[test]
    fn a_refusal_that_says_nothing_is_known_by_what_was_missing() {
        let attempts = [
            attempt(false, false, 400, &json!({})),
            attempt(true, false, 201, &json!({})),
        ];
        assert!(refused_for(&attempts, "RequiresApp", missed_app).is_some());
        assert!(refused_for(&attempts, "AsyncRequired", missed_patience).is_none());
    }

    #[test]
    fn who_never_takes_a_bind_did_not_refuse_it_for_what_was_missing() {
        let attempts = [
            attempt(true, false, 400, &json!({})),
            attempt(true, true, 400, &json!({})),
        ];
        assert!(refused_for(&attempts, "AsyncRequired", missed_patience).is_none());
    }
}
