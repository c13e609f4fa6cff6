//! Settings of the container runner, with their defaults.
//!
//! Used by `container_spec.rs` and `engine.rs`; nothing here talks to an engine.

use crate::ansible;
use crate::run::process::mapped_here;
use secrecy::SecretString;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Default grace of a run between termination and kill.
const GRACE: Duration = Duration::from_secs(10);
/// Default interval at which a run is checked if the engine does not report its end.
const CHECK_INTERVAL: Duration = Duration::from_secs(15);
/// User id of runs in containers: one that no user, service or other container of the host has, so that none of them
/// can read files of runs. Engines with user namespaces map it.
const USER: u32 = 1_900_001_001;
/// User id if that range is not mapped: the one that images of bundles are built for.
const USER_OF_IMAGES: u32 = 1001;
/// Group id that images of bundles are built for.
const GROUP: u32 = 0;
/// Name of that user, for programs that do not find it in the list of users.
const USER_NAME: &str = "bundle";
/// Path of the Ansible modules in containers.
pub(super) const MODULES: &str = "/run/sutler/ansible";

/// Network of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// No network.
    None,
    /// The engine's default network.
    Bridge,
    /// The network of the host.
    Host,
}

/// Login at a registry of images.
#[derive(Clone, Debug)]
pub struct RegistryLogin {
    /// Host of the registry, with its port if it has one, as in the names of its images.
    pub registry: String,
    /// The user.
    pub user: String,
    /// The password or token.
    pub password: SecretString,
}

/// Settings of the container runner.
#[derive(Clone, Debug)]
pub struct ContainerSettings {
    /// Parent of run directories; the engine must see the same files.
    pub work: PathBuf,
    /// The engine's socket.
    pub socket: PathBuf,
    /// Owner label of containers, if several brokers use one engine.
    pub owner: String,
    /// Network of containers.
    pub network: Network,
    /// User and group id of runs.
    pub user: (u32, u32),
    /// Grace of a run between termination and kill.
    pub grace: Duration,
    /// Interval at which a run is checked if the engine does not report its end.
    pub look_again: Duration,
    /// Environment variables of every run.
    pub environment: BTreeMap<String, String>,
    /// Logins at registries.
    pub logins: Vec<RegistryLogin>,
}

impl ContainerSettings {
    /// Default settings.
    #[must_use]
    pub fn new(work: PathBuf, socket: PathBuf) -> Self {
        let owner = work.display().to_string();
        // A rootless engine maps our own user to its root: only that user can read our files.
        let user = match rustix::process::geteuid().is_root() {
            true if mapped_here(USER, 1) => (USER, GROUP),
            true => (USER_OF_IMAGES, GROUP),
            false => (0, 0),
        };
        let mut environment = crate::run::process::passed_on();
        for name in ["USER", "LOGNAME"] {
            environment.insert(name.to_owned(), USER_NAME.to_owned());
        }
        for (name, value) in ansible::environment(Path::new(MODULES)) {
            environment.insert(name, value);
        }
        Self {
            work,
            socket,
            owner,
            network: Network::Bridge,
            user,
            grace: GRACE,
            look_again: CHECK_INTERVAL,
            environment,
            logins: Vec::new(),
        }
    }

    pub(super) fn runs(&self) -> PathBuf {
        self.work.join("containers")
    }
}
