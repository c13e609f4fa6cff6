//! Checks the journal after every commit that the store applies: state and detail of a finished operation never
//! change, a commit is applied only under the claim that it names, and the purge of an instance takes no binding of the
//! instance that was created after it. After every claim: a lane has at most one running operation. After all of these,
//! and after releases and sweeps, the counts of the store are compared: accepted = unfinished + finished + removed.
//! Overlapping runs are found by `external_system.rs`.
//!
//! It reads the store directly, without the network, and opens documents with the keys of the run.

use crate::external_system::ResourceName;
use crate::history::History;
use crate::store_link::StoreChecker;
use async_trait::async_trait;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use sutler_journal::{
    Commit, CommitId, Expect, Key, KeyRing, MemoryStore, Operation, OperationFilter, OperationId,
    OperationList, OperationRow, SealContext, State as RowState, Store as _, Write,
};

/// Kinds of the broker's documents.
const INSTANCE: &str = "instance";
const BINDING: &str = "binding";

/// Checks every commit.
pub(crate) struct CommitChecker {
    pub store: Arc<MemoryStore>,
    pub history: Arc<History>,
    pub keys: Arc<KeyRing>,
    seen: Mutex<CheckedState>,
}

#[derive(Default)]
struct CheckedState {
    /// State of every document of the broker.
    states: BTreeMap<ResourceName, String>,
    done: BTreeMap<OperationId, OperationRow>,
    /// All commits, in the order in which they were applied.
    commits: Vec<CommitId>,
    /// Those of them that changed a document or an operation.
    changes: BTreeSet<CommitId>,
    /// Resources that an operator's command may purge by name.
    purged_by_name: BTreeSet<ResourceName>,
}

impl CommitChecker {
    pub(crate) fn new(store: Arc<MemoryStore>, history: Arc<History>, keys: Arc<KeyRing>) -> Self {
        Self {
            store,
            history,
            keys,
            seen: Mutex::default(),
        }
    }

    fn seen(&self) -> MutexGuard<'_, CheckedState> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An operator sends a command about this resource: a purge of it by name is allowed.
    pub(crate) fn allow_purge(&self, lane: &ResourceName) {
        self.seen().purged_by_name.insert(lane.clone());
    }

    /// State of every document of the broker that is not a tombstone.
    pub(crate) fn present(&self) -> Vec<(ResourceName, String)> {
        let seen = self.seen();
        let present = seen.states.iter().filter(|(_, state)| *state != "gone");
        present
            .map(|(lane, state)| (lane.clone(), state.clone()))
            .collect()
    }

    /// All commits, in the order in which they were applied.
    pub(crate) fn commits(&self) -> Vec<CommitId> {
        self.seen().commits.clone()
    }

    /// Commits that changed a document or an operation.
    pub(crate) fn changes(&self) -> BTreeSet<CommitId> {
        self.seen().changes.clone()
    }

    /// A commit is applied only under the claim that it names.
    async fn check_fences(&self, commit: &Commit) {
        for expect in commit.expects() {
            let Expect::Fence(id, fence) = expect else {
                continue;
            };
            let operation = self.store.operation(*id).await.ok().flatten();
            if operation.is_some_and(|it| it.row.fence != *fence) {
                self.history.violate(format!(
                    "a commit under an old claim of …{} was applied",
                    short(*id)
                ));
            }
        }
    }

    fn put(&self, key: &Key, body: &[u8], commit: &Commit) {
        let Some(lane) = lane_of(key) else { return };
        let Some(state) = self.state_of(key, body) else {
            self.history
                .violate(format!("the document of {lane} cannot be read"));
            return;
        };
        let audited = commit
            .writes()
            .iter()
            .any(|write| matches!(write, Write::Put { key, .. } if key.kind() == "audit"));
        let mut seen = self.seen();
        let before = seen.states.insert(lane.clone(), state.clone());
        self.history.record("put", || {
            format!(
                "store: {lane} is {state} (was {})",
                before.as_deref().unwrap_or("absent")
            )
        });
        let purged = audited && state == "gone" && lane.binding.is_some();
        if purged && !seen.purged_by_name.contains(&lane) {
            let above = seen.states.get(&ResourceName::instance(&lane.instance));
            if above.is_some_and(|state| state != "gone") {
                self.history.violate(format!(
                    "the purge of an instance took {lane}, whose instance was created again"
                ));
            }
        }
    }

    /// Name of the lifecycle state in a document.
    fn state_of(&self, key: &Key, body: &[u8]) -> Option<String> {
        let (plain, _) = self.keys.open(SealContext::Document(key), body).ok()?;
        match serde_json::from_slice(&plain).ok()? {
            Value::String(state) => Some(state),
            Value::Object(map) => map.keys().next().cloned(),
            _ => None,
        }
    }

    async fn check_operation(&self, id: OperationId) {
        let Ok(Some(operation)) = self.store.operation(id).await else {
            return;
        };
        let row = operation.row;
        let lane = row.lane.clone();
        let mut seen = self.seen();
        if let Some(before) = seen.done.get(&id)
            && (before.state != row.state || before.detail != row.detail)
        {
            self.history
                .violate(format!("the finished operation {id} changed"));
        }
        if matches!(row.state, RowState::Done(_)) && !seen.done.contains_key(&id) {
            self.history.record("done", || {
                let lane =
                    lane_of(&lane).map_or_else(|| lane.kind().to_owned(), |it| it.to_string());
                format!(
                    "store: {} {lane} (…{}) is {:?}",
                    row.verb,
                    short(id),
                    row.state
                )
            });
            seen.done.insert(id, row);
        }
    }
}

#[async_trait]
impl StoreChecker for CommitChecker {
    /// Checks what a commit changed. A repeated commit changes nothing.
    async fn committed(&self, commit: &Commit) {
        {
            let mut seen = self.seen();
            if seen.commits.contains(&commit.id()) {
                return;
            }
            seen.commits.push(commit.id());
            if commit.writes().iter().any(is_change) {
                seen.changes.insert(commit.id());
            }
        }
        self.check_fences(commit).await;
        for write in commit.writes() {
            match write {
                Write::Put { key, body, .. } => self.put(key, body, commit),
                Write::Remove(key) => {
                    if let Some(lane) = lane_of(key) {
                        self.seen().states.remove(&lane);
                    }
                }
                Write::Start(new) => self.check_operation(new.id).await,
                Write::Advance { operation, .. } => self.check_operation(*operation).await,
                Write::Cancel(id) | Write::Wake(id) => self.check_operation(*id).await,
                Write::Import(_) | Write::Unpin(_) | Write::Reseal { .. } => {}
            }
        }
        self.check_counts().await;
    }

    /// Checks the operations that a worker got: none of their lanes has another one that runs.
    async fn claimed(&self, claimed: &[Operation]) {
        for operation in claimed {
            let row = &operation.row;
            let list = OperationList {
                filter: OperationFilter::Lane(row.lane.clone()),
                before: None,
                limit: 100,
            };
            let rows = self.store.operations(&list).await.unwrap_or_default();
            let running = rows.iter().filter(|it| it.state == RowState::Running);
            if running.count() > 1 {
                let lane = lane_of(&row.lane).map_or_else(String::new, |it| it.to_string());
                self.history
                    .violate(format!("two operations of {lane} are claimed at once"));
            }
        }
        self.check_counts().await;
    }

    /// Every accepted operation is unfinished, finished or removed.
    async fn check_counts(&self) {
        let Ok(stats) = self.store.stats().await else {
            return;
        };
        if stats.accepted != stats.live + stats.terminal + stats.cleaned {
            self.history
                .violate(format!("counts do not add up: {stats:?}"));
        }
    }
}

/// Whether a write must appear in the feed. Nothing is resealed in a simulated run.
fn is_change(write: &Write) -> bool {
    match write {
        Write::Put { .. }
        | Write::Remove(_)
        | Write::Start(_)
        | Write::Advance { .. }
        | Write::Import(_) => true,
        Write::Cancel(_) | Write::Wake(_) | Write::Unpin(_) | Write::Reseal { .. } => false,
    }
}

/// The last characters of an id.
pub(crate) fn short(id: OperationId) -> String {
    let text = id.to_string();
    text[text.len() - 6..].to_owned()
}

fn lane_of(key: &Key) -> Option<ResourceName> {
    match key.kind() {
        INSTANCE => Some(ResourceName::instance(key.id(0))),
        BINDING => Some(ResourceName::binding(key.id(0), key.id(1))),
        _ => None,
    }
}
