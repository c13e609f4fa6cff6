//! Unbind: incomplete requests are refused, the binding is deleted and stays deleted.

use super::running::repeated;
use super::{LiveBinding, fetch};
use crate::case::Case;
use crate::cases::LiveInstance;
use crate::client::StopReason;
use crate::created::BindingId;
use crate::exchange::Exchange;
use crate::options::Profile;
use crate::plan_run::{PlanRun, PollEnd, with_incomplete};
use crate::target::Target;
use serde_json::Value;
use std::sync::Arc;
use sutler_client::wire::Method;

const NO_SERVICE: Case = Case::must(
    "unbind-without-service-id",
    "B-240",
    "An unbind whose `service_id` is missing or empty is answered with 400.",
);

const NO_PLAN: Case = Case::must(
    "unbind-without-plan-id",
    "B-240",
    "An unbind whose `plan_id` is missing or empty is answered with 400.",
);

const UNKNOWN: Case = Case::must(
    "unbind-unknown",
    "B-243",
    "An unbind of a binding that never was is answered with 410.",
);

const DELETED: Case = Case::must(
    "unbind-deleted",
    "B-242",
    "An unbind is answered with 200 when it is done, and with 202 while it goes on.",
);

const ASYNC_REQUIRED: Case = Case::must(
    "unbind-async-required",
    "B-244",
    "An unbind that can only be done asynchronously is refused with 422 AsyncRequired to who does not accept that.",
);

const REPEAT: Case = Case::must(
    "unbind-repeat-running",
    "B-242",
    "The same unbind again while it goes on is answered with 202 and the same operation.",
);

const POLLED: Case = Case::must(
    "unbind-polled",
    "B-112",
    "Polls of an unbind are answered with 200 and its state until it succeeds, or with 410 when it has.",
);

const AFTER: Case = Case::should(
    "unbind-poll-after",
    "B-112",
    "How an unbind ended is told again, as `succeeded` or with 410 (compat-2.13: with 410).",
);

const GONE: Case = Case::must(
    "unbind-gone",
    "B-243",
    "An unbind of a binding that was removed is answered with 410.",
);

pub(crate) const CASES: &[&Case] = &[
    &NO_SERVICE,
    &NO_PLAN,
    &UNKNOWN,
    &DELETED,
    &ASYNC_REQUIRED,
    &REPEAT,
    &POLLED,
    &AFTER,
    &GONE,
];

const TOO_SOON: &str = "the binding went with an unbind that had to be refused";
const SYNCHRONOUS: &str = "the unbind was not answered with 202";

/// Deletes the first binding, after attempts that must be refused.
pub(crate) async fn walk(
    run: &PlanRun,
    live: &LiveInstance,
    bound: &LiveBinding,
) -> Result<(), StopReason> {
    let absent_id = BindingId::new(&live.id);
    let answer = run.delete(Target::Binding(&absent_id), true).await?;
    run.record(&UNKNOWN, &answer, answer.must_be(&[410]));
    let owner = run.owner();
    let bare = with_incomplete(bound.target().request(Method::Delete), true);
    let no_service = bare.clone().query("plan_id", &owner.plan_id);
    let no_plan = bare.query("service_id", &owner.service_id);
    let incomplete = [
        (&NO_SERVICE, no_service.clone()),
        (&NO_SERVICE, no_service.query("service_id", "")),
        (&NO_PLAN, no_plan.clone()),
        (&NO_PLAN, no_plan.query("plan_id", "")),
    ];
    for (case, request) in incomplete {
        let answer = run.client.ask(request).await?;
        run.record(case, &answer, answer.must_be(&[400]));
        if answer.is(&[200, 202]) {
            // It is deleted or being deleted: the other cases cannot be observed.
            run.skip(&NO_PLAN, TOO_SOON);
            if answer.is(&[202]) {
                run.poll_to_end(bound.target(), &answer).await?;
            }
            return Ok(());
        }
    }
    remove(run, bound, false).await
}

/// Deletes a binding and checks that it is gone; `incomplete`: whether a 202 is accepted from the
/// start, or only if the broker requires it.
pub(crate) async fn remove(
    run: &PlanRun,
    bound: &LiveBinding,
    incomplete: bool,
) -> Result<(), StopReason> {
    let target = bound.target();
    let mut answer = run.delete(target, incomplete).await?;
    if incomplete || !answer.is(&[422, 400]) {
        run.skip(
            &ASYNC_REQUIRED,
            "the broker unbinds synchronously for who asks for that",
        );
    } else {
        let refusal = answer;
        answer = run.delete(target, true).await?;
        if answer.is(&[200, 202]) {
            let judgement = refusal.must_be_error(422, "AsyncRequired");
            run.record(&ASYNC_REQUIRED, &refusal, judgement);
        }
    }
    run.record(&DELETED, &answer, answer.must_be(&[200, 202]));
    let gone = if answer.is(&[202]) {
        going(run, target, &answer).await?
    } else {
        run.skip_all(&[&REPEAT, &POLLED, &AFTER], SYNCHRONOUS);
        answer.is(&[200])
    };
    if !gone {
        run.skip(&GONE, "the unbind did not succeed");
        return Ok(());
    }
    fetch::gone(run, target).await?;
    let again = run.delete(target, true).await?;
    run.record(&GONE, &again, again.must_be(&[410]));
    Ok(())
}

/// Repeats the delete, polls to the end, and polls once more; returns whether it is gone.
async fn going(
    run: &PlanRun,
    target: Target<'_>,
    accepted: &Arc<Exchange>,
) -> Result<bool, StopReason> {
    let repeat = run.delete(target, true).await?;
    let poll = run.poll(target, Some(accepted)).await?;
    let still_running = poll.is_running();
    match repeated(accepted, &repeat, still_running) {
        Some(judgement) => run.record(&REPEAT, &repeat, judgement),
        None => run.skip(&REPEAT, ENDED),
    }
    let polled = run.poll_to_end(target, accepted).await?;
    let last = polled.last();
    run.record(&POLLED, last, success(polled.ended, last));
    let gone = matches!(polled.ended, PollEnd::Succeeded | PollEnd::Gone);
    if gone {
        run.client.created.is_gone(&target.made());
        let after = run.poll(target, Some(accepted)).await?;
        let judgement = reported_again(&after, run.client.options.profile);
        run.record(&AFTER, &after, judgement);
    }
    Ok(gone)
}

const ENDED: &str = "the unbind ended before it could be seen running";

/// Checks that polling an unbind ended with success.
pub(crate) fn success(ended: PollEnd, last: &Exchange) -> Result<(), String> {
    match ended {
        PollEnd::Succeeded | PollEnd::Gone => Ok(()),
        PollEnd::Failed => Err("the unbind failed".to_owned()),
        PollEnd::Invalid => Err(format!(
            "expected 200 with a `state`, or 410, got {}",
            last.got()
        )),
        PollEnd::Overdue => Err("the unbind took too long".to_owned()),
    }
}

fn reported_again(after: &Exchange, profile: Profile) -> Result<(), String> {
    match profile {
        Profile::Compat2_13 => after.must_be(&[410]),
        Profile::V2_17 => {
            after.must_be(&[200, 410])?;
            match after.field("state").and_then(Value::as_str) {
                Some("succeeded") => Ok(()),
                _ if after.is(&[410]) => Ok(()),
                _ => Err("the state is no longer `succeeded`".to_owned()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::reported_again;
    use crate::exchange::Exchange;
    use crate::options::Profile;
    use serde_json::json;

    #[test]
    fn polls_after_an_unbind_depend_on_the_profile() {
        let succeeded = Exchange::answered(200, &json!({ "state": "succeeded" }));
        let running = Exchange::answered(200, &json!({ "state": "in progress" }));
        let gone = Exchange::answered(410, &json!({}));
        let missing = Exchange::answered(404, &json!({}));
        assert!(reported_again(&succeeded, Profile::V2_17).is_ok());
        assert!(reported_again(&gone, Profile::V2_17).is_ok());
        assert!(reported_again(&running, Profile::V2_17).is_err());
        assert!(reported_again(&missing, Profile::V2_17).is_err());
        assert!(reported_again(&gone, Profile::Compat2_13).is_ok());
        assert!(reported_again(&succeeded, Profile::Compat2_13).is_err());
    }
}
