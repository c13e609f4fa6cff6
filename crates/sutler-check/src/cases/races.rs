//! Cases that need further instances: requests without `accepts_incomplete`, parallel requests, and instances
//! that still have bindings. Deletes during creates: `delete_during_create.rs`.

use super::update::served_or_blocked;
use super::{LiveInstance, after_update, compare, plan_change};
use crate::case::Case;
use crate::client::StopReason;
use crate::created::{BindingId, InstanceId};
use crate::exchange::Exchange;
use crate::plan_run::{PlanRun, PollEnd};
use crate::target::Target;
use serde_json::{Value, json};
use std::sync::Arc;
use sutler_client::wire::Method;

const PROVISION_ASYNC: Case = Case::must(
    "provision-async-required",
    "B-127",
    "A provision that can only be done asynchronously is answered with 422 AsyncRequired without `accepts_incomplete=true`.",
);
const DEPROVISION_ASYNC: Case = Case::must(
    "deprovision-async-required",
    "B-254",
    "A deprovision that can only be done asynchronously is answered with 422 AsyncRequired without `accepts_incomplete=true`.",
);
const ASYNC_NOTHING_MADE: Case = Case::must(
    "async-required-makes-nothing",
    "B-083",
    "A provision that was answered with AsyncRequired has made nothing.",
);
const MINIMAL: Case = Case::should(
    "provision-minimal",
    "B-120",
    "A provision with nothing but what is required, and parameters, is accepted.",
);
const ONE_CREATION: Case = Case::must(
    "race-one-creation",
    "B-121",
    "Of several same provisions at once, at most one is answered with 201.",
);
const ALL_AGREE: Case = Case::must(
    "race-same-provision",
    "B-087",
    "Several same provisions at once are answered with 201, 200, 202 and one `operation`, or 422 ConcurrencyError.",
);
const DELETES: Case = Case::must(
    "race-same-deprovision",
    "B-252",
    "Several same deprovisions at once are answered with 200, 202 and one `operation`, 410, or 422 ConcurrencyError.",
);
const CASCADE: Case = Case::may(
    "deprovision-cascade",
    "B-256",
    "An instance that still has bindings can be deleted, and they go with it.",
);
pub(crate) const CASES: &[&Case] = &[
    &PROVISION_ASYNC,
    &DEPROVISION_ASYNC,
    &ASYNC_NOTHING_MADE,
    &MINIMAL,
    &ONE_CREATION,
    &ALL_AGREE,
    &DELETES,
    &CASCADE,
];

/// Creates further instances. `deleted` is the answer that deleted the first one.
pub(crate) async fn walk(
    run: &PlanRun,
    live: &LiveInstance,
    deleted: Option<&Exchange>,
) -> Result<(), StopReason> {
    let mut is_observed = false;
    if live.is_async() {
        is_observed = without_incomplete(run, live).await?;
    } else {
        let reason = "the plan is provisioned synchronously";
        run.skip_all(&[&PROVISION_ASYNC, &ASYNC_NOTHING_MADE], reason);
    }
    let Some(mut spare) = provisions(run, live).await? else {
        let reason = "there was no further instance";
        run.skip_all(CASES, reason);
        plan_change::skip(run, reason);
        return Ok(());
    };
    let mut is_gone = false;
    if deleted.is_some_and(|it| it.is(&[200])) {
        run.skip(
            &DEPROVISION_ASYNC,
            "the plan is deprovisioned synchronously",
        );
    } else if !is_observed {
        is_gone = delete_at_once(run, spare.target()).await?;
    }
    if is_gone {
        let reason = "a deprovision without `accepts_incomplete` has removed the instance";
        run.skip_all(CASES, reason);
        plan_change::skip(run, reason);
        return Ok(());
    }
    after_update::look(run, &mut spare).await?;
    plan_change::walk(run, &mut spare).await?;
    let binding = bind(run, &spare.id).await?;
    deprovisions(run, spare.target(), binding.as_ref()).await
}

/// A provision without `accepts_incomplete`, and such a deprovision if it succeeds. Returns whether
/// that was observed.
async fn without_incomplete(run: &PlanRun, live: &LiveInstance) -> Result<bool, StopReason> {
    let id = InstanceId::new();
    let target = Target::Instance(&id);
    let answer = run.put(target, &live.body, false).await?;
    let refused = answer.must_be_error(422, "AsyncRequired");
    let is_made = answer.is(&[201]);
    let judgement = if is_made { Ok(()) } else { refused.clone() };
    run.record(&PROVISION_ASYNC, &answer, judgement);
    if is_made {
        delete_at_once(run, target).await?;
    } else if refused.is_ok() {
        // `false` means the same as an absent parameter.
        let request = target.request(Method::Put);
        let request = request.query("accepts_incomplete", "false");
        let request = request.body(live.body.to_string());
        let answer = run.put_request(target, request).await?;
        let refused = answer.must_be_error(422, "AsyncRequired");
        run.record(&PROVISION_ASYNC, &answer, refused);
    }
    let (deleted, _) = run.remove(target).await?;
    if refused.is_ok() {
        run.record(&ASYNC_NOTHING_MADE, &deleted, deleted.must_be(&[410]));
    } else {
        let reason = "no provision was answered with AsyncRequired";
        run.skip(&ASYNC_NOTHING_MADE, reason);
    }
    Ok(is_made)
}

/// A synchronous deprovision; returns whether the instance is gone.
async fn delete_at_once(run: &PlanRun, target: Target<'_>) -> Result<bool, StopReason> {
    let answer = run.delete(target, false).await?;
    let judgement = match answer.status() {
        Some(200) => Ok(()),
        _ => answer.must_be_error(422, "AsyncRequired"),
    };
    run.record(&DEPROVISION_ASYNC, &answer, judgement);
    if answer.is(&[202]) {
        run.poll_to_end(target, &answer).await?;
    }
    Ok(answer.is(&[200, 202]))
}

/// Sends the same provision several times in parallel; returns the instance, if one was created.
async fn provisions(
    run: &PlanRun,
    live: &LiveInstance,
) -> Result<Option<LiveInstance>, StopReason> {
    let id = InstanceId::new();
    let target = Target::Instance(&id);
    let mut answers = put_thrice(run, live, target, &minimal(&live.body)).await?;
    let refused = |it: &Arc<Exchange>| served_or_blocked(it, &[200, 201, 202]).is_err();
    if answers.iter().all(refused) {
        let message = format!("it was refused: {}", answers[0].describe());
        run.record(&MINIMAL, &answers[0], Err(message));
        answers = put_thrice(run, live, target, &live.body).await?;
    } else {
        run.record(&MINIMAL, &answers[0], Ok(()));
    }
    let created = answers.iter().filter(|it| it.is(&[201])).count();
    let one = match created {
        0 | 1 => Ok(()),
        _ => Err(format!("{created} of 3 were answered with 201")),
    };
    run.record(&ONE_CREATION, &answers[0], one);
    agree(run, &ALL_AGREE, &answers, &[200, 201, 202]);
    let is_made = match answers.iter().find(|it| it.is(&[202])) {
        Some(first) => run.poll_to_end(target, first).await?.ended == PollEnd::Succeeded,
        None => answers.iter().any(|it| it.is(&[200, 201])),
    };
    let [first, ..] = answers;
    Ok(is_made.then(|| LiveInstance::new(id, live.body.clone(), first)))
}

async fn put_thrice(
    run: &PlanRun,
    live: &LiveInstance,
    target: Target<'_>,
    body: &Value,
) -> Result<[Arc<Exchange>; 3], StopReason> {
    let put = || run.put(target, body, live.is_async());
    let (one, two, three) = tokio::join!(put(), put(), put());
    Ok([one?, two?, three?])
}

/// A provision without optional fields except parameters, which may be required.
fn minimal(body: &Value) -> Value {
    let mut body = body.clone();
    if let Some(fields) = body.as_object_mut() {
        fields.retain(|name, _| !matches!(name.as_str(), "context" | "maintenance_info"));
    }
    body
}

/// Every answer is one of these or ConcurrencyError, and all 202 name one operation.
fn agree(run: &PlanRun, case: &'static Case, answers: &[Arc<Exchange>], served: &[u16]) {
    let mut running: Option<&Arc<Exchange>> = None;
    for answer in answers {
        let mut judgement = served_or_blocked(answer, served);
        if answer.is(&[202]) {
            if let Some(first) = running {
                judgement = compare::operation(first, answer);
            }
            running = Some(answer);
        }
        run.record(case, answer, judgement);
    }
}

/// A binding that still exists when its instance is deleted.
async fn bind(run: &PlanRun, id: &InstanceId) -> Result<Option<BindingId>, StopReason> {
    // The plan may have been changed.
    let plan_id = run.owner_of(Target::Instance(id)).plan_id;
    let offering = run.offering();
    let plan = offering.plans.iter().find(|it| it.id == plan_id);
    if !plan.is_some_and(|it| it.flag(offering, "bindable")) {
        run.skip(&CASCADE, "the plan is not bindable");
        return Ok(None);
    }
    let binding = BindingId::new(id);
    let target = Target::Binding(&binding);
    let mut body = json!({
        "service_id": run.offering().id,
        "plan_id": plan_id,
        "app_guid": "sutler-check-application",
        "bind_resource": {"app_guid": "sutler-check-application"},
    });
    if let Ok(Some(parameters)) = run.samples().bind.valid() {
        body["parameters"] = Value::Object(parameters.clone());
    }
    let answer = run.put(target, &body, true).await?;
    let bound = match answer.status() {
        Some(201) => true,
        Some(202) => run.poll_to_end(target, &answer).await?.ended == PollEnd::Succeeded,
        _ => false,
    };
    if !bound {
        run.skip(&CASCADE, "no binding could be made");
        return Ok(None);
    }
    Ok(Some(binding))
}

/// Sends the same deprovision several times in parallel, while the binding exists if there is one, and
/// without it if that is refused.
async fn deprovisions(
    run: &PlanRun,
    target: Target<'_>,
    binding: Option<&BindingId>,
) -> Result<(), StopReason> {
    let mut answers = delete_thrice(run, target).await?;
    if let Some(binding) = binding {
        let taken = answers.iter().find(|it| it.is(&[200, 202, 410]));
        let judgement = match taken {
            Some(_) => Ok(()),
            None => Err(format!("it was refused: {}", answers[0].describe())),
        };
        run.record(&CASCADE, taken.unwrap_or(&answers[0]), judgement);
        if taken.is_none() {
            run.remove(Target::Binding(binding)).await?;
            answers = delete_thrice(run, target).await?;
        }
    }
    agree(run, &DELETES, &answers, &[200, 202, 410]);
    if let Some(first) = answers.iter().find(|it| it.is(&[202])) {
        let polled = run.poll_to_end(target, first).await?;
        if matches!(polled.ended, PollEnd::Succeeded | PollEnd::Gone) {
            run.client.created.is_gone(&target.made());
        }
    }
    Ok(())
}

async fn delete_thrice(
    run: &PlanRun,
    target: Target<'_>,
) -> Result<[Arc<Exchange>; 3], StopReason> {
    let delete = || run.delete(target, true);
    let (one, two, three) = tokio::join!(delete(), delete(), delete());
    Ok([one?, two?, three?])
}
