//! Content types and encodings of bodies: an equivalent body gets the same answer, an unreadable one gets 400.
//!
//! Uses the existing instance and creates nothing.

use super::LiveInstance;
use crate::case::Case;
use crate::client::{StopReason, with_headers};
use crate::created::BindingId;
use crate::exchange::Exchange;
use crate::plan_run::{PlanRun, with_incomplete};
use crate::target::Target;
use std::sync::Arc;
use sutler_client::wire::{Method, Request};

const TYPE_MISSING: Case = Case::may(
    "content-type-missing",
    "B-041",
    "A body without a content type is read as JSON.",
);
const TYPE_PARAMETERS: Case = Case::should(
    "content-type-parameters",
    "B-042",
    "A content type with parameters, such as `application/json; charset=UTF-8`, is as good as without.",
);
const TYPE_WRONG: Case = Case::should(
    "content-type-wrong",
    "B-042",
    "A body of another content type is answered with 400, and with neither 415 nor 422.",
);
const NOT_JSON: Case = Case::should(
    "body-not-json",
    "B-042",
    "A body that is not JSON, or none at all, is answered with 400.",
);
const NO_OBJECT: Case = Case::should(
    "body-no-object",
    "B-042",
    "A body that is JSON and not an object is answered with 400.",
);
const NESTED: Case = Case::should(
    "body-nested",
    "B-042",
    "A body that is nested without measure is answered with 400.",
);
pub(crate) const CASES: &[&Case] = &[
    &TYPE_MISSING,
    &TYPE_PARAMETERS,
    &TYPE_WRONG,
    &NOT_JSON,
    &NO_OBJECT,
    &NESTED,
];

/// Nesting depth of a malicious body: deeper than any parser should follow.
const NESTED_LEVELS: usize = 20_000;

/// Repeats the provision of the tested instance with other content types and encodings.
pub(crate) async fn walk(run: &PlanRun, live: &LiveInstance) -> Result<(), StopReason> {
    let plain = repeat(run, live, &live.body.to_string(), |it| it).await?;
    equivalent_bodies(run, live, &plain).await?;
    let xml = |it: Request| it.header("Content-Type", "application/xml");
    let wrong = repeat(run, live, &live.body.to_string(), xml).await?;
    run.record(&TYPE_WRONG, &wrong, wrong.must_be(&[400]));
    for body in [
        &b"{\"service_id\": \"a"[..],
        b"",
        b"\xff\xfe",
        b"service_id=a",
    ] {
        for answer in everywhere(run, live, body).await? {
            run.record(&NOT_JSON, &answer, answer.must_be(&[400]));
        }
    }
    for body in ["[]", "\"sutler-check\"", "1", "null"] {
        for answer in everywhere(run, live, body.as_bytes()).await? {
            run.record(&NO_OBJECT, &answer, answer.must_be(&[400]));
        }
    }
    let deep = format!("{{\"context\":{}", "[".repeat(NESTED_LEVELS));
    let deep = repeat(run, live, &deep, |it| it).await?;
    run.record(&NESTED, &deep, deep.must_be(&[400]));
    Ok(())
}

/// Sends equivalent bodies with additions.
async fn equivalent_bodies(
    run: &PlanRun,
    live: &LiveInstance,
    plain: &Exchange,
) -> Result<(), StopReason> {
    let body = live.body.to_string();
    let bare = |it: Request| it.without_header("Content-Type");
    let bare = repeat(run, live, &body, bare).await?;
    run.record(&TYPE_MISSING, &bare, same(plain, &bare));
    for value in [
        "application/json; charset=UTF-8",
        "Application/JSON;charset=utf-8",
    ] {
        let with = |it: Request| it.header("Content-Type", value);
        let answer = repeat(run, live, &body, with).await?;
        run.record(&TYPE_PARAMETERS, &answer, same(plain, &answer));
    }
    Ok(())
}

/// Sends the provision again.
async fn repeat(
    run: &PlanRun,
    live: &LiveInstance,
    body: &str,
    alter: impl Fn(Request) -> Request,
) -> Result<Arc<Exchange>, StopReason> {
    let put = Target::Instance(&live.id).request(Method::Put);
    let put = with_incomplete(put, true).body(body.to_owned());
    run.client.ask_bare(alter(with_headers(put))).await
}

/// Sends an invalid body to each endpoint that takes one.
async fn everywhere(
    run: &PlanRun,
    live: &LiveInstance,
    body: &[u8],
) -> Result<Vec<Arc<Exchange>>, StopReason> {
    let instance = Target::Instance(&live.id);
    let mut requests = vec![instance.request(Method::Put)];
    if run.plan().flag(run.offering(), "plan_updateable") {
        requests.push(instance.request(Method::Patch));
    }
    let binding = BindingId::new(&live.id);
    if run.plan().flag(run.offering(), "bindable") {
        let target = Target::Binding(&binding);
        run.client.created.may_exist(target.made(), run.owner());
        requests.push(target.request(Method::Put));
    }
    let mut answers = Vec::new();
    for request in requests {
        let request = with_incomplete(request, true).body(body.to_vec());
        answers.push(run.client.ask(request).await?);
    }
    if answers.iter().all(|it| it.is(&[400])) {
        let made = Target::Binding(&binding).made();
        run.client.created.is_gone(&made);
    }
    Ok(answers)
}

/// Both have the same status.
fn same(one: &Exchange, other: &Exchange) -> Result<(), String> {
    if one.status() == other.status() {
        return Ok(());
    }
    let (expected, got) = (one.got(), other.got());
    Err(format!("expected {expected} as before, got {got}"))
}
