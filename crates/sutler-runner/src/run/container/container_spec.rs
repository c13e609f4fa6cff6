//! Directory of a container run, and the description of its container.
//!
//! Paths inside of containers are those of Automation Broker's contract where it has any. Requests to the engine
//! are `engine.rs`.

use super::state::{RunMarkers, WatchLimits};
use crate::ansible;
use crate::run::process::{
    RunPaths, TempDirKind, environment, make_folder, mapped_here, private, temp_dir, write_durably,
    write_secret, write_state,
};
use crate::run_spec::{RunName, RunSpec, Runnable};
use crate::runner::{Exit, RunError};
use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigLogConfig, Mount, MountType, ResourcesUlimits,
};
use jiff::Timestamp;
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock};
use rustix::process::{Resource, getrlimit};
use secrecy::SecretString;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Default grace of a run between termination and kill.
const GRACE: Duration = Duration::from_secs(10);
/// Default interval at which a run is checked if the engine does not report its end.
const LOOK_AGAIN: Duration = Duration::from_secs(15);
/// User id of runs in containers: one that no user, service or other container of the host has, so that none of them
/// can read files of runs. Engines with user namespaces map it.
const USER: u32 = 1_900_001_001;
/// User id if that range is not mapped: the one that images of bundles are built for.
const USER_OF_IMAGES: u32 = 1001;
/// Group id that images of bundles are built for.
const GROUP: u32 = 0;
/// Name of that user, for programs that do not find it in the list of users.
const USER_NAME: &str = "bundle";
/// Maximum bytes of temporary files.
const TMP_BYTES: u64 = 256 << 20;

/// Size of the engine's log in relation to the output limit: its lines are longer.
const LOG_FACTOR: u64 = 8;
/// Minimum size of the engine's log, in bytes.
const LOG_BYTES_MIN: u64 = 1 << 20;
/// Number of start locks.
const START_LOCKS: u128 = 64;
/// Maximum processes of one user of the host, over all containers.
const USER_PROCESSES_MAX: u64 = 32_768;

const VARS: &str = "/run/sutler/vars.json";
const RESULT: &str = "/run/sutler/result";
const BINDING_STATE: &str = "/run/sutler/binding-state";
const STATE: &str = "/etc/apb/state";
const SECRETS: &str = "/etc/apb-secrets";
const LAST_WORDS: &str = "/dev/termination-log";
const MODULES: &str = "/run/sutler/ansible";

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
            look_again: LOOK_AGAIN,
            environment,
            logins: Vec::new(),
        }
    }

    pub(super) fn runs(&self) -> PathBuf {
        self.work.join("containers")
    }
}

/// Paths of a run directory.
#[derive(Clone, Debug)]
pub(super) struct RunDir {
    pub(super) path: PathBuf,
}

impl RunDir {
    pub(super) fn new(runs: &Path, name: RunName) -> Self {
        Self {
            path: runs.join(name.to_string()),
        }
    }

    pub(super) fn result(&self) -> PathBuf {
        self.path.join("result")
    }

    /// Markers of the run; `None` if the directory does not exist.
    pub(super) fn marks(&self) -> io::Result<Option<RunMarkers>> {
        let Some(limits) = read::<WatchLimits>(&self.path.join("limits"))? else {
            return Ok(None);
        };
        Ok(Some(RunMarkers {
            limits,
            started: read(&self.path.join("started"))?,
            end: read(&self.path.join("end"))?,
        }))
    }

    /// Written before the engine is asked to start it, so that a run that may have started never counts as not
    /// started.
    pub(super) fn mark_start(&self) -> io::Result<()> {
        let now = serde_json::to_vec(&Timestamp::now())?;
        write_durably(&self.path, "started", &now)?;
        self.path
            .parent()
            .map_or(Ok(()), crate::run::process::sync_folder)
    }

    /// Removes the start marker: it was not started.
    pub(super) fn unmark_start(&self) -> io::Result<()> {
        absent_is_fine(fs::remove_file(self.path.join("started")))
    }

    pub(super) fn mark_end(&self, why: &Exit) -> io::Result<()> {
        write_durably(&self.path, "end", &serde_json::to_vec(why)?)
    }

    pub(super) fn unmark_end(&self) -> io::Result<()> {
        absent_is_fine(fs::remove_file(self.path.join("end")))
    }

    pub(super) fn remove_dir(&self) -> io::Result<()> {
        let gone = self.temp_dir(TempDirKind::Gone)?;
        match fs::rename(&self.path, &gone) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.and_then(|()| crate::run::process::clear(&gone)),
        }
    }

    fn temp_dir(&self, why: TempDirKind) -> io::Result<PathBuf> {
        let runs = self.path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        Ok(temp_dir(runs, why))
    }
}

/// Waits until no other process starts this run. A few locks serve all runs.
pub(super) fn alone(work: &Path, name: RunName) -> io::Result<fs::File> {
    let locks = work.join("starts");
    fs::create_dir_all(&locks)?;
    // Runs of other users must not be able to hold the locks.
    fs::set_permissions(&locks, fs::Permissions::from_mode(0o700))?;
    let slot = name.operation.as_u128() % START_LOCKS;
    let lock = fs::File::create(locks.join(slot.to_string()))?;
    flock(&lock, FlockOperation::LockExclusive)?;
    Ok(lock)
}

fn absent_is_fine(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// Creates the directory of a run in one step, unless it exists.
pub(super) fn lay_out(
    settings: &ContainerSettings,
    spec: &RunSpec,
    folder: &RunDir,
) -> io::Result<()> {
    if folder.path.is_dir() {
        return Ok(());
    }
    let new = RunDir {
        path: folder.temp_dir(TempDirKind::New)?,
    };
    let filled = fill(settings, spec, &new).and_then(|()| {
        let renamed =
            rustix::fs::renameat_with(CWD, &new.path, CWD, &folder.path, RenameFlags::NOREPLACE);
        Ok(renamed?)
    });
    match filled {
        Ok(()) => Ok(()),
        Err(fault) => {
            crate::run::process::clear(&new.path)?;
            match fault.kind() {
                io::ErrorKind::AlreadyExists => Ok(()),
                _ => Err(fault),
            }
        }
    }
}

fn fill(settings: &ContainerSettings, spec: &RunSpec, folder: &RunDir) -> io::Result<()> {
    let at = |name: &str| folder.path.join(name);
    make_folder(&folder.path, 0o711)?;
    let millis = u64::try_from(spec.limits.deadline.as_millis()).unwrap_or(u64::MAX);
    let limits = WatchLimits {
        deadline_ms: millis,
        output_bytes: spec.limits.output,
    };
    private(&at("limits"))?.write_all(&serde_json::to_vec(&limits)?)?;
    private(&at("vars.json"))?.write_all(&serde_json::to_vec(&spec.vars.0)?)?;
    private(&at("termination-log"))?;
    for (name, state) in [
        ("state", &spec.state),
        ("binding-state", &spec.binding_state),
    ] {
        make_folder(&at(name), 0o700)?;
        if let Some(state) = state {
            write_state(&at(name), state)?;
        }
    }
    make_folder(&at("secrets"), 0o700)?;
    for secret in &spec.secrets {
        write_secret(&at("secrets"), secret)?;
    }
    make_folder(&at("result"), 0o700)?;
    if rustix::process::geteuid().is_root() {
        let (uid, gid) = settings.user;
        for name in [
            "vars.json",
            "termination-log",
            "state",
            "binding-state",
            "secrets",
            "result",
        ] {
            crate::run::process::chown_tree(&at(name), uid, gid)?;
        }
    }
    // The mounts give access to this directory only.
    fs::set_permissions(&folder.path, fs::Permissions::from_mode(0o711))
}

/// Description of the container of a run.
pub(super) fn container(
    settings: &ContainerSettings,
    modules: &Path,
    spec: &RunSpec,
    folder: &RunDir,
) -> Result<ContainerCreateBody, RunError> {
    let Runnable::Image {
        reference,
        inline_vars,
    } = &spec.runnable
    else {
        return Err(RunError::Refused(
            "A folder is no image: pack it first.".to_owned(),
        ));
    };
    let vars = match inline_vars {
        true => serde_json::Value::Object(spec.vars.0.clone()).to_string(),
        false => format!("@{VARS}"),
    };
    let action = spec.action.as_str().to_owned();
    let mut labels: HashMap<String, String> = HashMap::new();
    for (name, value) in &spec.labels {
        labels.insert(format!("sutler.{name}"), value.clone());
    }
    labels.insert("sutler.run".to_owned(), spec.name.to_string());
    labels.insert("sutler.owner".to_owned(), settings.owner.clone());
    labels.insert("sutler.action".to_owned(), action.clone());
    let (uid, gid) = settings.user;
    Ok(ContainerCreateBody {
        image: Some(reference.clone()),
        cmd: Some(vec![action, "--extra-vars".to_owned(), vars]),
        env: Some(variables(settings, spec)),
        user: Some(format!("{uid}:{gid}")),
        labels: Some(labels),
        host_config: Some(host_config(settings, modules, spec, folder)),
        ..ContainerCreateBody::default()
    })
}

fn variables(settings: &ContainerSettings, spec: &RunSpec) -> Vec<String> {
    let places = RunPaths {
        bundle: None,
        scratch: Path::new("/tmp"),
        result: Path::new(RESULT),
        vars: Path::new(VARS),
        secrets: Path::new(SECRETS),
        state: spec.state.as_ref().map(|_| Path::new(STATE)),
        binding_state: spec
            .binding_state
            .as_ref()
            .map(|_| Path::new(BINDING_STATE)),
    };
    let all = environment(spec, &settings.environment, &places);
    all.iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

fn host_config(
    settings: &ContainerSettings,
    modules: &Path,
    spec: &RunSpec,
    folder: &RunDir,
) -> HostConfig {
    let most = |limit: u64| i64::try_from(limit).unwrap_or(i64::MAX);
    let of_the_run = |name: &str, target: &str, read_only: bool| {
        mount(&folder.path.join(name), target, read_only)
    };
    let limits = &spec.limits;
    let own_processes = getrlimit(Resource::Nproc)
        .maximum
        .unwrap_or(USER_PROCESSES_MAX);
    let network = match settings.network {
        Network::None => "none",
        Network::Bridge => "bridge",
        Network::Host => "host",
    };
    HostConfig {
        mounts: Some(vec![
            of_the_run("vars.json", VARS, true),
            of_the_run("state", STATE, true),
            of_the_run("binding-state", BINDING_STATE, true),
            of_the_run("secrets", SECRETS, true),
            of_the_run("result", RESULT, false),
            of_the_run("termination-log", LAST_WORDS, false),
            mount(modules, MODULES, true),
        ]),
        network_mode: Some(network.to_owned()),
        memory: Some(most(limits.memory)),
        memory_swap: Some(most(limits.memory)),
        pids_limit: Some(most(limits.processes)),
        ulimits: Some(vec![
            ulimit("nofile", most(limits.open_files)),
            // Engines would request more than they may have. The effective limit is `pids_limit`.
            ulimit("nproc", most(own_processes.min(USER_PROCESSES_MAX))),
        ]),
        log_config: Some(log_config(limits.output)),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        readonly_rootfs: Some(true),
        tmpfs: Some(HashMap::from([(
            "/tmp".to_owned(),
            format!("rw,nosuid,nodev,mode=1777,size={TMP_BYTES}"),
        )])),
        ..HostConfig::default()
    }
}

fn mount(source: &Path, target: &str, read_only: bool) -> Mount {
    Mount {
        typ: Some(MountType::BIND),
        source: Some(source.display().to_string()),
        target: Some(target.to_owned()),
        read_only: Some(read_only),
        ..Mount::default()
    }
}

/// Log file that is removed with the container: output may contain secrets until it is read and redacted. Podman
/// maps this driver name to its own kind of file.
fn log_config(output: u64) -> HostConfigLogConfig {
    let most = output.saturating_mul(LOG_FACTOR).max(LOG_BYTES_MIN);
    HostConfigLogConfig {
        typ: Some("json-file".to_owned()),
        config: Some(HashMap::from([(
            "max-size".to_owned(),
            most.min(i64::MAX.unsigned_abs()).to_string(),
        )])),
    }
}

fn ulimit(name: &str, most: i64) -> ResourcesUlimits {
    ResourcesUlimits {
        name: Some(name.to_owned()),
        soft: Some(most),
        hard: Some(most),
    }
}
