//! Deletes the resources that a check has created, also after an early stop: bindings, then instances, in
//! parallel and within a time limit. Pure functions decide on each answer.

use crate::client::{CheckClient, with_headers};
use crate::created::{CreatedResource, Owner};
use crate::exchange::Exchange;
use crate::plan_run::{PollEnd, ended, with_incomplete};
use crate::progress::Event;
use crate::target::Target;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Maximum concurrent deletes.
const AT_A_TIME: usize = 8;
/// First and longest wait between two polls, and between two deletes of a busy resource.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
const PAUSE_LONGEST: Duration = Duration::from_secs(2);
/// Longest `Retry-After` that is respected.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);
/// Maximum broker faults per delete.
const FAULTS_MAX: u32 = 4;

/// A resource that was not deleted, or whose deletion is uncertain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftoverResource {
    /// Instance or binding with its id.
    pub what: String,
    /// Reason why it remains.
    pub why: String,
    /// Path and query of the delete that would remove it, relative to the broker's URL.
    pub target: String,
}

/// Deletes all created resources; returns those that remain, with reasons.
pub(crate) async fn run(client: &Arc<CheckClient>) -> Vec<LeftoverResource> {
    let until = Instant::now() + client.options.clean_up_within;
    let mut reasons = BTreeMap::new();
    emit(client);
    for bindings in [true, false] {
        let left = client.created.left();
        let now = left
            .into_iter()
            .filter(|(made, _)| matches!(made, CreatedResource::Binding(_)) == bindings);
        remove_all(client, now.collect(), until, &mut reasons).await;
    }
    left(client, &reasons, "its delete was not finished")
}

/// Resources that may remain, each with its reason or the default one.
pub(crate) fn left(
    client: &CheckClient,
    reasons: &BTreeMap<CreatedResource, String>,
    otherwise: &str,
) -> Vec<LeftoverResource> {
    let left = client.created.left().into_iter();
    left.map(|(made, owner)| LeftoverResource {
        what: made.to_string(),
        why: reasons.get(&made).map_or(otherwise, |it| it).to_owned(),
        target: deletion(&made, &owner).target(),
    })
    .collect()
}

async fn remove_all(
    client: &Arc<CheckClient>,
    all: Vec<(CreatedResource, Owner)>,
    until: Instant,
    reasons: &mut BTreeMap<CreatedResource, String>,
) {
    let places = Arc::new(Semaphore::new(AT_A_TIME));
    let mut removals = JoinSet::new();
    for (made, owner) in all {
        let (client, places) = (client.clone(), places.clone());
        removals.spawn(async move {
            let _place = places.acquire_owned().await;
            let removal = remove(&client, &made, &owner);
            let outcome = match tokio::time::timeout_at(until, removal).await {
                Ok(outcome) => outcome,
                Err(_) => Err("there was no more time to remove it".to_owned()),
            };
            if outcome.is_ok() {
                client.created.is_gone(&made);
            }
            emit(&client);
            (made, outcome)
        });
    }
    while let Some(ended) = removals.join_next().await {
        if let Ok((made, Err(why))) = ended {
            reasons.insert(made, why);
        }
    }
}

fn emit(client: &CheckClient) {
    client.progress.emit(|| Event::CleaningUp {
        left: client.created.left_count(),
    });
}

fn deletion(made: &CreatedResource, owner: &Owner) -> sutler_client::wire::Request {
    with_incomplete(Target::of(made).delete(owner), true)
}

/// Next step after an answer.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// It no longer exists.
    Gone,
    /// The broker is deleting it.
    Follow,
    /// Another operation must end first.
    Busy,
    /// A fault of the broker, which may be temporary.
    Fault(String),
    /// It cannot be deleted.
    GiveUp(String),
}

async fn remove(client: &CheckClient, made: &CreatedResource, owner: &Owner) -> Result<(), String> {
    let mut pause = PAUSE_FIRST;
    let mut faults = 0;
    loop {
        let answer = client.exchange(with_headers(deletion(made, owner))).await;
        let refused = client.created.was_refused(made);
        let mut step = after_delete(&answer, refused);
        if step == Step::Follow {
            step = follow(client, made, owner, &answer).await;
        }
        match step {
            Step::Gone => return Ok(()),
            Step::Busy | Step::Follow => {}
            Step::Fault(why) => {
                faults += 1;
                if faults >= FAULTS_MAX || client.is_silent() {
                    return Err(why);
                }
            }
            Step::GiveUp(why) => return Err(why),
        }
        tokio::time::sleep(answer.wait(pause, RETRY_AFTER_MAX)).await;
        pause = (pause * 2).min(PAUSE_LONGEST);
    }
}

/// Polls a delete until it has ended.
async fn follow(
    client: &CheckClient,
    made: &CreatedResource,
    owner: &Owner,
    accepted: &Exchange,
) -> Step {
    let target = Target::of(made);
    let operation = accepted.field("operation").and_then(Value::as_str);
    let mut pause = PAUSE_FIRST;
    loop {
        let poll = client
            .exchange(with_headers(target.poll(owner, operation)))
            .await;
        if let Some(step) = after_poll(&poll) {
            return step;
        }
        tokio::time::sleep(poll.wait(pause, RETRY_AFTER_MAX)).await;
        pause = (pause * 2).min(PAUSE_LONGEST);
    }
}

/// Interprets the answer to a delete; `refused` if the broker had refused the creation.
fn after_delete(answer: &Exchange, refused: bool) -> Step {
    let sentence = || format!("its delete was answered with {}", answer.got());
    let busy = answer.field("error").and_then(Value::as_str) == Some("ConcurrencyError");
    match answer.status() {
        Some(200 | 404 | 410) => Step::Gone,
        Some(202) => Step::Follow,
        Some(422) if busy => Step::Busy,
        Some(429 | 500..=599) | None => Step::Fault(sentence()),
        Some(400..=499) if refused => Step::Gone,
        Some(_) => Step::GiveUp(sentence()),
    }
}

/// Interprets the answer to a poll of a delete; `None` while it is in progress. A failed delete is
/// sent again: another operation may have blocked it.
fn after_poll(poll: &Exchange) -> Option<Step> {
    match ended(poll)? {
        PollEnd::Succeeded | PollEnd::Gone => Some(Step::Gone),
        PollEnd::Failed => Some(Step::Fault("its delete failed".to_owned())),
        PollEnd::Invalid | PollEnd::Overdue => Some(Step::Fault(format!(
            "a poll of its delete was answered with {}",
            poll.got()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::{Step, after_delete, after_poll};
    use crate::exchange::Exchange;
    use serde_json::json;
    use sutler_client::wire::{Answer, Method, Request, TransportError};

    fn answered(status: u16, body: &serde_json::Value) -> Exchange {
        let answer = Answer {
            status,
            headers: Default::default(),
            body: body.to_string().into(),
            took: Default::default(),
        };
        Exchange::new(Request::new(Method::Delete, &["v2"]), Ok(answer))
    }

    #[track_caller]
    fn after(status: u16, refused: bool, expected: &str) {
        let step = after_delete(&answered(status, &json!({})), refused);
        assert!(format!("{step:?}").starts_with(expected), "{step:?}");
    }

    #[test]
    fn each_answer_to_a_delete_has_its_meaning() {
        after(200, false, "Gone");
        after(410, false, "Gone");
        after(404, false, "Gone");
        after(202, false, "Follow");
        after(500, false, "Fault");
        after(503, true, "Fault");
        after(429, false, "Fault");
        after(400, false, "GiveUp");
        after(422, false, "GiveUp");
        after(302, true, "GiveUp");
    }

    #[test]
    fn a_refused_resource_counts_as_gone_when_its_delete_is_refused() {
        after(400, true, "Gone");
        after(422, true, "Gone");
    }

    #[test]
    fn a_busy_resource_is_retried() {
        let busy = answered(422, &json!({ "error": "ConcurrencyError" }));
        assert_eq!(after_delete(&busy, false), Step::Busy);
        assert_eq!(after_delete(&busy, true), Step::Busy);
    }

    #[test]
    fn no_answer_is_a_fault_and_never_a_success() {
        let request = Request::new(Method::Delete, &["v2"]);
        let silent = Exchange::new(request, Err(TransportError::Closed));
        assert!(matches!(after_delete(&silent, true), Step::Fault(_)));
        assert!(matches!(after_poll(&silent), Some(Step::Fault(_))));
    }

    #[test]
    fn a_failed_delete_is_repeated_and_a_running_one_awaited() {
        let poll = |state: &str| after_poll(&answered(200, &json!({ "state": state })));
        assert_eq!(poll("in progress"), None);
        assert_eq!(poll("succeeded"), Some(Step::Gone));
        assert!(matches!(poll("failed"), Some(Step::Fault(_))));
    }
}
