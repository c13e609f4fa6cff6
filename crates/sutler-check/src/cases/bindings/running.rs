//! A second, asynchronous binding with all optional fields.
//!
//! While it is in progress: the same bind, a conflicting one, a fetch, and another binding.

use super::bind_body::{self, BindMode, OtherBind};
use super::{LiveBinding, create, fetch, polls, repeat};
use crate::case::Case;
use crate::cases::LiveInstance;
use crate::client::StopReason;
use crate::created::BindingId;
use crate::exchange::Exchange;
use crate::plan_run::PlanRun;
use crate::target::Target;
use serde_json::Value;
use std::sync::Arc;

const OPTIONAL: Case = Case::must(
    "bind-optional-fields",
    "B-181",
    "A bind may have everything that the specification lists: context, application, space, annotations.",
);

const REPEAT: Case = Case::must(
    "bind-repeat-running",
    "B-184",
    "The same bind again while it goes on is answered with 202 and the same operation.",
);

const CONFLICT: Case = Case::must(
    "bind-conflict-running",
    "B-186",
    "A bind with other parameters under an id that is being made is answered with 409.",
);

const FETCH: Case = Case::must(
    "binding-fetch-running",
    "B-232",
    "A fetch of a binding that is being made is answered with 404.",
);

const CONCURRENCY: Case = Case::must(
    "bind-concurrency",
    "B-188",
    "Another bind while one goes on is taken, or refused with 422 ConcurrencyError.",
);

pub(crate) const CASES: &[&Case] = &[&OPTIONAL, &REPEAT, &CONFLICT, &FETCH, &CONCURRENCY];

/// Reason why cases about a bind in progress do not apply.
pub(crate) const ENDED: &str = "the bind ended before it could be seen running";

/// Bindings created here.
pub(crate) struct ConcurrentBinds {
    pub second: Option<LiveBinding>,
    /// Another id that was bound meanwhile, and the answer.
    pub third: Option<(BindingId, Arc<Exchange>)>,
}

/// Creates the second binding and sends other requests meanwhile.
pub(crate) async fn walk(
    run: &PlanRun,
    live: &LiveInstance,
    first: &LiveBinding,
) -> Result<ConcurrentBinds, StopReason> {
    let mode = BindMode {
        app: true,
        incomplete: true,
    };
    let id = BindingId::new(&live.id);
    let mut body = bind_body::with_all_there_is(first.body.clone());
    let mut answer = run.put(Target::Binding(&id), &body, true).await?;
    let taken = answer.must_be(&[201, 202]);
    let refused = taken.is_err();
    run.record(&OPTIONAL, &answer, taken);
    if refused {
        body = first.body.clone();
        answer = run.put(Target::Binding(&id), &body, true).await?;
    }
    let third = if answer.is(&[202]) {
        Some(meanwhile(run, &id, &body, &answer).await?)
    } else {
        for case in [&REPEAT, &CONFLICT, &FETCH, &CONCURRENCY] {
            run.skip(case, create::SYNCHRONOUS);
        }
        polls::synchronous(run);
        None
    };
    let second = create::finish(run, id, body, mode, answer).await?;
    Ok(ConcurrentBinds { second, third })
}

/// Answers to requests during a bind in progress, and the poll after them.
struct AnswersDuringBind {
    repeat: Arc<Exchange>,
    conflict: Result<Arc<Exchange>, String>,
    fetch: Option<Arc<Exchange>>,
    another: Arc<Exchange>,
    still_running: bool,
}

async fn meanwhile(
    run: &PlanRun,
    id: &BindingId,
    body: &Value,
    accepted: &Arc<Exchange>,
) -> Result<(BindingId, Arc<Exchange>), StopReason> {
    let target = Target::Binding(id);
    let repeat = run.put(target, body, true).await?;
    let conflict = match bind_body::other(run, body) {
        OtherBind::Body(other) => Ok(run.put(target, &other, true).await?),
        OtherBind::None(reason) => Err(reason),
    };
    let fetch = if fetch::is_offered(run) {
        Some(fetch::ask(run, target).await?)
    } else {
        None
    };
    let third = BindingId::new(&id.instance);
    let another = run.put(Target::Binding(&third), body, true).await?;
    let poll = run.poll(target, Some(accepted)).await?;
    let during = AnswersDuringBind {
        repeat,
        conflict,
        fetch,
        another: another.clone(),
        still_running: poll.is_running(),
    };
    check(run, accepted, &during);
    Ok((third, another))
}

fn check(run: &PlanRun, accepted: &Exchange, during: &AnswersDuringBind) {
    let record =
        |case, exchange: &Arc<Exchange>, judgement: Option<Result<(), String>>| match judgement {
            Some(judgement) => run.record(case, exchange, judgement),
            None => run.skip(case, ENDED),
        };
    let running = during.still_running;
    record(
        &REPEAT,
        &during.repeat,
        repeated(accepted, &during.repeat, running),
    );
    match &during.conflict {
        Ok(answer) => repeat::check_conflict(run, &CONFLICT, answer),
        Err(reason) => run.skip(&CONFLICT, reason),
    }
    match &during.fetch {
        Some(answer) => record(&FETCH, answer, while_running(answer, running, &[404])),
        None => run.skip(&FETCH, fetch::NOT_OFFERED),
    }
    let another = &during.another;
    if another.is(&[201, 202]) {
        run.record(&CONCURRENCY, another, Ok(()));
    } else if running {
        let judgement = another.must_be_error(422, "ConcurrencyError");
        run.record(&CONCURRENCY, another, judgement);
    } else {
        run.skip(&CONCURRENCY, ENDED);
    }
}

/// Verdict about a repeated bind: a 202 was sent during the first one, whatever a later poll reports.
pub(crate) fn repeated(
    first: &Exchange,
    repeat: &Exchange,
    still_running: bool,
) -> Option<Result<(), String>> {
    if !repeat.is(&[202]) {
        return still_running.then(|| repeat.must_be(&[202]));
    }
    let (one, other) = (first.field("operation"), repeat.field("operation"));
    Some(if one == other {
        Ok(())
    } else {
        Err("`operation` is not that of the first answer".to_owned())
    })
}

/// Verdict about an answer given during the operation; `None` if that is uncertain.
pub(crate) fn while_running(
    answer: &Exchange,
    still_running: bool,
    expected: &[u16],
) -> Option<Result<(), String>> {
    if answer.is(expected) {
        return Some(Ok(()));
    }
    still_running.then(|| answer.must_be(expected))
}

#[cfg(test)]
mod tests {
    use super::{repeated, while_running};
    use crate::exchange::Exchange;
    use serde_json::json;

    #[test]
    fn a_repeat_has_the_same_operation_or_none_like_the_first() {
        let first = Exchange::answered(202, &json!({ "operation": "a" }));
        let other = Exchange::answered(202, &json!({ "operation": "b" }));
        let none = Exchange::answered(202, &json!({}));
        assert_eq!(repeated(&first, &first, true), Some(Ok(())));
        assert_eq!(repeated(&none, &none, false), Some(Ok(())));
        assert!(repeated(&first, &other, false).unwrap().is_err());
        assert!(repeated(&first, &none, true).unwrap().is_err());
    }

    #[test]
    fn another_status_counts_only_while_the_operation_is_known_to_run() {
        let first = Exchange::answered(202, &json!({ "operation": "a" }));
        let done = Exchange::answered(200, &json!({}));
        assert!(repeated(&first, &done, true).unwrap().is_err());
        assert_eq!(repeated(&first, &done, false), None);
        assert!(while_running(&done, true, &[404]).unwrap().is_err());
        assert_eq!(while_running(&done, false, &[404]), None);
        assert_eq!(while_running(&done, false, &[200]), Some(Ok(())));
    }
}
