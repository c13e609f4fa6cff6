//! Removes what a check has made, also when its walk was stopped: bindings, then instances.

use crate::asker::{Asker, dressed};
use crate::ledger::{Made, Owner};
use crate::stage::{Ended, ended, with_incomplete};
use crate::target::Target;
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;

/// First and longest wait between two polls.
const POLL_FIRST: Duration = Duration::from_millis(20);
const POLL_LONGEST: Duration = Duration::from_secs(2);

/// Deletes everything in the ledger; tells what could not be removed, and why.
pub(crate) async fn run(asker: &Asker) -> Vec<String> {
    let mut left = Vec::new();
    for (made, owner) in asker.ledger.left() {
        match remove(asker, &made, &owner).await {
            Ok(()) => asker.ledger.is_gone(&made),
            Err(why) => left.push(format!("{made}: {why}")),
        }
    }
    left
}

async fn remove(asker: &Asker, made: &Made, owner: &Owner) -> Result<(), String> {
    let target = Target::of(made);
    let request = with_incomplete(target.delete(owner), true);
    let answer = asker.exchange(dressed(request)).await;
    match answer.status() {
        Some(200 | 410) => return Ok(()),
        Some(202) => {}
        _ => return Err(format!("the delete was answered with {}", answer.got())),
    }
    let operation = answer.field("operation").and_then(Value::as_str);
    let until = Instant::now() + asker.options.operation_within;
    let mut pause = POLL_FIRST;
    while Instant::now() < until {
        let poll = asker.exchange(dressed(target.poll(owner, operation))).await;
        match ended(&poll) {
            Some(Ended::Succeeded | Ended::Gone) => return Ok(()),
            Some(_) => return Err(format!("polling the delete ended with {}", poll.got())),
            None => tokio::time::sleep(pause).await,
        }
        pause = (pause * 2).min(POLL_LONGEST);
    }
    Err("the delete takes too long".to_owned())
}
