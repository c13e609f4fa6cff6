//! Builds and starts a broker from catalog, services, store and authentication.
//!
//! [`Broker`] is the builder, [`BrokerHandle`] the running broker. `serve.rs` serves it on a port.

mod engine;
mod error;
mod extension;
mod replace_keys;

pub use error::BuildError;

use crate::admin::{Admin, Backup, BackupSource};
use crate::app::{App, PlatformRoute, router};
use crate::catalog::{CatalogPreconditions, LiveCatalog, OTHERS, Services};
use crate::catalog_file::CatalogFile;
use crate::cleanup;
use crate::health::{self, BrokerHealth, HealthWatch};
use crate::http::{Endpoint, PlatformApi, Replacement};
use crate::platform::{CheckedPlatform, Platform, Prefix, check_platforms};
use crate::realm_context::{RealmContext, host_queue_of, queue_of};
use crate::requests::RequestHandler;
use crate::service::{Service, UntypedService};
use crate::settings::Settings;
use crate::typed_service::TypedService;
use secrecy::SecretString;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use sutler_journal::copy::check_usable;
use sutler_journal::{CommitError, Engine, KeyRing, MemoryStore, MeteredStore, Realm, Store};
use sutler_osb::Catalog;
use sutler_records::{
    COLLECTIONS_REALM, Documents, InflightCache, PeriodicTask, PeriodicTasks, StoreClock,
    verify_keys,
};
use sutler_server::{Admission, Auth, AuthConfigError, Probes, SharedLimits, Tls, TlsAcceptor};
use tokio_util::sync::CancellationToken;

/// Builder of a broker.
pub struct Broker {
    catalog: Catalog,
    services: Services,
    settings: Settings,
    store: Option<(Arc<dyn Store>, KeyRing)>,
    auth: Option<Result<Auth, AuthConfigError>>,
    realm: String,
    platforms: Vec<Platform>,
    admin: Option<Admin>,
    backup: Option<BackupSource>,
    replaced: HashMap<Endpoint, Arc<dyn Replacement>>,
    tls: Option<Tls>,
    metrics_page: Option<Arc<dyn Fn() -> String + Send + Sync>>,
    public_metrics: bool,
    tasks: Vec<Arc<dyn PeriodicTask>>,
    with_catalog_source: bool,
}

impl Broker {
    /// A broker with a catalog and the settings of the catalog file.
    pub fn new(catalog: impl Into<CatalogFile>) -> Self {
        let file = catalog.into();
        let settings = Settings {
            instances: file.settings.instances,
            bindings: file.settings.bindings,
            ..Settings::default()
        };
        Self {
            catalog: file.catalog,
            services: Services::new(),
            settings,
            store: None,
            auth: None,
            realm: "broker".to_owned(),
            platforms: Vec::new(),
            admin: None,
            backup: None,
            replaced: HashMap::new(),
            tls: None,
            metrics_page: None,
            public_metrics: false,
            tasks: Vec::new(),
            with_catalog_source: false,
        }
    }

    /// Serves an offering, by its name or id, with a typed service.
    #[must_use]
    pub fn service(self, offering: &str, service: impl Service) -> Self {
        self.untyped_service(offering, Arc::new(TypedService(service)))
    }

    /// Serves an offering, by its name or id, with a service known only at run time.
    #[must_use]
    pub fn untyped_service(mut self, offering: &str, service: Arc<dyn UntypedService>) -> Self {
        self.services.insert(offering.to_owned(), service);
        self
    }

    /// Serves every offering without its own service, also those of later catalogs.
    #[must_use]
    pub fn other_services(self, service: Arc<dyn UntypedService>) -> Self {
        self.untyped_service(OTHERS, service)
    }

    /// Stores all records in a store, sealed with a key ring.
    #[must_use]
    pub fn store(mut self, store: impl Store, keys: KeyRing) -> Self {
        self.store = Some((Arc::new(store), keys));
        self
    }

    /// Like [`Broker::store`], for a shared store.
    #[must_use]
    pub fn shared_store(mut self, store: Arc<dyn Store>, keys: KeyRing) -> Self {
        self.store = Some((store, keys));
        self
    }

    /// Stores all records in memory; they are lost at the end of the process.
    #[must_use]
    pub fn in_memory(self) -> Self {
        self.store(MemoryStore::new(), KeyRing::ephemeral())
    }

    /// Requires one user's name and password.
    #[must_use]
    pub fn basic_auth(mut self, user: &str, password: impl Into<SecretString>) -> Self {
        self.auth = Some(Auth::basic(user, &password.into()));
        self
    }

    /// Requires the authentication of an [`Auth`], e.g. several users. Keep a clone of it to change it while the
    /// broker runs.
    #[must_use]
    pub fn auth(mut self, auth: Auth) -> Self {
        self.auth = Some(Ok(auth));
        self
    }

    /// Requires the user of `BROKER_USERNAME` and `BROKER_PASSWORD`.
    ///
    /// # Errors
    /// One of them is not set.
    pub fn auth_from_env(self) -> Result<Self, BuildError> {
        let variable = |name| std::env::var(name).map_err(|_| BuildError::NoCredentials(name));
        let (user, password) = (variable("BROKER_USERNAME")?, variable("BROKER_PASSWORD")?);
        Ok(self.basic_auth(&user, password))
    }

    /// Disables authentication. For tests, and behind a proxy that authenticates.
    #[must_use]
    pub fn without_auth(mut self) -> Self {
        self.auth = Some(Ok(Auth::open()));
        self
    }

    /// Adds a platform with its own records and users under a path prefix. The platform at `/` is served too if the
    /// broker itself has authentication.
    #[must_use]
    pub fn platform(mut self, platform: Platform) -> Self {
        self.platforms.push(platform);
        self
    }

    /// Serves the administration API, under its own prefix and with its own credentials.
    #[must_use]
    pub fn admin(mut self, admin: Admin) -> Self {
        self.admin = Some(admin);
        self
    }

    /// Lets operators download copies of the store while it is in use. `folder`: directory for temporary copies.
    #[must_use]
    pub fn backup(mut self, store: Arc<dyn Backup>, folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        self.backup = Some(BackupSource { store, folder });
        self
    }

    /// Sets the realm, which separates this broker's records from others in the same store.
    #[must_use]
    pub fn realm(mut self, name: &str) -> Self {
        name.clone_into(&mut self.realm);
        self
    }

    /// Serves over TLS.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Changes settings.
    #[must_use]
    pub fn settings(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Replaces an endpoint.
    #[must_use]
    pub fn replace(mut self, endpoint: Endpoint, with: impl Replacement) -> Self {
        self.replaced.insert(endpoint, Arc::new(with));
        self
    }

    /// Sets the metrics page of the administration API, in the text format of Prometheus.
    #[must_use]
    pub fn metrics_page(mut self, page: impl Fn() -> String + Send + Sync + 'static) -> Self {
        self.metrics_page = Some(Arc::new(page));
        self
    }

    /// Serves the metrics at `/metrics` without authentication.
    #[must_use]
    pub fn public_metrics(mut self) -> Self {
        self.public_metrics = true;
        self
    }

    /// Starts the engine, which resumes unfinished operations.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub async fn start(self) -> Result<BrokerHandle, BuildError> {
        let (store, keys) = self.store.ok_or(BuildError::NoStore)?;
        check_usable(store.as_ref()).await?;
        self.backup.iter().for_each(BackupSource::remove_leftovers);
        let clock = StoreClock::read(store.as_ref()).await;
        let clock = Arc::new(clock.map_err(|error| BuildError::Store(error.into()))?);
        let observed = Arc::new(MeteredStore::new(store));
        let store: Arc<dyn Store> = observed.clone();
        let platforms =
            check_platforms(with_root_platform(self.platforms, self.auth, self.realm)?)?;
        let tls = self.tls.map(TlsAcceptor::new).transpose()?.map(Arc::new);
        platforms.iter().for_each(|it| it.auth.prefetch_keys());
        let catalog = Arc::new(LiveCatalog::new(
            self.catalog,
            self.services,
            self.with_catalog_source,
        )?);
        let (keys, settings) = (Arc::new(keys), Arc::new(self.settings));
        let mut realm_contexts = Vec::with_capacity(platforms.len());
        for platform in &platforms {
            let records = Arc::new(Documents {
                store: store.clone(),
                keys: keys.clone(),
                realm: platform.realm.clone(),
                clock: clock.clone(),
            });
            realm_contexts.push(realm_context(records, &catalog, &settings).await?);
        }
        let extensions = extensions(self.tasks, &store, &keys, &realm_contexts).await?;
        let (tasks, extra) = extensions.unzip();
        realm_contexts.extend(extra);
        let engine = engine::start(store, &realm_contexts, &settings, tasks.clone()).await?;
        let health = watch_health(&realm_contexts, observed, &engine);
        let replaced = Arc::new(self.replaced);
        let draining = CancellationToken::new();
        let shared_limits = SharedLimits::new(settings.limits.clone(), draining.clone());
        let served = |(platform, realm_context): (CheckedPlatform, Arc<RealmContext>)| {
            let requests = RequestHandler {
                realm_context,
                engine: engine.clone(),
            };
            let admission = Admission::new(shared_limits.clone());
            platform_route(platform, requests, replaced.clone(), admission)
        };
        let platforms: Vec<PlatformRoute> = platforms
            .into_iter()
            .zip(realm_contexts)
            .map(served)
            .collect();
        let admin = self.admin;
        let admin = admin.map(|it| it.build(&platforms, self.backup, &draining));
        let admin = admin.transpose()?;
        let app = App {
            platforms,
            engine,
            catalog,
            settings,
            tls,
            draining,
            admin,
            probes: Probes {
                health: health.clone(),
                metrics: self.metrics_page,
                public_metrics: self.public_metrics,
            },
            health,
            tasks,
        };
        Ok(BrokerHandle(Arc::new(app)))
    }

    /// Starts the broker as a plain router: nest it, add layers, call it in tests.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub async fn into_router(self) -> Result<axum::Router, BuildError> {
        Ok(self.start().await?.router())
    }
}

/// Handle of a running broker. Cheap to clone.
#[derive(Clone)]
pub struct BrokerHandle(pub(crate) Arc<App>);

impl BrokerHandle {
    /// The broker as a router.
    pub fn router(&self) -> axum::Router {
        router(&self.0)
    }

    /// Replaces the whole catalog. Missing plans are withdrawn; instances keep their copy.
    ///
    /// # Errors
    /// The catalog cannot be used; the old one stays.
    pub async fn replace_catalog(&self, catalog: Catalog) -> Result<(), BuildError> {
        let updates = self.0.catalog.updates_of(&catalog)?;
        self.0
            .replace_catalog(updates, CatalogPreconditions::new())
            .await
    }

    /// Authentication of the platform at a prefix, `/` for the default one. Change it with [`Auth::replace`].
    pub fn auth(&self, prefix: &str) -> Option<Auth> {
        let prefix = Prefix::parse(prefix).ok()?;
        let served = self.0.platforms.iter().find(|it| it.prefix == prefix);
        served.map(|it| it.http.auth.clone())
    }

    /// Number of operations that run in this process.
    pub fn operations_running(&self) -> usize {
        self.0.engine.operations_running()
    }

    /// Ends long requests, stops claiming, waits for running operations, and releases the rest.
    pub async fn shut_down(&self) {
        self.0.draining.cancel();
        self.0.engine.shut_down(self.0.settings.drain).await;
    }
}

/// The API of one platform at its prefix.
fn platform_route(
    platform: CheckedPlatform,
    requests: RequestHandler,
    replaced: Arc<HashMap<Endpoint, Arc<dyn Replacement>>>,
    admission: Admission,
) -> PlatformRoute {
    let http = PlatformApi {
        requests,
        auth: platform.auth,
        replaced,
        admission,
        extension_routes: OnceLock::new(),
    };
    let prefix = platform.prefix;
    PlatformRoute { prefix, http }
}

/// Adds the platform at the root, if the broker itself has authentication.
fn with_root_platform(
    mut platforms: Vec<Platform>,
    auth: Option<Result<Auth, AuthConfigError>>,
    realm: String,
) -> Result<Vec<Platform>, BuildError> {
    match auth {
        None if platforms.is_empty() => return Err(BuildError::NoAuth),
        None => {}
        auth @ Some(_) => platforms.push(Platform {
            prefix: "/".to_owned(),
            realm: Some(realm),
            auth,
        }),
    }
    Ok(platforms)
}

/// Starts the health checks of a broker.
fn watch_health(
    realm_contexts: &[Arc<RealmContext>],
    store: Arc<MeteredStore>,
    engine: &Engine,
) -> Arc<BrokerHealth> {
    let health = Arc::new(BrokerHealth::default());
    if let Some(realm_context) = realm_contexts.first() {
        tokio::spawn(health::watch(HealthWatch {
            health: health.clone(),
            store,
            engine: engine.clone(),
            read_probe: realm_context.records.key_check_key(),
            probe: realm_context.records.write_probe_key(),
            clock: realm_context.records.clock.clone(),
        }));
    }
    health
}

/// Builds the context of a realm: verifies its keys, stores the plan copies, plans its cleanup.
async fn realm_context(
    records: Arc<Documents>,
    catalog: &Arc<LiveCatalog>,
    settings: &Arc<Settings>,
) -> Result<Arc<RealmContext>, BuildError> {
    verify_keys(&records).await?;
    catalog.store_all_copies(&records).await?;
    let queue = match &settings.host {
        None => queue_of(&records.realm),
        Some(host) => host_queue_of(&records.realm, host),
    };
    let realm_context = RealmContext {
        records,
        catalog: catalog.clone(),
        settings: settings.clone(),
        inflight: InflightCache::default(),
        queue,
    };
    let planned = cleanup::plan_all(&realm_context).await;
    planned.map_err(|error| BuildError::Store(error.into()))?;
    Ok(Arc::new(realm_context))
}

/// Opens the realm of periodic tasks and plans them. Besides them the realm has scheduled cleanup.
async fn extensions(
    tasks: Vec<Arc<dyn PeriodicTask>>,
    store: &Arc<dyn Store>,
    keys: &Arc<KeyRing>,
    platforms: &[Arc<RealmContext>],
) -> Result<Option<(Arc<PeriodicTasks>, Arc<RealmContext>)>, BuildError> {
    let (false, Some(first)) = (tasks.is_empty(), platforms.first()) else {
        return Ok(None);
    };
    let records = Arc::new(Documents {
        store: store.clone(),
        keys: keys.clone(),
        realm: Realm::new(COLLECTIONS_REALM)?,
        clock: first.records.clock.clone(),
    });
    verify_keys(&records).await?;
    let queue = queue_of(&records.realm);
    // A failed write must be reported before the claim is lost, too.
    let write_timeout = first.settings.lease / 2;
    let tasks = PeriodicTasks::new(tasks, records.clone(), queue.clone(), write_timeout);
    let realm_context = RealmContext {
        records,
        catalog: first.catalog.clone(),
        settings: first.settings.clone(),
        inflight: InflightCache::default(),
        queue,
    };
    let store_error = |error: CommitError| BuildError::Store(error.into());
    cleanup::plan_all(&realm_context)
        .await
        .map_err(store_error)?;
    tasks.plan_all().await.map_err(store_error)?;
    Ok(Some((Arc::new(tasks), Arc::new(realm_context))))
}
