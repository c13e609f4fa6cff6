//! From a configuration to the framework's own words. Decides nothing: what goes together was checked.

use super::access;
use super::bundles::BundlesRuntime;
use crate::demo::Demo;
use crate::stores::{self, OpenedStore};
use crate::telemetry::{Choices, Telemetry};
use async_trait::async_trait;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sutler::{
    BrokerConfig, ClientAuth, DeletedPollAnswer, FilePath, MissingVersionAnswer, ResolvedConfig,
    ResourceConfig, StoreUrl,
};
use sutler_broker::{
    Admin, Auth, Backup, Broker, CleanupSettings, ClientCertificates, DeletedPoll, KindSettings,
    Limits, MissingVersion, Patience, Platform, Rate, Settings, Tls,
};
use sutler_journal::{KeyRing, Store};
use sutler_store_sqlite::SqliteStore;

type BoxError = Box<dyn std::error::Error>;

/// Starts telling what happens: log, audit, metrics, traces.
pub(super) fn telemetry(config: &BrokerConfig) -> Result<Telemetry, BoxError> {
    let choices = Choices {
        level: config.log.level.clone(),
        format: config.log.format,
        audit_file: config.audit.file.as_ref().map(|it| it.0.clone()),
    };
    Ok(Telemetry::start(&choices)?)
}

/// The recipe of the configured broker: bundles, or a catalog with the demo service behind every offering.
pub(super) async fn broker(
    loaded: &ResolvedConfig,
    mut bundles: Option<&mut BundlesRuntime>,
    operators: Option<Auth>,
) -> Result<Broker, BoxError> {
    let config = &loaded.config;
    let persistent = open_store(config).await?;
    if let (Some(bundles), Some(persistent)) = (&mut bundles, &persistent) {
        bundles
            .load_unconfigured_registries(config, persistent.store.as_ref())
            .await?;
    }
    let bundles = bundles.as_deref();
    let broker = match bundles {
        Some(bundles) => Broker::new(bundles.catalog()?).other_services(bundles.service.clone()),
        None => Broker::new(loaded.catalog.clone()).other_services(Arc::new(Demo)),
    };
    let mut broker = broker.settings(|settings| {
        apply(config, settings);
        settings.host = bundles.and_then(BundlesRuntime::host);
    });
    for (prefix, auth) in access::of(config).map_err(|fault| fault.to_string())? {
        broker = match realm_of(config, &prefix) {
            Some(realm) => broker.platform(Platform::at(&prefix).realm(realm).auth(auth)),
            None => broker.auth(auth),
        };
    }
    if let (Some(admin), Some(operators)) = (&config.admin, operators) {
        let mut admin = Admin::at(admin.path()).auth(operators);
        // Where there are registries, they show those of folders, too.
        if let Some(bundles) = bundles.filter(|it| it.registries.is_none()) {
            let shown = bundles.shown.clone();
            admin = admin.shows("bundles", move || shown.page());
        }
        broker = broker.admin(admin);
    }
    if let Some(registries) = bundles.and_then(|it| it.registries.as_ref()) {
        let chores = registries.chores().into_iter();
        broker = chores.fold(broker, Broker::chore).awaits_keeper();
    }
    if let Some(tls) = tls(config) {
        broker = broker.tls(tls);
    }
    if config.metrics.public {
        broker = broker.public_metrics();
    }
    let Some(persistent) = persistent else {
        return Ok(broker.in_memory());
    };
    if let Some((copies, folder)) = persistent.copies {
        broker = broker.backup(Arc::new(copies), folder);
    }
    Ok(broker.shared_store(persistent.store, persistent.keys))
}

/// What outlives the process.
struct PersistentStore {
    store: Arc<dyn Store>,
    keys: KeyRing,
    copies: Option<(SqliteBackup, PathBuf)>,
}

/// Opens the configured store; `None`: nothing outlives the process.
async fn open_store(config: &BrokerConfig) -> Result<Option<PersistentStore>, BoxError> {
    let keys = match (&config.store.key_file, &config.store.url) {
        (Some(FilePath(path)), _) => path.clone(),
        (None, StoreUrl::Sqlite(path)) => path.with_extension("key"),
        (None, StoreUrl::Memory) => return Ok(None),
        (None, StoreUrl::Server(_)) => {
            return Err("name the keys of the store with store.key_file".into());
        }
    };
    let (store, copies): (Arc<dyn Store>, _) = match stores::open(&config.store.url).await? {
        OpenedStore::Sqlite(store, path) => {
            let folder = path.parent().map(Path::to_owned).unwrap_or_default();
            (store.clone(), Some((SqliteBackup(store), folder)))
        }
        OpenedStore::Other(store) => (store, None),
    };
    stores::is_whole(store.as_ref()).await?;
    Ok(Some(PersistentStore {
        store,
        keys: KeyRing::file(keys)?,
        copies,
    }))
}

/// Copies of the database, for operators.
struct SqliteBackup(Arc<SqliteStore>);

#[async_trait]
impl Backup for SqliteBackup {
    async fn copy_to(&self, path: &Path) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.0.backup(path, |_| {}).await?)
    }
}

/// The realm of a platform; none for the one at `/` that the top of the configuration makes.
fn realm_of<'a>(config: &'a BrokerConfig, prefix: &str) -> Option<&'a str> {
    let mut platforms = config.platforms.iter();
    let platform = platforms.find(|platform| platform.prefix == prefix)?;
    Some(&platform.realm)
}

fn apply(config: &BrokerConfig, settings: &mut Settings) {
    settings.missing_version = match config.compat.missing_version {
        MissingVersionAnswer::BadRequest => MissingVersion::BadRequest,
        MissingVersionAnswer::PreconditionFailed => MissingVersion::PreconditionFailed,
    };
    settings.deleted_poll = match config.compat.deleted_poll {
        DeletedPollAnswer::Succeeded => DeletedPoll::Succeeded,
        DeletedPollAnswer::Gone => DeletedPoll::Gone,
    };
    settings.sync_wait = config.timeouts.sync_wait.0;
    settings.body_bytes_max = config.limits.body.0;
    settings.headers_within = config.timeouts.headers.0;
    settings.body_within = config.timeouts.body.0;
    settings.workers = config.workers;
    settings.lease = config.timeouts.lease.0;
    settings.tombstones = config.timeouts.tombstones.0;
    settings.drain = config.drain.0;
    settings.drain_notice = config.timeouts.drain_notice.0;
    settings.limits = limits(config, settings.limits.clone());
    settings.patience = Patience {
        wait: config.refresh.wait.0,
        waiting_max: config.refresh.waiting,
        sync_wait: config.refresh.synchronous_wait.0,
    };
    settings.instances = records(&config.instances);
    settings.bindings = records(&config.bindings);
}

fn limits(config: &BrokerConfig, others: Limits) -> Limits {
    let (limits, timeouts) = (&config.limits, &config.timeouts);
    let rate = NonZeroU32::new(limits.rate_per_caller);
    let burst = NonZeroU32::new(limits.burst_per_caller);
    Limits {
        uri_bytes_max: limits.uri.0,
        header_bytes_max: limits.headers.0,
        headers_max: limits.header_lines,
        body_bytes_at_once: limits.bodies_at_once.0,
        connections_max: limits.connections,
        connections_per_peer: limits.connections_per_peer,
        handshakes_at_once: limits.handshakes_at_once,
        handshake_within: timeouts.handshake.0,
        idle_within: timeouts.idle.0,
        write_within: timeouts.write.0,
        streams_max: limits.streams,
        reads_at_once: limits.reads_at_once,
        changes_at_once: limits.changes_at_once,
        queue_max: limits.queue,
        queue_within: timeouts.queue.0,
        requests_per_caller: limits.requests_per_caller,
        rate_per_caller: rate.zip(burst).map(|(rate, burst)| Rate::new(rate, burst)),
        ..others
    }
}

/// The files of TLS, if it is served.
pub(super) fn tls(config: &BrokerConfig) -> Option<Tls> {
    let tls = config.tls.as_ref()?;
    let (FilePath(certificate), FilePath(key)) = tls.certificate.as_ref().zip(tls.key.as_ref())?;
    let files = Tls::files(certificate, key);
    let clients = match tls.client_auth {
        ClientAuth::None => return Some(files),
        ClientAuth::Optional => ClientCertificates::Optional,
        ClientAuth::Required => ClientCertificates::Required,
    };
    match &tls.client_ca {
        Some(FilePath(authorities)) => Some(files.client_ca(authorities, clients)),
        None => Some(files),
    }
}

fn records(records: &ResourceConfig) -> KindSettings {
    let when = |schedule: &Option<sutler::CronText>| schedule.as_ref().and_then(|it| it.0.clone());
    KindSettings {
        force_delete_unknown: records.force_delete_unknown,
        cleanup: CleanupSettings {
            age: records.cleanup.age.0,
            all: when(&records.cleanup.all),
            succeeded: when(&records.cleanup.succeeded),
            failed: when(&records.cleanup.failed),
        },
    }
}
