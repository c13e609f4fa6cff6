//! JSON of the administration API. Never contains parameters, credentials or values of an author's state.
//!
//! Serialisable values only; they are read by `list.rs`.

use crate::audit::TrailEntry;
use crate::catalog::LiveCatalog;
use crate::lifecycle::AuthorState;
use crate::lifecycle::binding::{Binding, BindingData};
use crate::lifecycle::instance::{Instance, InstanceData};
use crate::requests::{self, RequestHandler};
use crate::resources::{BINDING, Detail, INSTANCE};
use crate::service::Provenance;
use serde::Serialize;
use serde_json::Value;
use sutler_journal::{
    Key, OperationId, OperationRow, Outcome, QueueStats, State, StoreError, StoreTime,
};
use sutler_osb::UtcTime;
use sutler_records::RecordError;

/// A page of a list.
#[derive(Debug, Serialize)]
pub(crate) struct Items<T> {
    pub items: Vec<T>,
    /// Next position, for `after`; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// An instance in a list.
#[derive(Debug, Serialize)]
pub(crate) struct InstanceLine {
    pub id: String,
    pub realm: String,
    pub service_id: Option<String>,
    pub plan_id: Option<String>,
    pub lifecycle: &'static str,
    /// Version of the program that runs it, if the service reports one; otherwise its maintenance version.
    pub version: Option<String>,
    /// Maintenance version in the catalog, if it differs: an update can request it.
    pub upgrade_to: Option<String>,
    /// Time of the first provision request.
    pub created: Option<String>,
    pub last_operation: Option<OperationId>,
}

impl InstanceLine {
    pub(crate) fn of(catalog: &LiveCatalog, key: &Key, at: &Instance) -> Self {
        let instance_data = at.data();
        let made = instance_data.and_then(|it| provenance(catalog, it));
        let maintained = || instance_data.and_then(|it| it.spec.maintenance_version.clone());
        Self {
            id: key.id(0).to_owned(),
            realm: key.realm().to_owned(),
            service_id: instance_data.map(|it| it.spec.service_id.as_str().to_owned()),
            plan_id: instance_data.map(|it| it.spec.plan_id.as_str().to_owned()),
            lifecycle: at.lifecycle(),
            version: made.map_or_else(maintained, |it| it.version),
            upgrade_to: instance_data.and_then(|it| upgrade_to(catalog, it)),
            created: instance_data.and_then(|it| accepted_at(it.made)),
            last_operation: at.last(),
        }
    }
}

fn provenance(catalog: &LiveCatalog, instance_data: &InstanceData) -> Option<Provenance> {
    let service =
        catalog.service_named(&instance_data.spec.service_id, &instance_data.spec.plan_id)?;
    service.provenance(instance_data.state.as_ref())
}

/// Maintenance version in the catalog, if it differs from that of the instance.
fn upgrade_to(catalog: &LiveCatalog, instance_data: &InstanceData) -> Option<String> {
    let snapshot = catalog.snapshot();
    let plan = snapshot.plan(&instance_data.spec.service_id, &instance_data.spec.plan_id)?;
    let version = plan.pinned.maintenance_version()?;
    let has = instance_data.spec.maintenance_version.as_deref();
    (has != Some(version)).then(|| version.to_owned())
}

/// A single instance.
#[derive(Debug, Serialize)]
pub(crate) struct InstanceView {
    #[serde(flatten)]
    pub line: InstanceLine,
    pub organization_guid: Option<String>,
    pub space_guid: Option<String>,
    /// Name of the program that runs it, if the service reports one.
    pub bundle: Option<String>,
    pub bundle_digest: Option<String>,
    pub maintenance_version: Option<String>,
    pub dashboard_url: Option<String>,
    /// Names only.
    pub parameter_names: Vec<String>,
    /// Names only.
    pub state_keys: Vec<String>,
    pub plan_copy: Option<String>,
    pub executing: Option<OperationView>,
    pub waiting: Option<OperationView>,
    pub last: Option<OperationView>,
}

impl InstanceView {
    pub(crate) fn of(catalog: &LiveCatalog, key: &Key, at: &Instance) -> Self {
        let instance_data = at.data();
        let text = |it: fn(&InstanceData) -> String| instance_data.map(it);
        let made = instance_data.and_then(|it| provenance(catalog, it));
        Self {
            line: InstanceLine::of(catalog, key, at),
            bundle: made.as_ref().map(|it| it.name.clone()),
            bundle_digest: made.map(|it| it.digest),
            organization_guid: text(|it| it.spec.organization_guid.clone()),
            space_guid: text(|it| it.spec.space_guid.clone()),
            maintenance_version: instance_data.and_then(|it| it.spec.maintenance_version.clone()),
            dashboard_url: instance_data.and_then(|it| it.dashboard_url.clone()),
            parameter_names: instance_data
                .map(|it| it.spec.parameters.0.keys().cloned().collect())
                .unwrap_or_default(),
            state_keys: state_keys(instance_data.and_then(|it| it.state.as_ref())),
            plan_copy: text(|it| it.spec.plan.clone()),
            executing: None,
            waiting: None,
            last: None,
        }
    }
}

/// A binding in a list.
#[derive(Debug, Serialize)]
pub(crate) struct BindingLine {
    pub instance_id: String,
    pub id: String,
    pub realm: String,
    pub service_id: Option<String>,
    pub plan_id: Option<String>,
    pub lifecycle: &'static str,
    pub created: Option<String>,
    pub last_operation: Option<OperationId>,
}

impl BindingLine {
    pub(crate) fn of(key: &Key, at: &Binding) -> Self {
        let binding_data = at.data();
        Self {
            instance_id: key.id(0).to_owned(),
            id: key.id(1).to_owned(),
            realm: key.realm().to_owned(),
            service_id: binding_data.map(|it| it.spec.service_id.as_str().to_owned()),
            plan_id: binding_data.map(|it| it.spec.plan_id.as_str().to_owned()),
            lifecycle: at.lifecycle(),
            created: binding_data.and_then(|it| accepted_at(it.made)),
            last_operation: at.last(),
        }
    }
}

/// A single binding.
#[derive(Debug, Serialize)]
pub(crate) struct BindingView {
    #[serde(flatten)]
    pub line: BindingLine,
    pub app_guid: Option<String>,
    pub predecessor: Option<String>,
    /// Names only.
    pub parameter_names: Vec<String>,
    /// Names only.
    pub state_keys: Vec<String>,
    pub executing: Option<OperationView>,
    pub waiting: Option<OperationView>,
    pub last: Option<OperationView>,
}

impl BindingView {
    pub(crate) fn of(key: &Key, at: &Binding) -> Self {
        let binding_data = at.data();
        let predecessor = |it: &BindingData| {
            it.spec
                .predecessor
                .as_ref()
                .map(|id| id.as_str().to_owned())
        };
        Self {
            line: BindingLine::of(key, at),
            app_guid: binding_data.and_then(|it| it.spec.app_guid.clone()),
            predecessor: binding_data.and_then(predecessor),
            parameter_names: binding_data
                .map(|it| it.spec.parameters.0.keys().cloned().collect())
                .unwrap_or_default(),
            state_keys: state_keys(binding_data.and_then(|it| it.state.as_ref())),
            executing: None,
            waiting: None,
            last: None,
        }
    }
}

/// An operation.
#[derive(Debug, Serialize)]
pub(crate) struct OperationView {
    pub id: OperationId,
    pub realm: String,
    /// `instance`, `binding` or `singleton`.
    pub kind: String,
    pub instance_id: Option<String>,
    pub binding_id: Option<String>,
    pub verb: String,
    pub state: &'static str,
    pub attempt: u32,
    /// Number of claims, with or without progress.
    pub claims: u64,
    pub takeovers: u32,
    pub cancel_requested: bool,
    pub accepted: Option<String>,
    pub due: Option<String>,
    pub finished: Option<String>,
    /// Description for polls.
    pub description: Option<String>,
}

impl OperationView {
    pub(crate) fn of(requests: &RequestHandler, row: &OperationRow) -> Result<Self, RecordError> {
        let lane = &row.lane;
        let is_resource = lane.kind() == INSTANCE.as_str() || lane.kind() == BINDING.as_str();
        let detail = requests
            .realm_context
            .records
            .open_detail::<Detail>(row.id, &row.detail)?;
        let unfinished = !matches!(row.state, State::Done(_));
        Ok(Self {
            id: row.id,
            realm: lane.realm().to_owned(),
            kind: lane.kind().to_owned(),
            instance_id: is_resource.then(|| lane.id(0).to_owned()),
            binding_id: (lane.kind() == BINDING.as_str()).then(|| lane.id(1).to_owned()),
            verb: row.verb.to_string(),
            state: state_word(row.state),
            attempt: row.attempt,
            claims: row.fence.0,
            takeovers: row.takeovers,
            cancel_requested: row.cancel,
            accepted: rfc3339(row.accepted),
            due: rfc3339(row.due).filter(|_| unfinished),
            finished: row.finished.and_then(rfc3339),
            description: detail.description,
        })
    }
}

/// State of an operation as a word.
pub(crate) fn state_word(state: State) -> &'static str {
    match state {
        State::Waiting => "waiting",
        State::Ready => "ready",
        State::Running => "running",
        State::Done(Outcome::Succeeded) => "succeeded",
        State::Done(Outcome::Failed) => "failed",
        State::Done(Outcome::Cancelled) => "cancelled",
    }
}

/// A line of the audit trail.
#[derive(Debug, Serialize)]
pub(crate) struct AuditLine {
    pub at: Option<String>,
    pub realm: String,
    #[serde(flatten)]
    pub entry: TrailEntry,
}

impl AuditLine {
    pub(crate) fn of(realm: &str, entry: TrailEntry) -> Self {
        let micros = i64::try_from(entry.at_ms.saturating_mul(1000)).unwrap_or(i64::MAX);
        Self {
            at: rfc3339(StoreTime(micros)),
            realm: realm.to_owned(),
            entry,
        }
    }
}

/// Statistics of the broker. Counts are of the whole store, all realms; accepted = live + terminal + cleaned.
#[derive(Debug, Serialize)]
pub(crate) struct StatsView {
    /// Whether this process rejects changes and claims nothing.
    pub draining: bool,
    /// Operations that run in this process.
    pub running_here: usize,
    pub accepted: u64,
    pub live: u64,
    pub terminal: u64,
    pub cleaned: u64,
    pub queues: Vec<QueueView>,
}

/// One queue with unfinished operations.
#[derive(Debug, Serialize)]
pub(crate) struct QueueView {
    pub queue: String,
    pub waiting: u64,
    pub ready: u64,
    pub running: u64,
    /// Time at which the oldest unfinished operation was accepted.
    pub oldest: Option<String>,
}

pub(crate) async fn stats(requests: &RequestHandler) -> Result<StatsView, StoreError> {
    let stats = requests.realm_context.records.store.stats().await?;
    let queue = |it: &QueueStats| QueueView {
        queue: it.queue.as_str().to_owned(),
        waiting: it.waiting,
        ready: it.ready,
        running: it.running,
        oldest: rfc3339(it.oldest),
    };
    Ok(StatsView {
        draining: requests.engine.is_paused(),
        running_here: requests.engine.operations_running(),
        accepted: stats.accepted,
        live: stats.live,
        terminal: stats.terminal,
        cleaned: stats.cleaned,
        queues: stats.queues.iter().map(queue).collect(),
    })
}

/// Result of a command.
#[derive(Debug, Serialize)]
pub(crate) struct CommandView {
    /// State of the resource after the command.
    pub lifecycle: &'static str,
    pub audit: AuditLine,
}

impl CommandView {
    pub(crate) fn of(requests: &RequestHandler, result: &requests::CommandResult) -> Self {
        let realm = requests.realm_context.records.realm.as_str();
        Self {
            lifecycle: result.lifecycle,
            audit: AuditLine::of(realm, result.entry.clone()),
        }
    }
}

fn state_keys(state: Option<&AuthorState>) -> Vec<String> {
    match state {
        Some(AuthorState(Value::Object(fields))) => fields.keys().cloned().collect(),
        Some(_) | None => Vec::new(),
    }
}

/// Time at which an operation was accepted, from its id.
fn accepted_at(id: OperationId) -> Option<String> {
    let (seconds, nanos) = id.0.get_timestamp()?.to_unix();
    let seconds = i64::try_from(seconds).ok()?;
    UtcTime::from_epoch(seconds, nanos / 1000)
        .ok()
        .map(String::from)
}

fn rfc3339(at: StoreTime) -> Option<String> {
    let seconds = at.0.div_euclid(1_000_000);
    let micros = u32::try_from(at.0.rem_euclid(1_000_000)).ok()?;
    UtcTime::from_epoch(seconds, micros).ok().map(String::from)
}
