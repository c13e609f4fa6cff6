//! A second binding, asked for with patience and with everything that a platform may send. While
//! it is being made, the same is asked again, something else, a fetch, and another binding.

use super::ask::{self, Manner, Other};
use super::{Bound, create, fetch, polls, repeat};
use crate::asker::Stop;
use crate::case::Case;
use crate::chapters::Live;
use crate::exchange::Exchange;
use crate::ledger::BindingId;
use crate::stage::Stage;
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

/// Why what happens while a bind goes on was not seen.
pub(crate) const ENDED: &str = "the bind ended before it could be seen running";

/// What this chapter leaves behind.
pub(crate) struct Crowd {
    pub second: Option<Bound>,
    /// An id that was asked for meanwhile, and the answer.
    pub third: Option<(BindingId, Arc<Exchange>)>,
}

/// Makes the second binding and asks on while it is being made.
pub(crate) async fn walk(stage: &Stage, live: &Live, first: &Bound) -> Result<Crowd, Stop> {
    let manner = Manner {
        app: true,
        incomplete: true,
    };
    let id = BindingId::new(&live.id);
    let mut body = ask::with_all_there_is(first.body.clone());
    let mut answer = stage.put(Target::Binding(&id), &body, true).await?;
    let taken = answer.must_be(&[201, 202]);
    let refused = taken.is_err();
    stage.judge(&OPTIONAL, &answer, taken);
    if refused {
        body = first.body.clone();
        answer = stage.put(Target::Binding(&id), &body, true).await?;
    }
    let third = if answer.is(&[202]) {
        Some(meanwhile(stage, &id, &body, &answer).await?)
    } else {
        for case in [&REPEAT, &CONFLICT, &FETCH, &CONCURRENCY] {
            stage.skip(case, create::SYNCHRONOUS);
        }
        polls::synchronous(stage);
        None
    };
    let second = create::finish(stage, id, body, manner, answer).await?;
    Ok(Crowd { second, third })
}

/// What is asked while a bind goes on, and the poll after it.
struct Meanwhile {
    repeat: Arc<Exchange>,
    conflict: Result<Arc<Exchange>, String>,
    fetch: Option<Arc<Exchange>>,
    another: Arc<Exchange>,
    still_running: bool,
}

async fn meanwhile(
    stage: &Stage,
    id: &BindingId,
    body: &Value,
    accepted: &Arc<Exchange>,
) -> Result<(BindingId, Arc<Exchange>), Stop> {
    let target = Target::Binding(id);
    let repeat = stage.put(target, body, true).await?;
    let conflict = match ask::other(stage, body) {
        Other::Body(other) => Ok(stage.put(target, &other, true).await?),
        Other::None(reason) => Err(reason),
    };
    let fetch = if fetch::is_offered(stage) {
        Some(fetch::ask(stage, target).await?)
    } else {
        None
    };
    let third = BindingId::new(&id.instance);
    let another = stage.put(Target::Binding(&third), body, true).await?;
    let poll = stage.poll(target, Some(accepted)).await?;
    let asked = Meanwhile {
        repeat,
        conflict,
        fetch,
        another: another.clone(),
        still_running: poll.is_running(),
    };
    judge(stage, accepted, &asked);
    Ok((third, another))
}

fn judge(stage: &Stage, accepted: &Exchange, asked: &Meanwhile) {
    let enter =
        |case, exchange: &Arc<Exchange>, judgement: Option<Result<(), String>>| match judgement {
            Some(judgement) => stage.judge(case, exchange, judgement),
            None => stage.skip(case, ENDED),
        };
    let running = asked.still_running;
    enter(
        &REPEAT,
        &asked.repeat,
        repeated(accepted, &asked.repeat, running),
    );
    match &asked.conflict {
        Ok(answer) => repeat::judge_conflict(stage, &CONFLICT, answer),
        Err(reason) => stage.skip(&CONFLICT, reason),
    }
    match &asked.fetch {
        Some(answer) => enter(&FETCH, answer, while_running(answer, running, &[404])),
        None => stage.skip(&FETCH, fetch::NOT_OFFERED),
    }
    let another = &asked.another;
    if another.is(&[201, 202]) {
        stage.judge(&CONCURRENCY, another, Ok(()));
    } else if running {
        let judgement = another.must_be_error(422, "ConcurrencyError");
        stage.judge(&CONCURRENCY, another, judgement);
    } else {
        stage.skip(&CONCURRENCY, ENDED);
    }
}

/// What a repeat shows: a 202 was sent while the first went on, whatever a later poll says.
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

/// What an answer shows if it was given while the operation went on; none if that is not known.
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
    fn another_status_counts_only_while_the_operation_was_seen_running() {
        let first = Exchange::answered(202, &json!({ "operation": "a" }));
        let done = Exchange::answered(200, &json!({}));
        assert!(repeated(&first, &done, true).unwrap().is_err());
        assert_eq!(repeated(&first, &done, false), None);
        assert!(while_running(&done, true, &[404]).unwrap().is_err());
        assert_eq!(while_running(&done, false, &[404]), None);
        assert_eq!(while_running(&done, false, &[200]), Some(Ok(())));
    }
}
