//! Reads the final content of the store.

use super::history::BINDINGS;
use super::leftovers::{FinalState, lane_of};
use super::operation_ends::EndedOperation;
use crate::violation::{CheckResult, Violation};
use std::time::{Duration, Instant};
use sutler_journal::{
    Key, OperationFilter, OperationId, OperationList, OperationRow, State, Store, StoreError,
};

/// Rows and documents per read.
const PAGE: usize = 500;
/// The broker's own scheduled work, which always waits for its next run.
const SCHEDULED: &str = "cleanup";
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Waits until nothing is unfinished except scheduled work; returns how long that took.
///
/// # Errors
/// Operations are still unfinished at the time limit.
pub(super) async fn finished_eventually(
    store: &dyn Store,
    within: Duration,
) -> CheckResult<Duration> {
    let begun = Instant::now();
    loop {
        let unfinished = operations(store, OperationFilter::Unfinished).await;
        let left = match &unfinished {
            Ok(rows) if rows.is_empty() => return Ok(begun.elapsed()),
            Ok(rows) => rows.iter().map(describe).collect(),
            Err(error) => vec![error.to_string()],
        };
        if begun.elapsed() > within {
            return Err(Violation::new(format!(
                "after {} s of peace this is unfinished: {}",
                within.as_secs(),
                left.join("; ")
            )));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn describe(row: &OperationRow) -> String {
    format!(
        "{} {} of {}/{}, {:?}, claim {}, {} takeovers",
        row.verb,
        row.id,
        row.lane.id(0),
        row.lane.id(1),
        row.state,
        row.fence.0,
        row.takeovers
    )
}

/// Reads everything.
///
/// # Errors
/// The store does not answer.
pub(super) async fn read(store: &dyn Store) -> CheckResult<FinalState> {
    let unread = |error: StoreError| Violation::new(format!("the store: {error}"));
    let rows = operations(store, OperationFilter::All)
        .await
        .map_err(unread)?;
    let mut left = FinalState {
        rows: rows.iter().map(row_of).collect(),
        stats: store.stats().await.map_err(unread)?,
        ..FinalState::default()
    };
    let mut from = Vec::new();
    loop {
        let page = store.scan_documents(&from, PAGE).await.map_err(unread)?;
        for indexed in &page {
            let key = &indexed.document.key;
            let word = indexed.terms.iter().find(|term| term.name == "lifecycle");
            if let (Some(word), Some(lane)) = (word, lane(key)) {
                let word = String::from_utf8_lossy(&word.value).into_owned();
                left.lifecycle.insert(lane, word);
            }
        }
        let Some(last) = page.last().filter(|_| page.len() == PAGE) else {
            return Ok(left);
        };
        // The smallest bytes after the last key.
        from = last.document.key.as_bytes().to_vec();
        from.push(0);
    }
}

/// The lane of an instance or a binding; `None` for other resources.
fn lane(key: &Key) -> Option<String> {
    match key.kind() {
        "instance" => Some(lane_of(key.id(0), None)),
        "binding" => Some(lane_of(key.id(0), binding_of(key))),
        _ => None,
    }
}

fn binding_of(key: &Key) -> Option<usize> {
    BINDINGS.iter().position(|name| *name == key.id(1))
}

fn row_of(row: &OperationRow) -> EndedOperation {
    EndedOperation {
        id: row.id.to_string(),
        instance: row.lane.id(0).to_owned(),
        binding: binding_of(&row.lane),
        verb: row.verb.to_string(),
        outcome: match row.state {
            State::Done(outcome) => Some(outcome),
            State::Waiting | State::Ready | State::Running => None,
        },
        takeovers: row.takeovers,
        fence: row.fence.0,
    }
}

async fn operations(
    store: &dyn Store,
    filter: OperationFilter,
) -> Result<Vec<OperationRow>, StoreError> {
    let mut all: Vec<OperationRow> = Vec::new();
    loop {
        let before: Option<OperationId> = all.last().map(|row| row.id);
        let list = OperationList {
            filter: filter.clone(),
            before,
            limit: PAGE,
        };
        let page = store.operations(&list).await?;
        let full = page.len() == PAGE;
        all.extend(page);
        if !full {
            all.retain(|row| row.verb != SCHEDULED);
            return Ok(all);
        }
    }
}
