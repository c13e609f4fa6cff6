//! Checks the platform's documents and operations after every commit that the store applies, and every request.
//!
//! It reads the store directly, without the network, and opens documents with the keys of the run.

use super::binding_rules::check_binding;
use super::broker_side::{BrokerId, BrokerSide};
use super::instance_rules::check_instance;
use super::known_resources::KnownResources;
use super::request_rules::{SentRequests, WrittenRequest, check_identity};
use crate::commit_checker::short;
use crate::history::History;
use crate::store_link::StoreChecker;
use async_trait::async_trait;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use sutler_client::wire::Request;
use sutler_journal::{
    Commit, CommitId, Key, MemoryStore, Operation, OperationFilter, OperationId, OperationList,
    OperationRow, SealContext, State, Store as _, Write,
};
use sutler_platform::lifecycle::binding::Binding;
use sutler_platform::lifecycle::instance::Instance;
use sutler_platform::platform_records::PlatformRecords;
use sutler_platform::records::{
    BINDING, INSTANCE, IntentProgress, IntentRequest, ORPHAN, OrphanRecord, Record, TypedRecord,
};

/// Checks every commit and every request.
pub(crate) struct PlatformChecker {
    pub store: Arc<MemoryStore>,
    pub records: PlatformRecords,
    pub history: Arc<History>,
    pub side: Arc<BrokerSide>,
    state: Mutex<CheckerState>,
}

#[derive(Default)]
struct CheckerState {
    known: KnownResources,
    requests: SentRequests,
    commits: BTreeSet<CommitId>,
    /// What was found to be unknown to the platform: it is reported once.
    forgotten: BTreeSet<BrokerId>,
}

impl PlatformChecker {
    pub(crate) fn new(
        store: Arc<MemoryStore>,
        records: PlatformRecords,
        history: Arc<History>,
        side: Arc<BrokerSide>,
    ) -> Self {
        Self {
            store,
            records,
            history,
            side,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, CheckerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what the platform has written down.
    pub(crate) fn known<T>(&self, read: impl FnOnce(&KnownResources) -> T) -> T {
        read(&self.state().known)
    }

    /// A request is sent: its bytes, its identity, and whether the platform knows what it may make.
    pub(crate) async fn sent(&self, request: &Request, operation: Option<OperationId>) {
        self.check_exposure("a request was sent");
        let Some(operation) = operation else {
            return;
        };
        let Ok(Some(found)) = self.store.operation(operation).await else {
            return;
        };
        let faults = self.request_faults(request, &found);
        for fault in faults {
            self.history.violate(fault);
        }
        // Probes and syncs have requests of their own.
        let intent = self.records.documents.open_request(&found);
        let intent: Option<IntentRequest> = intent.ok();
        if let Some(fault) = intent.and_then(|it| check_identity(request, &it)) {
            self.history.violate(fault);
        }
    }

    /// What is wrong with a request that changes something.
    fn request_faults(&self, request: &Request, operation: &Operation) -> Vec<String> {
        let mut state = self.state();
        let progress = self.records.documents.open_progress(operation);
        let progress: IntentProgress = progress.unwrap_or_default();
        let written = WrittenRequest {
            known: &state.known,
            row: &operation.row,
            progress: &progress,
        };
        let was_written = written.check(request);
        let deletes = written.check_delete(request);
        let differs = state.requests.check_bytes(request, operation.row.id);
        [was_written, deletes, differs]
            .into_iter()
            .flatten()
            .collect()
    }

    /// I-5: the platform knows of everything that the broker has or may still get.
    fn check_exposure(&self, when: &str) {
        let mut state = self.state();
        for id in self.side.possible() {
            if !state.known.knows(&id) && state.forgotten.insert(id.clone()) {
                let (instance, binding) = id;
                self.history.violate(format!(
                    "I-5: after {when} the platform does not know that the broker may have {instance} {}",
                    binding.unwrap_or_default()
                ));
            }
        }
    }

    fn open<T: TypedRecord>(&self, key: &Key, body: &[u8]) -> Option<T> {
        let place = SealContext::Document(key);
        let opened = self.records.documents.open::<Record<T>>(place, body);
        if opened.is_err() {
            self.history
                .violate(format!("a document of kind {} cannot be read", key.kind()));
        }
        opened.ok()?.0.into_inner()
    }

    /// Takes a document over, and checks its change. Orphans come first: other changes are checked against them.
    fn put(&self, key: &Key, body: &[u8]) {
        let kind = key.kind();
        if kind == ORPHAN.as_str() {
            let Some(row) = self.open::<OrphanRecord>(key, body) else {
                return;
            };
            self.history.record("orphan", || {
                format!("store: orphan {:?}: {:?}", row.orphan.key, row.orphan.state)
            });
            self.state().known.orphans.insert(key.clone(), row);
        }
    }

    fn check_put(&self, key: &Key, body: &[u8]) -> Vec<String> {
        let kind = key.kind();
        if kind == INSTANCE.as_str() {
            let Some(next) = self.open::<Instance>(key, body) else {
                return Vec::new();
            };
            self.history.record("instance", || described(&next));
            let mut state = self.state();
            let before = state.known.instances.insert(key.clone(), next.clone());
            return check_instance(before.as_ref(), &next, &self.side);
        }
        if kind == BINDING.as_str() {
            let Some(next) = self.open::<Binding>(key, body) else {
                return Vec::new();
            };
            self.history.record("binding", || described_binding(&next));
            let mut state = self.state();
            let before = state.known.bindings.insert(key.clone(), next.clone());
            return check_binding(before.as_ref(), &next, &state.known, &self.side);
        }
        Vec::new()
    }

    /// The operations of a lane.
    pub(crate) async fn operations(&self, lane: &Key) -> Vec<OperationRow> {
        let list = OperationList {
            filter: OperationFilter::Lane(lane.clone()),
            before: None,
            limit: 1000,
        };
        self.store.operations(&list).await.unwrap_or_default()
    }

    /// I-1 and I-12: the operation of the active intent can be claimed, and no other one.
    async fn check_lane(&self, lane: &Key) {
        let (active, pending) = {
            let state = self.state();
            let instance = state.known.instances.get(lane);
            let of_instance =
                instance.and_then(|it| it.intent(it.active()?).map(|it| it.operation));
            let binding = state.known.bindings.get(lane);
            let of_binding = binding.and_then(|it| it.intent(it.active()?).map(|it| it.operation));
            let of_instance_pending = instance.into_iter().flat_map(|it| &it.pending);
            let of_binding_pending = binding.into_iter().flat_map(|it| &it.pending);
            let pending = of_instance_pending.map(|it| it.operation);
            let pending = pending.chain(of_binding_pending.map(|it| it.operation));
            let pending: BTreeSet<OperationId> = pending.map(|it| OperationId(it.0)).collect();
            match (instance, binding) {
                (None, None) => return,
                _ => (
                    of_instance.or(of_binding).map(|it| OperationId(it.0)),
                    pending,
                ),
            }
        };
        let rows = self.operations(lane).await;
        let unfinished = rows.iter().filter(|it| !matches!(it.state, State::Done(_)));
        let unfinished: BTreeSet<OperationId> = unfinished.map(|it| it.id).collect();
        if unfinished != pending {
            self.history.violate(format!(
                "I-4: {} operations of a lane have not ended, and {} intents are pending",
                unfinished.len(),
                pending.len()
            ));
        }
        let live = rows
            .iter()
            .filter(|it| matches!(it.state, State::Ready | State::Running));
        let live: Vec<OperationId> = live.map(|it| it.id).collect();
        if live != active.into_iter().collect::<Vec<_>>() {
            let shown = |ids: &mut dyn Iterator<Item = OperationId>| {
                ids.map(short).collect::<Vec<_>>().join(" ")
            };
            self.history.violate(format!(
                "I-1: the operations that can be claimed are [{}], and the active intent has [{}]",
                shown(&mut live.into_iter()),
                shown(&mut active.into_iter())
            ));
        }
    }
}

/// An instance, as a line.
fn described(instance: &Instance) -> String {
    let pending = instance.pending.iter();
    let pending: Vec<String> = pending
        .map(|it| {
            let operation = short(OperationId(it.operation.0));
            let (number, change, by) = (it.number, it.change.verb(), &it.author.username);
            let doubt = if it.in_doubt { " in doubt" } else { "" };
            format!(
                "{number} {change} …{operation} of {by}: {:?}{doubt}",
                it.state
            )
        })
        .collect();
    let ended = instance.ended.back();
    let ended = ended.map(|it| format!("{} {:?}", it.number, it.end));
    format!(
        "store: {} ({}) {:?} {:?} revision {}, pending [{}], last end {ended:?}",
        instance.basis.spec().name,
        instance.osb_id,
        instance.phase(),
        instance.exposure,
        instance.revision,
        pending.join(", ")
    )
}

/// A binding, as a line.
fn described_binding(binding: &Binding) -> String {
    let pending = binding.pending.iter();
    let pending: Vec<String> = pending
        .map(|it| {
            let operation = short(OperationId(it.operation.0));
            format!("{} {:?} …{operation}: {:?}", it.number, it.change, it.state)
        })
        .collect();
    let generations = binding.generations.iter();
    let generations: Vec<String> = generations
        .map(|it| format!("{} {:?}", it.osb_id, it.may_exist()))
        .collect();
    let ended = binding.ended.back();
    let ended = ended.map(|it| format!("{} {:?}", it.number, it.end));
    format!(
        "store: binding {} {:?}, generations [{}], pending [{}], last end {ended:?}",
        binding.name,
        binding.phase(),
        generations.join(", "),
        pending.join(", ")
    )
}

#[async_trait]
impl StoreChecker for PlatformChecker {
    async fn committed(&self, commit: &Commit) {
        if !self.state().commits.insert(commit.id()) {
            return;
        }
        let mut lanes = BTreeSet::new();
        let puts: Vec<(&Key, &[u8])> = commit
            .writes()
            .iter()
            .filter_map(|write| match write {
                Write::Put { key, body, .. } => Some((key, body.as_ref())),
                _ => None,
            })
            .collect();
        for (key, body) in &puts {
            self.put(key, body);
        }
        for (key, body) in &puts {
            for fault in self.check_put(key, body) {
                self.history.violate(fault);
            }
            lanes.insert((*key).clone());
        }
        for write in commit.writes() {
            let operation = match write {
                Write::Advance { operation, .. } | Write::Wake(operation) => *operation,
                _ => continue,
            };
            if let Ok(Some(found)) = self.store.operation(operation).await {
                lanes.insert(found.row.lane);
            }
        }
        for lane in &lanes {
            self.check_lane(lane).await;
        }
        self.check_exposure("a commit");
        self.check_counts().await;
    }

    async fn claimed(&self, claimed: &[Operation]) {
        for operation in claimed {
            self.check_lane(&operation.row.lane).await;
        }
    }

    async fn check_counts(&self) {
        let Ok(stats) = self.store.stats().await else {
            return;
        };
        if stats.accepted != stats.live + stats.terminal + stats.cleaned {
            self.history
                .violate(format!("I-4: counts do not add up: {stats:?}"));
        }
    }
}
