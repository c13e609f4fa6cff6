//! Runs bundles as processes of this host, each under a supervisor that outlives the broker.
//!
//! Everything known of a run is in its directory (`process/run_dir.rs`); `process/run_markers.rs` interprets it.
//! The supervisor is `process/supervise.rs`.

mod job;
mod kill;
mod launch;
mod process_tree;
mod run_dir;
mod run_markers;
mod shutdown_timeline;
mod supervise;
mod supervisor_binary;
mod temp_dirs;
mod zombies;

#[cfg(feature = "containers")]
pub(crate) use job::{RunPaths, environment, mapped_here};
#[cfg(feature = "containers")]
pub(crate) use run_dir::{clear, make_folder, private, write_secret, write_state};
#[cfg(feature = "containers")]
pub(crate) use run_markers::{sync_folder, write_durably};
#[cfg(feature = "containers")]
pub(crate) use supervise::chown_tree;
#[cfg(feature = "containers")]
pub(crate) use temp_dirs::{TempDirKind, sweep, temp_dir};

pub use job::RunUser;
pub use run_dir::create_traversable_dir;
pub use supervise::{SUPERVISOR, run_supervisor};
pub use supervisor_binary::Supervisor;

use crate::ansible;
use crate::run::pending_starts::PendingStarts;
use crate::run::tail::Tail;
use crate::run_result::{ResultDir, RunResult};
use crate::run_spec::{RunName, RunSpec};
use crate::runner::{RunError, RunEvent, RunStatus, Runner};
use async_trait::async_trait;
use run_dir::RunDir;
use run_markers::RunVerdict;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use zombies::Zombies;

/// Default grace of a run between termination and kill.
const GRACE: Duration = Duration::from_secs(10);
/// Additional time of a supervisor before it is killed itself.
const SUPERVISOR_SLACK: Duration = Duration::from_secs(10);
/// Poll interval for runs whose end cannot be waited for.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Poll interval for all other runs.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// Variables of the broker's environment that are passed to runs.
const PASSED_ON: [&str; 6] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Settings of the process runner.
#[derive(Clone, Debug)]
pub struct ProcessSettings {
    /// Parent of run directories. Other users must be able to traverse it.
    pub work: PathBuf,
    /// Executable of supervisors.
    pub supervisor: Supervisor,
    /// User of the runs.
    pub user: RunUser,
    /// Grace of a run between termination and kill.
    pub grace: Duration,
    /// Environment variables of every run.
    pub environment: BTreeMap<String, String>,
}

impl ProcessSettings {
    /// Default settings: this executable supervises, runs are unprivileged, proxy variables are passed to runs.
    #[must_use]
    pub fn new(work: PathBuf) -> Self {
        let own = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("sutler"));
        let path =
            std::env::var("PATH").unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".to_owned());
        let mut environment = passed_on();
        environment.insert("PATH".to_owned(), path);
        Self {
            work,
            supervisor: Supervisor::of(&own),
            user: RunUser::unprivileged(),
            grace: GRACE,
            environment,
        }
    }

    fn runs(&self) -> PathBuf {
        self.work.join("runs")
    }
}

/// Environment variables of every run: language and proxies.
pub(crate) fn passed_on() -> BTreeMap<String, String> {
    let mut all = BTreeMap::from([("LANG".to_owned(), "C.UTF-8".to_owned())]);
    for name in PASSED_ON {
        if let Ok(value) = std::env::var(name) {
            all.insert(name.to_owned(), value);
        }
    }
    all
}

/// Runs bundles as processes of this host.
#[derive(Debug)]
pub struct ProcessRunner {
    settings: Arc<ProcessSettings>,
    zombies: Zombies,
    starts: PendingStarts,
}

impl ProcessRunner {
    /// Creates the working directory, and removes leftovers of interrupted starts and removals.
    ///
    /// # Errors
    /// The directory cannot be created or read.
    pub fn open(mut settings: ProcessSettings) -> Result<Self, RunError> {
        let runs = settings.runs();
        create_traversable_dir(&runs)
            .and_then(|()| temp_dirs::sweep(&runs))
            .map_err(|fault| unavailable("use", &runs, &fault))?;
        let modules = ansible::write_modules(&settings.work)
            .map_err(|fault| unavailable("use", &settings.work, &fault))?;
        for (name, value) in ansible::environment(&modules) {
            settings.environment.entry(name).or_insert(value);
        }
        Ok(Self {
            settings: Arc::new(settings),
            zombies: Zombies::default(),
            starts: PendingStarts::default(),
        })
    }

    fn folder(&self, name: RunName) -> RunDir {
        RunDir::new(&self.settings.runs(), name)
    }

    /// Runs a blocking function on a separate thread.
    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&ProcessSettings) -> Result<T, RunError> + Send + 'static,
    ) -> Result<T, RunError> {
        let settings = Arc::clone(&self.settings);
        let task = tokio::task::spawn_blocking(move || work(&settings));
        task.await.map_err(|_| {
            RunError::Unavailable("The process is shutting down: start it again.".to_owned())
        })?
    }
}

impl ProcessRunner {
    /// Waits up to this time for a run to end. Returns whether it has ended.
    async fn ends_within(&self, name: RunName, time: Duration) -> Result<bool, RunError> {
        let (lines, _) = mpsc::channel(1);
        match tokio::time::timeout(time, self.watch(name, lines)).await {
            Ok(status) => status.map(|_| true),
            Err(_) => Ok(false),
        }
    }
}

#[async_trait]
impl Runner for ProcessRunner {
    async fn status(&self, name: RunName) -> Result<RunStatus, RunError> {
        let folder = self.folder(name);
        // A pending start must end first: otherwise `NeverStarted` could be wrong a moment later.
        self.starts.finished(name).await;
        let zombies = self.zombies.clone();
        self.run_blocking(move |_| {
            let status = read_status(&folder, name)?;
            if status != RunStatus::Running {
                zombies.reap(name);
            }
            Ok(status)
        })
        .await
    }

    async fn start(&self, spec: &RunSpec) -> Result<(), RunError> {
        let spec = spec.clone();
        let under_way = self.starts.begin(spec.name);
        let zombies = self.zombies.clone();
        self.run_blocking(move |settings| {
            // Continues even if the caller does not wait.
            let _under_way = under_way;
            if let Some(child) = start(settings, &spec)? {
                zombies.expect(spec.name, child);
            }
            Ok(())
        })
        .await
    }

    async fn watch(
        &self,
        name: RunName,
        lines: mpsc::Sender<RunEvent>,
    ) -> Result<RunStatus, RunError> {
        let folder = self.folder(name);
        let mut tail = Tail::new(folder.output(), folder.result());
        loop {
            let status = self.status(name).await?;
            if status != RunStatus::Running {
                tail.rest(&lines).await;
                return Ok(status);
            }
            tokio::select! {
                // A killed supervisor may close the pipe before it releases the lock.
                _ = tokio::time::timeout(CHECK_INTERVAL, ended(&folder)) => {}
                never = tail.follow(&lines) => match never {},
            }
        }
    }

    async fn result(&self, name: RunName) -> Result<RunResult, RunError> {
        let folder = self.folder(name);
        self.run_blocking(move |_| result(&folder, name)).await
    }

    async fn stop(&self, name: RunName) -> Result<(), RunError> {
        let folder = self.folder(name);
        match self.status(name).await? {
            // Reading the status has ended all leftovers.
            RunStatus::Finished(_) | RunStatus::Lost(_) => return Ok(()),
            // If its directory was removed, only its processes are left.
            RunStatus::NeverStarted => {
                return self
                    .run_blocking(move |_| kill::kill_leftovers(name, None))
                    .await;
            }
            RunStatus::Running => {}
        }
        let at = folder.clone();
        self.run_blocking(move |_| {
            kill::request_stop(&at).map_err(|fault| unavailable("stop", &at.path, &fault))
        })
        .await?;
        if self
            .ends_within(name, self.settings.grace + SUPERVISOR_SLACK)
            .await?
        {
            return Ok(());
        }
        self.run_blocking(move |_| {
            kill::kill_supervisor(&folder);
            Ok(())
        })
        .await?;
        match self.ends_within(name, SUPERVISOR_SLACK).await? {
            true => Ok(()),
            false => Err(RunError::Unavailable(format!(
                "The supervisor of run {name} does not end although it was killed: see what holds it."
            ))),
        }
    }

    async fn remove(&self, name: RunName) -> Result<(), RunError> {
        let folder = self.folder(name);
        let zombies = self.zombies.clone();
        self.run_blocking(move |_| {
            zombies.reap(name);
            if read_status(&folder, name)? == RunStatus::Running {
                let sentence = format!("Run {name} still runs: stop it before it is removed.");
                return Err(RunError::Refused(sentence));
            }
            let gone = folder.remove_dir();
            gone.map_err(|fault| unavailable("remove", &folder.path, &fault))
        })
        .await
    }

    async fn list(&self) -> Result<Vec<RunName>, RunError> {
        self.zombies.reap_all();
        self.run_blocking(|settings| {
            let runs = settings.runs();
            let entries =
                std::fs::read_dir(&runs).map_err(|fault| unavailable("list", &runs, &fault))?;
            let names = entries.flatten().map(|entry| entry.file_name());
            let mut names: Vec<RunName> = names
                .filter_map(|name| name.to_str()?.parse().ok())
                .collect();
            names.sort_unstable();
            Ok(names)
        })
        .await
    }
}

fn read_status(folder: &RunDir, name: RunName) -> Result<RunStatus, RunError> {
    let trouble = |fault: io::Error| unavailable("read", &folder.path, &fault);
    let Some((facts, lock)) = folder.facts().map_err(trouble)? else {
        return Ok(RunStatus::NeverStarted);
    };
    let verdict = run_markers::verdict(facts, process_tree::boot());
    // `lock` is held until the end, so that no other process removes the directory meanwhile.
    let status = match verdict {
        RunVerdict::NeverStarted => RunStatus::NeverStarted,
        RunVerdict::Running => RunStatus::Running,
        RunVerdict::Finished(exit) => RunStatus::Finished(exit),
        RunVerdict::HostRestarted => RunStatus::Lost(
            "The host was restarted while the bundle ran: how far it got is not known.".to_owned(),
        ),
        RunVerdict::SupervisorDied => {
            kill::kill_leftovers(name, kill::own_user(folder))?;
            RunStatus::Lost(
                "The supervisor of the run was killed, and what it ran was ended: how far it got is not \
                 known."
                    .to_owned(),
            )
        }
    };
    drop(lock);
    Ok(status)
}

/// Starts a run, unless it exists. Returns the supervisor, which must be waited for.
fn start(settings: &ProcessSettings, spec: &RunSpec) -> Result<Option<Child>, RunError> {
    let folder = RunDir::new(&settings.runs(), spec.name);
    let made = match run_dir::create(settings, spec)? {
        Some(made) => Some(made),
        // An earlier start may have died before the supervisor began.
        None if read_status(&folder, spec.name)? == RunStatus::NeverStarted => {
            let gone = folder.remove_dir();
            gone.map_err(|fault| unavailable("remove", &folder.path, &fault))?;
            run_dir::create(settings, spec)?
        }
        None => None,
    };
    let Some((folder, lock)) = made else {
        return Ok(None);
    };
    let alive = match supervise::open_pipe(&folder.alive()) {
        Ok(alive) => alive,
        Err(fault) => {
            drop(lock);
            folder.remove_dir().unwrap_or_default();
            return Err(unavailable("use", &folder.path, &fault));
        }
    };
    let spawned = settings
        .supervisor
        .command()
        .arg(&folder.path)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(lock))
        // Watchers are notified of its end from the first moment on.
        .stdout(alive)
        .stderr(Stdio::null())
        .spawn();
    spawned.map(Some).map_err(|fault| {
        // The lock was released with the command: the run never started.
        folder.remove_dir().unwrap_or_default();
        let program = settings.supervisor.path().display();
        RunError::Unavailable(format!(
            "The supervisor {program} cannot be started: {fault}. See that it is there and may be run."
        ))
    })
}

fn result(folder: &RunDir, name: RunName) -> Result<RunResult, RunError> {
    if !matches!(
        read_status(folder, name)?,
        RunStatus::Finished(_) | RunStatus::Lost(_)
    ) {
        let sentence = format!("Run {name} has not finished: wait until it has.");
        return Err(RunError::Refused(sentence));
    }
    let results = folder.result();
    let mut result = match ResultDir::open(&results) {
        Ok(results) => results.read(),
        Err(fault) => result_unavailable(&results, &fault)?,
    };
    if let Ok(sentence) = std::fs::read_to_string(folder.failure()) {
        result.error = Some(sentence.trim().to_owned());
    }
    Ok(result)
}

/// A run that removed or replaced its result directory has no result. All other errors may be temporary.
pub(crate) fn result_unavailable(results: &Path, fault: &io::Error) -> Result<RunResult, RunError> {
    let why = match fault.kind() {
        io::ErrorKind::NotFound => "is gone",
        io::ErrorKind::NotADirectory => "is no folder any more",
        _ if fault.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            "leads elsewhere"
        }
        _ => return Err(unavailable("read", results, fault)),
    };
    let sentence = format!(
        "What the bundle gave back cannot be used: its result directory {why}; leave it as it is, and write \
         files into it."
    );
    Ok(RunResult {
        refused: vec![sentence],
        ..RunResult::default()
    })
}

/// Waits until the supervisor has ended, or for a moment if that is not possible. The supervisor holds one end of a
/// pipe for its whole life.
async fn ended(folder: &RunDir) {
    let opened = pipe::OpenOptions::new().open_receiver(folder.alive());
    let Ok(end) = opened else {
        return tokio::time::sleep(POLL_INTERVAL).await;
    };
    // The pipe does not report an end before it was opened; the lock does.
    while is_held(folder) && end.readable().await.is_ok() {
        match end.try_read(&mut [0]) {
            Err(fault) if fault.kind() == io::ErrorKind::WouldBlock => {}
            Ok(1..) => {}
            // It is about to be started, or to release the lock.
            Ok(0) | Err(_) if is_held(folder) => return tokio::time::sleep(POLL_INTERVAL).await,
            Ok(0) | Err(_) => return,
        }
    }
}

fn is_held(folder: &RunDir) -> bool {
    let facts = folder.facts();
    facts.is_ok_and(|found| found.is_some_and(|(facts, _)| facts.held))
}

fn unavailable(what: &str, path: &Path, fault: &io::Error) -> RunError {
    RunError::Unavailable(format!(
        "Cannot {what} {}: {fault}. See that the working directory of bundles is there, has room and may be \
         written to.",
        path.display()
    ))
}
