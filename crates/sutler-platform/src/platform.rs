//! The platform: its parts, put together and started. Cheap to clone.
//!
//! Commands and reads are in `commands/`, one file per resource; what runs in the background is in `executor.rs` and
//! `brokers.rs`.

use crate::brokers::{Brokers, BrokersSettings, ConnectBroker};
use crate::context::PlatformContext;
use crate::end_waiters::EndWaiters;
use crate::executor::PlatformExecutor;
use crate::lifecycle::breaker::RUNS_MAX;
use crate::periodic;
use crate::platform_records::PlatformRecords;
use crate::records::platform_queue;
use crate::retention::RetentionSettings;
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::copy::{UnusableStoreError, check_usable};
use sutler_journal::{
    CommitError, Engine, EngineSettings, KeyRing, LeaseError, QueueSettings, Store, StoreError,
};
use sutler_osb::NonEmptyText;
use sutler_records::{StoreClock, VerifyKeysError, verify_keys};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Operations of the platform itself that run at once, e.g. probes and reads of catalogs.
const OWN_OPERATIONS_MAX: usize = 16;

/// What a platform is made of.
pub struct PlatformParts {
    /// Where everything is stored.
    pub store: Arc<dyn Store>,
    /// Keys that seal it.
    pub keys: Arc<KeyRing>,
    /// How brokers are reached.
    pub connector: Arc<dyn ConnectBroker>,
    /// Choices.
    pub settings: PlatformSettings,
}

/// Choices for a platform.
#[derive(Clone, Debug)]
pub struct PlatformSettings {
    /// Id of this platform, for namespaces that belong to no cluster. It must not change.
    pub cluster_id: NonEmptyText,
    /// Lifetime of a worker's lease without renewal.
    pub lease: Duration,
    /// How often operations are looked for when nothing announces them.
    pub look_every: Duration,
    /// How long a shut-down waits for exchanges.
    pub drain: Duration,
    /// How long what has ended is kept.
    pub retention: RetentionSettings,
    /// What operators see of this process.
    pub replica: BrokersSettings,
}

/// Why a platform does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartPlatformError {
    /// The store must not be used, e.g. because it was moved.
    #[error(transparent)]
    Unusable(#[from] UnusableStoreError),
    /// The store does not answer.
    #[error("the store did not answer")]
    Store(#[from] StoreError),
    /// The keys do not open what is stored.
    #[error(transparent)]
    Keys(#[from] VerifyKeysError),
    /// The periodic tasks cannot be planned.
    #[error("the periodic tasks cannot be planned")]
    PeriodicTasks(#[source] CommitError),
    /// The store granted no lease.
    #[error("the store granted no lease")]
    Lease(#[from] LeaseError),
}

/// A running platform.
#[derive(Clone)]
pub struct Platform {
    pub(crate) context: Arc<PlatformContext>,
    pub(crate) cluster_id: NonEmptyText,
    engine: Engine,
    stop: CancellationToken,
    background: TaskTracker,
    drain: Duration,
}

impl PlatformSettings {
    /// The defaults for a platform of this id.
    #[must_use]
    pub fn of_cluster(cluster_id: NonEmptyText) -> Self {
        let engine = EngineSettings::default();
        Self {
            cluster_id,
            lease: engine.lease,
            look_every: engine.look_every,
            drain: Duration::from_secs(20),
            retention: RetentionSettings::default(),
            replica: BrokersSettings::default(),
        }
    }
}

impl Platform {
    /// Starts a platform: it takes a lease and goes on with what was in progress.
    ///
    /// # Errors
    /// See [`StartPlatformError`].
    pub async fn start(parts: PlatformParts) -> Result<Self, StartPlatformError> {
        let PlatformParts {
            store,
            keys,
            connector,
            settings,
        } = parts;
        check_usable(store.as_ref()).await?;
        let clock = StoreClock::read(store.as_ref()).await?;
        let records = PlatformRecords::new(store.clone(), keys, clock);
        verify_keys(&records.documents).await?;
        let brokers = Arc::new(Brokers::new(records.clone(), connector, settings.replica));
        let context = Arc::new(PlatformContext {
            records,
            brokers,
            waiters: EndWaiters::default(),
            lease: settings.lease,
            retention: settings.retention,
        });
        let planned = periodic::plan_all(&context).await;
        planned.map_err(StartPlatformError::PeriodicTasks)?;
        let executor = Arc::new(PlatformExecutor::new(context.clone()));
        let engine_settings = EngineSettings {
            lease: settings.lease,
            look_every: settings.look_every,
            queues: vec![QueueSettings {
                queue: platform_queue(),
                limit: OWN_OPERATIONS_MAX,
            }],
            total_limit: RUNS_MAX as usize,
            // Whatever hangs at brokers: probes and syncs start.
            reserved: Some(platform_queue()),
            ..EngineSettings::default()
        };
        let engine = Engine::start(store, executor, engine_settings).await?;
        context.brokers.attach(Arc::new(engine.clone()));
        let stop = CancellationToken::new();
        let background = TaskTracker::new();
        let (brokers, stopped) = (context.brokers.clone(), stop.clone());
        background.spawn(async move { brokers.follow(stopped).await });
        background.close();
        Ok(Self {
            context,
            cluster_id: settings.cluster_id,
            engine,
            stop,
            background,
            drain: settings.drain,
        })
    }

    /// The registered brokers.
    #[must_use]
    pub fn brokers(&self) -> &Brokers {
        &self.context.brokers
    }

    /// Keys of its documents, e.g. for the lane of an instance.
    #[must_use]
    pub fn records(&self) -> &PlatformRecords {
        &self.context.records
    }

    /// The engine that carries out its operations.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Stops claiming, waits for exchanges in progress, and releases the rest.
    pub async fn shut_down(&self) {
        self.stop.cancel();
        self.engine.shut_down(self.drain).await;
        self.background.wait().await;
        self.context.brokers.detach();
    }
}

#[cfg(test)]
mod tests {
    use super::Platform;
    use crate::commands::{ChangeOptions, InstancePatch};
    use crate::records::ResourceName;

    fn is_send<T: Send>(_: &T) {}

    /// Servers run commands in tasks of their own.
    #[test]
    fn commands_can_be_sent_between_threads() {
        fn check(platform: &Platform, name: &ResourceName, options: &ChangeOptions) {
            let patch = InstancePatch::default();
            is_send(&platform.patch_instance(name, name, &patch, options));
            is_send(&platform.delete_instance(name, name, true, &options.author));
            is_send(&platform.abandon_instance(name, name, &options.author.clone().into()));
        }
        let _ = check;
    }
}
