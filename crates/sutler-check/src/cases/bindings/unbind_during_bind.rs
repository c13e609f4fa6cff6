//! Unbind during a bind in progress; and reuse of a deleted binding id.

use super::{LiveBinding, create, discard, fetch, unbind};
use crate::case::Case;
use crate::client::StopReason;
use crate::created::BindingId;
use crate::exchange::Exchange;
use crate::plan_run::{PlanRun, PollEnd, ended};
use crate::target::Target;
use std::sync::Arc;

const AGAIN: Case = Case::may(
    "bind-again",
    "B-182",
    "The id of a binding that was removed can be used again.",
);

const CONCURRENCY: Case = Case::must(
    "unbind-concurrency",
    "B-244",
    "An unbind while the bind goes on is taken, or refused with 422 ConcurrencyError.",
);

const HALTED: Case = Case::must(
    "unbind-halts-bind",
    "B-245",
    "A binding whose delete was taken while it was being made is gone when the delete has ended.",
);

const SHOWN: Case = Case::should(
    "unbind-halts-bind-poll",
    "B-245",
    "Once a delete over a bind has ended, a poll without an operation shows how: never that the bind succeeded.",
);

pub(crate) const CASES: &[&Case] = &[&AGAIN, &CONCURRENCY, &HALTED, &SHOWN];

/// Reason if the bind was not observed in progress.
const ENDED: &str = "the bind ended before it could be seen running";

/// Creates a binding with the id of a deleted one, and deletes it at once.
pub(crate) async fn walk(run: &PlanRun, gone: &LiveBinding) -> Result<(), StopReason> {
    let mut id = gone.id.clone();
    let mut answer = run.put(Target::Binding(&id), &gone.body, true).await?;
    let taken = answer.must_be(&[201, 202]);
    let refused = taken.is_err();
    run.record(&AGAIN, &answer, taken);
    if refused && gone.was_asynchronous() {
        id = BindingId::new(&gone.id.instance);
        answer = run.put(Target::Binding(&id), &gone.body, true).await?;
    }
    let target = Target::Binding(&id);
    if !answer.is(&[202]) {
        for case in [&CONCURRENCY, &HALTED, &SHOWN] {
            run.skip(case, create::SYNCHRONOUS);
        }
        return discard(run, target, &answer).await;
    }
    let poll = run.poll(target, Some(&answer)).await?;
    if ended(&poll).is_some() {
        for case in [&CONCURRENCY, &HALTED, &SHOWN] {
            run.skip(case, ENDED);
        }
        return discard(run, target, &answer).await;
    }
    let delete = run.delete(target, true).await?;
    if delete.is(&[200, 202]) {
        run.record(&CONCURRENCY, &delete, Ok(()));
        return halted(run, target, &delete).await;
    }
    let judgement = delete.must_be_error(422, "ConcurrencyError");
    run.record(&CONCURRENCY, &delete, judgement);
    for case in [&HALTED, &SHOWN] {
        run.skip(case, "the broker deletes no binding that is being made");
    }
    discard(run, target, &answer).await
}

/// Follows a delete that was accepted during the bind.
async fn halted(
    run: &PlanRun,
    target: Target<'_>,
    delete: &Arc<Exchange>,
) -> Result<(), StopReason> {
    if delete.is(&[202]) {
        let polled = run.poll_to_end(target, delete).await?;
        if let Some(last) = polled.answers.last()
            && let Err(message) = unbind::success(polled.ended, last)
        {
            run.skip(&SHOWN, "the delete did not end well");
            run.record(&HALTED, last, Err(message));
            return Ok(());
        }
        if matches!(polled.ended, PollEnd::Succeeded | PollEnd::Gone) {
            run.client.created.is_gone(&target.made());
        }
    }
    let poll = run.poll(target, None).await?;
    run.record(&SHOWN, &poll, shown(&poll, delete));
    if fetch::is_offered(run) {
        let fetched = fetch::ask(run, target).await?;
        run.record(&HALTED, &fetched, fetched.must_be(&[404]));
    }
    let again = run.delete(target, true).await?;
    run.record(&HALTED, &again, again.must_be(&[410]));
    Ok(())
}

/// Checks a poll without an operation after an unbind during a bind.
fn shown(poll: &Exchange, delete: &Exchange) -> Result<(), String> {
    match (ended(poll), delete.is(&[202])) {
        (Some(PollEnd::Gone), _)
        | (Some(PollEnd::Succeeded), true)
        | (Some(PollEnd::Failed), false) => Ok(()),
        // There is nothing left to poll.
        (Some(PollEnd::Invalid), false) if poll.is(&[404]) => Ok(()),
        (_, true) => Err(format!(
            "expected `succeeded`, the state of the delete, or 410, got {}",
            poll.got()
        )),
        (_, false) => Err(format!(
            "expected `failed`, the state of the bind, or 410, got {}",
            poll.got()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::shown;
    use crate::exchange::Exchange;
    use serde_json::json;

    #[test]
    fn a_poll_after_a_delete_over_a_bind_shows_the_delete_or_that_the_bind_failed() {
        let at_once = Exchange::answered(200, &json!({}));
        let later = Exchange::answered(202, &json!({}));
        let state = |state: &str| Exchange::answered(200, &json!({ "state": state }));
        let gone = Exchange::answered(410, &json!({}));
        let missing = Exchange::answered(404, &json!({}));
        let rows = [
            (&later, state("succeeded"), true),
            (&later, state("failed"), false),
            (&later, state("in progress"), false),
            (&at_once, state("failed"), true),
            (&at_once, state("succeeded"), false),
        ];
        for (delete, poll, right) in rows {
            assert_eq!(shown(&poll, delete).is_ok(), right, "{:?}", poll.json());
        }
        assert!(shown(&gone, &later).is_ok() && shown(&gone, &at_once).is_ok());
        assert!(shown(&missing, &at_once).is_ok());
        assert!(shown(&missing, &later).is_err());
    }
}
