//! Registered brokers: registration, catalog, breaker, and how much is sent to each.
//!
//! What replicas share is in two documents per broker: the registration (what its operator wrote) and the state (breaker,
//! probe, sync). Everything else is each process's own and can be lost: counts, limits, connections, caches.
//!
//! - Seen from a decision or an exchange: `broker_view.rs`, `catalog_snapshot.rs`; `transport.rs` is the seam to the
//!   network, which a simulation replaces; `view_cache.rs` is what is kept between two looks, `schema_cache.rs`
//!   the compiled schemas.
//! - Commands: `registration.rs`, `deregistration.rs`, `breaker_commands.rs`; `broker_definition.rs` is what operators
//!   write, `command_error.rs` why not.
//! - The state: `state_change.rs` replaces it, `breaker_effects.rs` turns a decision of the breaker into writes,
//!   `exchange.rs` takes note of every exchange.
//! - Operations: `probe_run.rs`; `sync_run.rs` with `sync_end.rs`; `catalog_request.rs` asks for a catalog,
//!   `planned_sync.rs` and `unused_items.rs` compare it, `item_writes.rs` writes it.
//! - This process: `local_brokers.rs` (counts and limits), `follower.rs` (what other replicas did), `replicas.rs`,
//!   `queue_control.rs` (the engine).

mod breaker_commands;
mod breaker_effects;
mod broker_definition;
mod broker_view;
mod catalog_request;
mod catalog_snapshot;
mod chance;
mod command_error;
mod deregistration;
mod exchange;
mod feed_end;
mod follower;
mod item_writes;
mod local_brokers;
mod planned_sync;
mod probe_run;
mod queue_control;
mod registration;
mod replicas;
mod schema_cache;
mod state_change;
mod stored_registration;
mod sync_end;
mod sync_run;
mod transport;
mod unused_items;
mod view_cache;

pub use broker_definition::BrokerDefinition;
pub use broker_view::{BrokerView, BrokerViewError, SERIALIZED_FOR};
pub use catalog_snapshot::CatalogSnapshot;
pub use command_error::{BrokerCommandError, RemainingInstances, RemainingOrphans};
pub use probe_run::PROBE_VERB;
pub use queue_control::QueueControl;
pub use replicas::{LIVE_WITHIN, Replicas};
pub use sync_run::SYNC_VERB;
pub use transport::{BrokerTransport, ConnectBroker, HttpConnector};

use crate::platform_records::PlatformRecords;
use crate::records::BrokerState;
use local_brokers::LocalBrokers;
use schema_cache::SchemaCache;
use std::sync::Arc;
use sutler_records::RecordError;
use uuid::Uuid;
use view_cache::ViewCache;

/// What brokers need to know of this process.
#[derive(Clone, Debug, Default)]
pub struct BrokersSettings {
    /// Name of this process for people, e.g. that of its host.
    pub replica_name: String,
    /// Version of the program.
    pub version: String,
}

/// The registered brokers.
pub struct Brokers {
    records: PlatformRecords,
    connector: Arc<dyn ConnectBroker>,
    cache: ViewCache,
    schemas: Arc<SchemaCache>,
    local: LocalBrokers,
    replicas: Replicas,
}

impl Brokers {
    /// Brokers in the documents of the platform.
    pub fn new(
        records: PlatformRecords,
        connector: Arc<dyn ConnectBroker>,
        settings: BrokersSettings,
    ) -> Self {
        Self {
            replicas: Replicas::new(records.clone(), settings),
            records,
            connector,
            cache: ViewCache::default(),
            schemas: Arc::default(),
            local: LocalBrokers::default(),
        }
    }

    /// Sets the engine whose queues follow the breakers and limits. Only the first call counts.
    pub fn attach(&self, queues: Arc<dyn QueueControl>) {
        self.local.attach(queues);
    }

    /// Forgets the engine after its end, so that nothing keeps the store open.
    pub(crate) fn detach(&self) {
        self.local.detach();
    }

    /// Carries out an operation soon that this process committed and that may be claimed now.
    pub(crate) fn operation_is_ready(&self, broker: Uuid) {
        self.local.look_now(broker);
    }

    /// The processes of the platform.
    pub fn replicas(&self) -> &Replicas {
        &self.replicas
    }

    /// A broker as it is now: at most two small reads, unless its catalog has changed.
    ///
    /// # Errors
    /// It is not registered, or cannot be read.
    pub async fn view(&self, broker: Uuid) -> Result<Arc<BrokerView>, BrokerViewError> {
        let state_key = self.records.keys.broker_state(broker);
        let state = self.records.load::<BrokerState>(&state_key);
        let (found, state) = tokio::join!(self.registration(broker), state);
        let found = found?.ok_or(BrokerViewError::NotRegistered(broker))?;
        let state = state?;
        if state.state.is_newer() {
            return Err(BrokerViewError::NewerForm(broker));
        }
        let versions = (found.version, state.version);
        if let Some(view) = self.cache.view(broker, versions) {
            return Ok(view);
        }
        let state = state.state.into_inner().unwrap_or_default();
        let catalog = self.catalog(broker, state.catalog_revision).await?;
        let revision = found.registration.revision;
        let transport = match self.cache.transport(broker, revision) {
            Some(transport) => Ok(transport),
            None => self.connector.connect(&found.registration),
        };
        let view = Arc::new(BrokerView {
            registration: found.registration,
            key: found.key,
            version: found.version,
            state,
            catalog,
            transport,
        });
        // What cannot be connected to now is tried again.
        if let Ok(transport) = &view.transport {
            self.cache.keep_transport(broker, revision, transport);
            self.cache.keep_view(broker, versions, &view);
        }
        Ok(view)
    }

    /// The catalog of a revision that was just read. Items may be those of a later revision: a read of that revision
    /// reads them again.
    async fn catalog(
        &self,
        broker: Uuid,
        revision: u64,
    ) -> Result<Arc<CatalogSnapshot>, RecordError> {
        if revision == 0 {
            return Ok(Arc::default());
        }
        let cell = self.cache.catalog(broker, revision);
        if let Some(read) = cell.get() {
            return Ok(read.clone());
        }
        let read = async {
            let read = CatalogSnapshot::read(&self.records, broker, &self.schemas).await?;
            Ok::<_, RecordError>(Arc::new(read))
        };
        let read = cell.get_or_try_init(|| read).await?.clone();
        self.cache.catalog_was_read(broker);
        Ok(read)
    }
}
