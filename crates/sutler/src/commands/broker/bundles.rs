//! Bundles behind `sutler broker`: opened from the configuration, looked at again and again, tended.

use secrecy::SecretString;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use sutler::{BundleSecret, Bundles as Configured, Config, RunNetwork, StoreUrl};
use sutler_broker::Running;
use sutler_bundle::{
    BundleService, ContainerRunner, ContainerSettings, Folders, KeptSecret, Limits, Network, Offer,
    Offers, Parts, ProcessRunner, ProcessSettings, RegistryLogin, RunUser, Runner, Runners, Shelf,
    Snapshot, Work,
};
use sutler_osb::Catalog;

type Fault = Box<dyn std::error::Error>;

/// Bundles as they are configured.
pub(super) struct Bundles {
    pub(super) service: Arc<BundleService>,
    folders: Folders,
    offered: Arc<Snapshot>,
    every: Duration,
    shared: bool,
    /// Held for as long as the broker runs.
    work: Work,
}

/// Opens what is configured, and looks at it for the first time.
pub(super) fn open(config: &Config) -> Result<Option<Bundles>, Fault> {
    let Some(configured) = &config.bundles else {
        return Ok(None);
    };
    let work = Work::open(&configured.work.0)?;
    let shelf = Arc::new(Shelf::open(work.path())?);
    let settings = ProcessSettings {
        user: user(configured),
        ..ProcessSettings::new(work.path().to_owned())
    };
    let secrets = secrets(&configured.secrets)?;
    let roots = configured.all_folders().map(|it| it.0.clone()).collect();
    let mut folders = Folders::new(roots, shelf.clone(), offers(configured));
    let offered = Arc::new(folders.look());
    let shared = matches!(config.store.url, StoreUrl::Server(_));
    let service = Arc::new(BundleService::new(Parts {
        shelf,
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
    tell(&offered);
    Ok(Some(Bundles {
        service,
        folders,
        offered,
        every: configured.look_every.0,
        shared,
        work,
    }))
}

impl Bundles {
    /// What is offered at the start.
    pub(super) fn catalog(&self) -> Result<Catalog, Fault> {
        let faults = |it: sutler_osb::CatalogFaults| it.to_string();
        Ok(self.offered.catalog().map_err(faults)?)
    }

    /// This host, where others share the store: runs are found where they were started.
    pub(super) fn host(&self) -> Option<String> {
        self.shared.then(|| self.work.host().to_owned())
    }

    /// Looks at the folders again and again, and removes what runs leave, for as long as the broker runs.
    pub(super) async fn tend(self, running: Running) {
        let service = self.service.clone();
        let fates = Arc::new(running.clone());
        tokio::join!(service.reap(fates), self.look_again(running));
    }

    async fn look_again(mut self, running: Running) {
        let _held = self.work;
        let mut due = false;
        loop {
            tokio::time::sleep(self.every).await;
            let looked = tokio::task::spawn_blocking(move || {
                let snapshot = self.folders.look();
                (self.folders, snapshot)
            });
            let Ok((folders, snapshot)) = looked.await else {
                return;
            };
            self.folders = folders;
            let like = snapshot.is_like(&self.offered);
            if like && !due {
                continue;
            }
            if !like {
                tell(&snapshot);
                self.offered = Arc::new(snapshot);
            }
            let catalog = match self.offered.catalog() {
                Ok(catalog) => catalog,
                Err(faults) => {
                    tracing::error!(
                        "the bundles make no catalog, what was offered stays: {faults}"
                    );
                    continue;
                }
            };
            let replaced = running.replace_catalog(catalog).await;
            // A store that does not answer now may do so next time.
            due = replaced.is_err();
            match replaced {
                Ok(()) => self.service.offer(self.offered.clone()),
                Err(error) => {
                    tracing::error!(%error, "the bundles cannot be offered, what was offered stays");
                }
            }
        }
    }
}

/// What is offered, and what is wrong with the rest.
fn tell(snapshot: &Snapshot) {
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

fn user(configured: &Configured) -> RunUser {
    match configured.user {
        None => RunUser::unprivileged(),
        Some(uid) => RunUser::Fixed {
            uid,
            gid: configured.group.unwrap_or(uid),
        },
    }
}

/// Who runs images, where there is an engine.
fn containers(configured: &Configured, work: &Work) -> Result<Option<Arc<dyn Runner>>, Fault> {
    let Some(engine) = &configured.container else {
        return Ok(None);
    };
    let variable = |name: &str| std::env::var(name).ok();
    let mut logins = Vec::with_capacity(engine.logins.len());
    for login in &engine.logins {
        let told = |reason| format!("the password for {} {reason}", login.registry);
        logins.push(RegistryLogin {
            registry: login.registry.clone(),
            user: login.user.clone(),
            password: login.password.reveal(&variable).map_err(told)?,
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

fn offers(configured: &Configured) -> Offers {
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
    Offers { all, answered }
}

fn limits(configured: &Configured) -> Limits {
    let limits = &configured.limits;
    Limits {
        deadline: limits.deadline.0,
        memory: limits.memory.0 as u64,
        output: limits.output.0 as u64,
        open_files: limits.open_files,
        processes: limits.processes,
    }
}

fn secrets(configured: &[BundleSecret]) -> Result<Vec<KeptSecret>, Fault> {
    let variable = |name: &str| std::env::var(name).ok();
    let mut kept = Vec::with_capacity(configured.len());
    for secret in configured {
        let mut keys: BTreeMap<String, SecretString> = BTreeMap::new();
        for it in &secret.keys {
            let value = it.value.reveal(&variable);
            let told = |reason| format!("the secret {}, key {}, {reason}", secret.name, it.key);
            keys.insert(it.key.clone(), value.map_err(told)?);
        }
        kept.push(KeptSecret {
            name: secret.name.clone(),
            bundles: secret.bundles.iter().cloned().collect(),
            keys,
        });
    }
    Ok(kept)
}
