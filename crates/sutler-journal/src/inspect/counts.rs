//! Counts of documents by realm and kind, and of operations by state and outcome.

use super::{ProgressCallback, every_document, some_operations};
use crate::clock::StoreTime;
use crate::key::Key;
use crate::operation::{OperationId, OperationRow, Outcome, State};
use crate::store::{Store, StoreError};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The operation that has waited longest for its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldestOperation {
    /// Id.
    pub id: OperationId,
    /// Key of the resource it changes.
    pub lane: Key,
    /// Verb: `provision`, `unbind` …
    pub verb: Cow<'static, str>,
    /// Time of acceptance.
    pub accepted: StoreTime,
}

/// Counts of everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreCounts {
    /// Documents by realm and kind.
    pub documents: BTreeMap<(String, String), u64>,
    /// Operations by a word for state and outcome: `waiting`, `ready`, `running`, `succeeded`,
    /// `failed`, `cancelled`.
    pub operations: BTreeMap<&'static str, u64>,
    /// The oldest that has not ended.
    pub oldest: Option<OldestOperation>,
}

impl StoreCounts {
    fn document(&mut self, key: &Key) {
        let place = (key.realm().to_owned(), key.kind().to_owned());
        *self.documents.entry(place).or_default() += 1;
    }

    fn operation(&mut self, row: &OperationRow) {
        *self.operations.entry(word(row.state)).or_default() += 1;
        let older = |it: &OldestOperation| (row.accepted, row.id) < (it.accepted, it.id);
        if row.finished.is_none() && self.oldest.as_ref().is_none_or(older) {
            self.oldest = Some(OldestOperation {
                id: row.id,
                lane: row.lane.clone(),
                verb: row.verb.clone(),
                accepted: row.accepted,
            });
        }
    }
}

fn word(state: State) -> &'static str {
    match state {
        State::Waiting => "waiting",
        State::Ready => "ready",
        State::Running => "running",
        State::Done(Outcome::Succeeded) => "succeeded",
        State::Done(Outcome::Failed) => "failed",
        State::Done(Outcome::Cancelled) => "cancelled",
    }
}

/// Counts everything in a store.
///
/// # Errors
/// The store did not answer.
pub async fn count_all(
    store: &dyn Store,
    progress: ProgressCallback<'_>,
) -> Result<StoreCounts, StoreError> {
    let mut counts = StoreCounts::default();
    let mut documents = 0;
    every_document(store, |indexed| {
        counts.document(&indexed.document.key);
        documents += 1;
        progress(documents, 0);
    })
    .await?;
    let (mut before, mut operations) = (None, 0);
    loop {
        let rows = some_operations(store, before).await?;
        let Some(last) = rows.last() else {
            return Ok(counts);
        };
        before = Some(last.id);
        for row in &rows {
            counts.operation(row);
        }
        operations += rows.len() as u64;
        progress(documents, operations);
    }
}
