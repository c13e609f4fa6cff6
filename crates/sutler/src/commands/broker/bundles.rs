//! Bundles of `sutler broker`: opened from the configuration, folders watched, versions and runs cleaned up.
//!
//! The administration page is in `bundles/admin_page.rs`, registries are in `bundles/registries.rs`.

mod admin_page;
mod registries;

use crate::BoxError;
use admin_page::FolderBundlesPage;
use registries::Registries;
use secrecy::SecretString;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutler::{BrokerConfig, BundleSecret, BundlesConfig, RunNetwork, StoreUrl};
use sutler_broker::{BrokerHandle, Collections};
use sutler_bundle::{Offer, RunLimits};
use sutler_bundle_service::{
    ApbCompatRoutes, BundleFolders, BundleService, CatalogPublisher, OfferSettings, OperatorSecret,
    REGISTRY_RECORDS, Runners, ServiceParts, Snapshot, VersionStore,
};
use sutler_journal::Store;
use sutler_osb::Catalog;
use sutler_runner::{
    ContainerRunner, ContainerSettings, Network, ProcessRunner, ProcessSettings, RegistryLogin,
    RunUser, Runner, WorkDir,
};

/// How long a bundle must be missing before it is withdrawn: editors and checkouts put it back sooner.
const WITHDRAWN_AFTER: Duration = Duration::from_secs(3);
/// Interval between two sweeps of unused versions.
const SWEEP_EVERY: Duration = Duration::from_secs(3600);

/// The configured bundles, and everything that runs them.
pub(super) struct BundlesRuntime {
    pub(super) service: Arc<BundleService>,
    folders: BundleFolders,
    offered: Arc<Snapshot>,
    pub(super) shown: FolderBundlesPage,
    every: Duration,
    shared: bool,
    /// Store of bundle versions.
    version_store: Arc<VersionStore>,
    pub(super) registries: Option<Registries>,
    /// Publishes the bundles of registries; set once the broker runs.
    publisher: Option<Arc<CatalogPublisher>>,
    /// Whether the paths of Automation Broker are served.
    compatible: bool,
    /// Working directory; locked for as long as the broker runs.
    work: WorkDir,
}

/// Opens the configured bundles, and reads their folders for the first time.
pub(super) fn open(config: &BrokerConfig) -> Result<Option<BundlesRuntime>, BoxError> {
    let Some(configured) = &config.bundles else {
        return Ok(None);
    };
    let work = WorkDir::open(&configured.work.0)?;
    let version_store = Arc::new(VersionStore::open(work.path())?);
    let settings = ProcessSettings {
        user: user(configured),
        ..ProcessSettings::new(work.path().to_owned())
    };
    if let Some(advice) = shared_user(&settings.user) {
        tracing::warn!("{advice}");
    }
    let secrets = secrets(&configured.secrets)?;
    let roots = configured.all_folders().map(|it| it.0.clone()).collect();
    let folders = BundleFolders::new(roots, version_store.clone(), offers(configured));
    let mut folders = folders.withdrawn_after(WITHDRAWN_AFTER);
    let offered = Arc::new(folders.look());
    let shared = matches!(config.store.url, StoreUrl::Server(_));
    let service = Arc::new(BundleService::new(ServiceParts {
        version_store: version_store.clone(),
        runners: Arc::new(Runners {
            processes: Arc::new(ProcessRunner::open(settings)?),
            containers: containers(configured, &work)?,
        }),
        secrets,
        limits: limits(configured),
        share_provision_credentials: configured.compat.share_provision_credentials,
        host: shared.then(|| work.host().to_owned()),
    }));
    service.offer(offered.clone());
    log_findings(&offered);
    Ok(Some(BundlesRuntime {
        service,
        folders,
        shown: FolderBundlesPage::new(offered.clone()),
        offered,
        every: configured.look_every.0,
        shared,
        version_store,
        registries: registries::open(config, offers(configured))?,
        publisher: None,
        compatible: configured.compat.is_on(),
        work,
    }))
}

impl BundlesRuntime {
    /// The catalog at the start.
    pub(super) fn catalog(&self) -> Result<Catalog, BoxError> {
        let faults = |it: sutler_osb::CatalogFaults| it.to_string();
        Ok(self.offered.catalog().map_err(faults)?)
    }

    /// Opens registries that are no longer configured but still have records in the store, so that their instances
    /// are served and their records are cleaned up.
    pub(super) async fn load_unconfigured_registries(
        &mut self,
        config: &BrokerConfig,
        store: &dyn Store,
    ) -> Result<(), BoxError> {
        let Some(configured) = config
            .bundles
            .as_ref()
            .filter(|_| self.registries.is_none())
        else {
            return Ok(());
        };
        if Collections::has_any(store, &REGISTRY_RECORDS).await? {
            self.registries = Some(registries::open_any(config, offers(configured))?);
        }
        Ok(())
    }

    /// The name of this host if replicas share the store: a run is continued on the host that started it.
    pub(super) fn host(&self) -> Option<String> {
        self.shared.then(|| self.work.host().to_owned())
    }

    /// Publishes the bundles of registries; called before the first request.
    pub(super) async fn start_publishing(
        &mut self,
        running: &BrokerHandle,
    ) -> Result<(), BoxError> {
        if let Some(registries) = &self.registries {
            let (version_store, service) = (self.version_store.clone(), self.service.clone());
            let folders = self.offered.clone();
            let publisher = registries.start_publishing(running, version_store, service, folders);
            self.publisher = Some(publisher.await?);
        }
        if self.compatible {
            running.add_routes(Arc::new(ApbCompatRoutes::new(self.publisher.clone())));
        }
        Ok(())
    }

    /// Watches folders, follows registries and cleans up after runs, for as long as the broker runs.
    pub(super) async fn run_background(self, running: BrokerHandle) {
        let service = self.service.clone();
        let fates = Arc::new(running.clone());
        let sweeps = sweep_versions(service.clone(), running.clone());
        let publisher = self.publisher.clone();
        let follows = async move {
            if let Some(publisher) = publisher {
                publisher.follow().await;
            }
        };
        let looks = self.watch_folders(running);
        tokio::join!(service.reap(fates), sweeps, follows, looks);
    }

    async fn watch_folders(mut self, running: BrokerHandle) {
        let _held = self.work;
        let mut due = false;
        loop {
            tokio::time::sleep(self.every).await;
            let looked = tokio::task::spawn_blocking(move || {
                let snapshot = self.folders.look();
                (self.folders, snapshot)
            });
            // Reading folders does not panic: only the end of the process interrupts it.
            let Ok((folders, snapshot)) = looked.await else {
                return;
            };
            self.folders = folders;
            let like = snapshot.is_like(&self.offered);
            if like && !due {
                continue;
            }
            if !like {
                log_findings(&snapshot);
                self.offered = Arc::new(snapshot);
                self.shown.replace(self.offered.clone());
            }
            let offered = offer(
                &running,
                &self.service,
                self.publisher.as_ref(),
                &self.offered,
            );
            let offered = offered.await;
            // Retried at the next interval: the store may answer then.
            due = offered.is_err();
            if let Err(error) = offered {
                tracing::error!(%error, "the bundles cannot be offered, the previous catalog stays");
            }
        }
    }
}

/// Publishes the bundles of folders, together with those of registries.
async fn offer(
    running: &BrokerHandle,
    service: &BundleService,
    publisher: Option<&Arc<CatalogPublisher>>,
    folders: &Arc<Snapshot>,
) -> Result<(), String> {
    if let Some(publisher) = publisher {
        let offered = publisher.offer_folders(folders.clone()).await;
        return offered.map_err(|error| error.to_string());
    }
    let catalog = folders.catalog().map_err(|faults| faults.to_string())?;
    let replaced = running.replace_catalog(catalog).await;
    replaced.map_err(|error| error.to_string())?;
    service.offer(folders.clone());
    Ok(())
}

/// Removes unused versions of bundles periodically.
async fn sweep_versions(service: Arc<BundleService>, running: BrokerHandle) {
    loop {
        match service.sweep(&running, Instant::now()).await {
            Ok(swept) => {
                for digest in swept {
                    tracing::info!(%digest, "an unused version of a bundle was removed");
                }
            }
            Err(error) => tracing::warn!(%error, "versions of bundles cannot be swept now"),
        }
        tokio::time::sleep(SWEEP_EVERY).await;
    }
}

/// Logs the offered bundles and the faults of the others.
fn log_findings(snapshot: &Snapshot) {
    for fault in &snapshot.faults {
        tracing::error!("bundle: {fault}");
    }
    for listed in &snapshot.listed {
        let manifest = &listed.bundle.manifest;
        let version = manifest.bundle_version.as_deref().unwrap_or("-");
        let digest = &listed.bundle.digest;
        tracing::info!(bundle = %manifest.name, version, %digest, "a bundle is offered");
    }
}

fn user(configured: &BundlesConfig) -> RunUser {
    match configured.user {
        None => RunUser::unprivileged(),
        Some(uid) => RunUser::Fixed {
            uid,
            gid: configured.group.unwrap_or(uid),
        },
    }
}

/// Warning for runs that share the user of the broker.
fn shared_user(user: &RunUser) -> Option<&'static str> {
    match user {
        RunUser::Own => Some(
            "bundles run as processes with the user of the broker: they can read its files, the keys of its \
             store too. Start the broker as root, so that each run has a user of its own, or run images",
        ),
        RunUser::Fixed { .. } | RunUser::Range { .. } => None,
    }
}

/// The runner of images, if an engine is configured.
fn containers(
    configured: &BundlesConfig,
    work: &WorkDir,
) -> Result<Option<Arc<dyn Runner>>, BoxError> {
    let Some(engine) = &configured.container else {
        return Ok(None);
    };
    let variable = |name: &str| std::env::var(name).ok();
    let mut logins = Vec::with_capacity(engine.logins.len());
    for login in &engine.logins {
        let describe = |reason| format!("the password for {} {reason}", login.registry);
        logins.push(RegistryLogin {
            registry: login.registry.clone(),
            user: login.user.clone(),
            password: login.password.reveal(&variable).map_err(describe)?,
        });
    }
    let usual = ContainerSettings::new(work.path().to_owned(), engine.socket.0.clone());
    let settings = ContainerSettings {
        owner: work.host().to_owned(),
        network: match engine.network {
            RunNetwork::None => Network::None,
            RunNetwork::Bridge => Network::Bridge,
            RunNetwork::Host => Network::Host,
        },
        logins,
        ..usual
    };
    Ok(Some(Arc::new(ContainerRunner::open(settings)?)))
}

fn offers(configured: &BundlesConfig) -> OfferSettings {
    let all = match &configured.compat.registry {
        None => Offer::default(),
        Some(registry) => Offer::compatible(registry),
    };
    let mut answered: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for secret in &configured.secrets {
        for bundle in &secret.bundles {
            let keys = secret.keys.iter().map(|it| it.key.clone());
            answered.entry(bundle.clone()).or_default().extend(keys);
        }
    }
    OfferSettings { all, answered }
}

fn limits(configured: &BundlesConfig) -> RunLimits {
    let limits = &configured.limits;
    RunLimits {
        deadline: limits.deadline.0,
        memory: limits.memory.0 as u64,
        output: limits.output.0 as u64,
        open_files: limits.open_files,
        processes: limits.processes,
    }
}

fn secrets(configured: &[BundleSecret]) -> Result<Vec<OperatorSecret>, BoxError> {
    let variable = |name: &str| std::env::var(name).ok();
    let mut persistent = Vec::with_capacity(configured.len());
    for secret in configured {
        let mut keys: BTreeMap<String, SecretString> = BTreeMap::new();
        for it in &secret.keys {
            let value = it.value.reveal(&variable);
            let describe = |reason| format!("the secret {}, key {}, {reason}", secret.name, it.key);
            keys.insert(it.key.clone(), value.map_err(describe)?);
        }
        persistent.push(OperatorSecret {
            name: secret.name.clone(),
            bundles: secret.bundles.iter().cloned().collect(),
            keys,
        });
    }
    Ok(persistent)
}

#[cfg(test)]
mod tests {
    use super::shared_user;
    use sutler_runner::RunUser;

    #[test]
    fn runs_with_the_brokers_own_user_are_warned_of() {
        let warned = shared_user(&RunUser::Own).unwrap_or_default();
        assert!(warned.contains("as root"), "{warned}");
        let fixed = RunUser::Fixed { uid: 7, gid: 7 };
        assert_eq!(shared_user(&fixed), None);
        let each = RunUser::Range { first: 7, count: 7 };
        assert_eq!(shared_user(&each), None);
    }
}
