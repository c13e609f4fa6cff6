//! What a platform has written down: its documents and its intents, read from its store while it does not run.

use crate::violation::{CheckResult, Violation};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use sutler_journal::{
    Key, KeyRing, List, Operation, OperationFilter, OperationId, OperationList, OperationRow,
    Outcome, State, Stats, Store,
};
use sutler_platform::lifecycle::binding::Binding;
use sutler_platform::lifecycle::instance::{Exposure, Instance};
use sutler_platform::lifecycle::intent::{IntentEnd, IntentState};
use sutler_platform::lifecycle::orphan::OrphanState;
use sutler_platform::platform_records::PlatformRecords;
use sutler_platform::records::{
    BINDING, BROKER_STATE, BrokerState, CatalogRecord, INSTANCE, IntentDetail, IntentRequest,
    ORPHAN, OrphanRecord, SERVICE_PLAN, TypedRecord,
};
use sutler_records::StoreClock;
use sutler_store_sqlite::SqliteStore;

/// Rows per read.
const PAGE: usize = 500;
/// Most documents of a kind.
const DOCUMENTS_MAX: usize = 100_000;

/// An intent, or an operation of the platform itself.
#[derive(Clone, Debug)]
pub(crate) struct StoredIntent {
    /// Uid of the instance, if it is an intent of one.
    pub(crate) instance: Option<String>,
    pub(crate) verb: String,
    /// `None`: the platform itself.
    pub(crate) author: Option<String>,
    /// `None`: it has not ended.
    pub(crate) outcome: Option<Outcome>,
    /// How it ended, for people.
    pub(crate) end: Option<IntentEnd>,
}

/// Everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownState {
    pub(crate) instances: Vec<Instance>,
    pub(crate) bindings: Vec<Binding>,
    pub(crate) orphans: Vec<OrphanRecord>,
    /// Ids of plans that are offered.
    pub(crate) plans: Vec<String>,
    pub(crate) brokers: Vec<BrokerState>,
    /// By operation.
    pub(crate) intents: BTreeMap<String, StoredIntent>,
    pub(crate) stats: Stats,
}

fn unread(error: impl Display) -> Violation {
    Violation::new(format!("the platform's store: {error}"))
}

impl KnownState {
    /// Reads a file that no process uses.
    ///
    /// # Errors
    /// It cannot be read, or not be opened with the keys.
    pub(crate) async fn of_file(db: &Path, keys: &Path) -> CheckResult<Self> {
        let store = Arc::new(SqliteStore::open(db).await.map_err(unread)?);
        let read = Self::read(store.clone(), keys).await;
        if let Some(store) = Arc::into_inner(store) {
            store.close().await;
        }
        read
    }

    /// Reads a store.
    ///
    /// # Errors
    /// It cannot be read, or not be opened with the keys.
    pub(crate) async fn read(store: Arc<dyn Store>, keys: &Path) -> CheckResult<Self> {
        let ring = Arc::new(KeyRing::file(keys).map_err(unread)?);
        let clock = StoreClock::read(store.as_ref()).await.map_err(unread)?;
        let records = PlatformRecords::new(store.clone(), ring, clock);
        let mut known = Self {
            instances: all(&records, records.keys.all_of(INSTANCE)).await?,
            bindings: all(&records, records.keys.all_of(BINDING)).await?,
            orphans: all(&records, records.keys.all_of(ORPHAN)).await?,
            brokers: all(&records, records.keys.all_of(BROKER_STATE)).await?,
            stats: store.stats().await.map_err(unread)?,
            ..Self::default()
        };
        let plans: Vec<CatalogRecord> = all(&records, records.keys.all_of(SERVICE_PLAN)).await?;
        known.plans = plans.iter().filter_map(offered_plan).collect();
        for row in operations(store.as_ref()).await? {
            let found = store.operation(row.id).await.map_err(unread)?;
            if let Some(intent) = found.and_then(|it| stored_intent(&records, &it)) {
                known.intents.insert(row.id.to_string(), intent);
            }
        }
        Ok(known)
    }

    /// Whether a document says that the broker may have this: `instance` or `instance/binding`.
    pub(crate) fn knows(&self, id: &str) -> bool {
        let is_known = match id.split_once('/') {
            None => self.knows_instance(id),
            Some((_, binding)) => self.knows_binding(binding),
        };
        is_known || self.is_on_ledger(id)
    }

    fn knows_instance(&self, id: &str) -> bool {
        self.instances.iter().any(|it| {
            let may_exist = match it.exposure {
                Exposure::MayExist | Exposure::Confirmed | Exposure::Uncertain(_) => true,
                Exposure::Nothing | Exposure::OnLedger => false,
            };
            may_exist && it.osb_id.as_str() == id
        })
    }

    fn knows_binding(&self, id: &str) -> bool {
        let generations = self.bindings.iter().flat_map(|it| &it.generations);
        let mut may_exist = generations.filter(|it| it.may_exist());
        may_exist.any(|it| it.osb_id.as_str() == id)
    }

    /// Whether an intent waits for a person.
    pub(crate) fn is_on_hold(&self, operation: &str) -> bool {
        let of_instances = self.instances.iter().flat_map(|it| &it.pending);
        let of_bindings = self.bindings.iter().flat_map(|it| &it.pending);
        let mut pending = of_instances
            .map(|it| (it.operation.0, &it.state))
            .chain(of_bindings.map(|it| (it.operation.0, &it.state)));
        pending.any(|(id, state)| {
            id.to_string() == operation && matches!(state, IntentState::OnHold(_))
        })
    }

    /// Whether the ledger has it, and does not take it for deleted.
    fn is_on_ledger(&self, id: &str) -> bool {
        let mut rows = self.orphans.iter();
        rows.any(|it| {
            let is_done = matches!(it.orphan.state, OrphanState::Done { .. });
            orphan_id(it) == id && !is_done
        })
    }
}

/// `instance` or `instance/binding`.
pub(crate) fn orphan_id(row: &OrphanRecord) -> String {
    let key = &row.orphan.key;
    match &key.binding {
        None => key.instance.as_str().to_owned(),
        Some(binding) => format!("{}/{}", key.instance.as_str(), binding.as_str()),
    }
}

async fn all<T: TypedRecord>(records: &PlatformRecords, prefix: Vec<u8>) -> CheckResult<Vec<T>> {
    let list = List::Prefix(prefix);
    let read = records.list_all::<T>(&list, DOCUMENTS_MAX).await;
    let (items, _): (Vec<(Key, T)>, bool) = read.map_err(unread)?;
    Ok(items.into_iter().map(|(_, item)| item).collect())
}

fn offered_plan(record: &CatalogRecord) -> Option<String> {
    match record {
        CatalogRecord::Plan(plan) if !plan.is_removed() => Some(plan.id().as_str().to_owned()),
        CatalogRecord::Plan(_) | CatalogRecord::Service(_) => None,
    }
}

fn stored_intent(records: &PlatformRecords, operation: &Operation) -> Option<StoredIntent> {
    let request: IntentRequest = records.documents.open_request(operation).ok()?;
    let detail: Option<IntentDetail> = {
        let row = &operation.row;
        records.documents.open_detail(row.id, &row.detail).ok()
    };
    let lane = &operation.row.lane;
    let is_instance = lane.kind() == INSTANCE.as_str();
    Some(StoredIntent {
        instance: is_instance.then(|| lane.id(1).to_owned()),
        verb: request.verb,
        author: request.author.map(|it| it.username),
        outcome: match operation.row.state {
            State::Done(outcome) => Some(outcome),
            State::Waiting | State::Ready | State::Running => None,
        },
        end: detail.and_then(|it| it.end),
    })
}

async fn operations(store: &dyn Store) -> CheckResult<Vec<OperationRow>> {
    let mut all: Vec<OperationRow> = Vec::new();
    loop {
        let before: Option<OperationId> = all.last().map(|row| row.id);
        let list = OperationList {
            filter: OperationFilter::All,
            before,
            limit: PAGE,
        };
        let page = store.operations(&list).await.map_err(unread)?;
        let is_last = page.len() < PAGE;
        all.extend(page);
        if is_last {
            return Ok(all);
        }
    }
}
