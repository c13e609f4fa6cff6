//! Runs bundles as containers, with any engine that has Docker's API on a socket of this host.
//!
//! Inputs and results of a run are files in its directory, which is mounted into the container; an engine on another
//! host is not supported. The engine's report decides the status of a run (`container/state.rs`). Requests to the
//! engine are `container/engine.rs`, run directories `container/run_dir.rs`, descriptions of containers
//! `container/container_spec.rs`, settings `container/settings.rs`.

mod container_spec;
mod engine;
mod log_stream;
mod run_dir;
mod settings;
mod state;

pub use settings::{ContainerSettings, Network, RegistryLogin};

use crate::ansible;
use crate::run::pending_starts::PendingStarts;
use crate::run::process::{create_traversable_dir, sweep};
use crate::run::tail::Tail;
use crate::run_result::{ResultDir, RunResult};
use crate::run_spec::{RunName, RunSpec, Runnable};
use crate::runner::{Exit, RunError, RunEvent, RunStatus, Runner};
use async_trait::async_trait;
use engine::Engine;
use log_stream::LogStream;
use run_dir::RunDir;
use state::{ContainerState, state_of};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Attempts of a start that another process undoes.
const START_TRIES: usize = 5;
/// Pause before a failed request to the engine is repeated.
const PAUSE: Duration = Duration::from_millis(500);
/// How long a killed container may take to end.
const KILLED: Duration = Duration::from_secs(30);

/// Runs bundles as containers.
#[derive(Clone, Debug)]
pub struct ContainerRunner {
    settings: Arc<ContainerSettings>,
    /// Folder of the Ansible modules.
    modules: Arc<Path>,
    engine: Engine,
    starts: PendingStarts,
}

impl ContainerRunner {
    /// Creates the working directory, and removes leftovers of interrupted starts and removals. The engine need not
    /// answer yet.
    ///
    /// # Errors
    /// The directory cannot be created, or there is no socket.
    pub fn open(settings: ContainerSettings) -> Result<Self, RunError> {
        let runs = settings.runs();
        create_traversable_dir(&runs)
            .and_then(|()| sweep(&runs))
            .map_err(|fault| unavailable("use", &runs, &fault))?;
        let modules = ansible::write_modules(&settings.work)
            .map_err(|fault| unavailable("use", &settings.work, &fault))?;
        let engine = Engine::new(&settings)?;
        Ok(Self {
            settings: Arc::new(settings),
            modules: Arc::from(modules),
            engine,
            starts: PendingStarts::default(),
        })
    }

    fn folder(&self, name: RunName) -> RunDir {
        RunDir::new(&self.settings.runs(), name)
    }

    async fn run_blocking<T: Send + 'static>(
        &self,
        folder: &RunDir,
        what: &'static str,
        work: impl FnOnce(&RunDir) -> io::Result<T> + Send + 'static,
    ) -> Result<T, RunError> {
        let at = folder.clone();
        let task = tokio::task::spawn_blocking(move || {
            work(&at).map_err(|fault| unavailable(what, &at.path, &fault))
        });
        task.await.map_err(|_| shutting_down())?
    }

    /// State of a run.
    async fn container_state(&self, name: RunName) -> Result<ContainerState, RunError> {
        let folder = self.folder(name);
        let (markers, container) = (
            self.run_blocking(&folder, "read", RunDir::markers).await?,
            self.engine.inspect(name).await?,
        );
        Ok(state_of(container, markers, jiff::Timestamp::now()))
    }

    /// Ends a run, and stores the reason.
    async fn end_because(&self, name: RunName, why: Exit) -> Result<(), RunError> {
        let folder = self.folder(name);
        let marked = self.run_blocking(&folder, "write to", move |folder| folder.mark_end(&why));
        if let Err(fault) = marked.await {
            // A full disk does not keep a run from being ended.
            tracing::warn!(run = %name, error = %fault, "why a run is ended cannot be written down");
        }
        match self.end(name).await? {
            true => Ok(()),
            // It ended by itself before.
            false => {
                self.run_blocking(&folder, "write to", RunDir::unmark_end)
                    .await
            }
        }
    }

    /// Terminates a container, then kills it. Returns when it is certain that it is not running; `false`: it was not
    /// running before.
    async fn end(&self, name: RunName) -> Result<bool, RunError> {
        let signalled = self.engine.signal(name, "SIGTERM").await?;
        let grace = if signalled {
            self.settings.grace
        } else {
            Duration::ZERO
        };
        if self.ends_within(name, grace).await? {
            return Ok(signalled);
        }
        self.engine.signal(name, "SIGKILL").await?;
        match self.ends_within(name, KILLED).await? {
            true => Ok(true),
            false => Err(RunError::Unavailable(format!(
                "The container of run {name} does not end although it was killed: see with the engine's own \
                 tools what holds it."
            ))),
        }
    }

    /// Waits up to this time for a container to end. Returns whether it has ended.
    async fn ends_within(&self, name: RunName, time: Duration) -> Result<bool, RunError> {
        let until = tokio::time::Instant::now() + time;
        loop {
            if self.engine.is_over(name).await? {
                return Ok(true);
            }
            let ended = tokio::time::timeout_at(until, self.engine.ended(name));
            if ended.await.is_err() {
                return self.engine.is_over(name).await;
            }
        }
    }

    /// Removes a container that was created but not started. `false`: it is running now.
    async fn undo(&self, name: RunName) -> Result<bool, RunError> {
        let folder = self.folder(name);
        // It provably never started; with this marker but without a container, it would count as lost.
        self.run_blocking(&folder, "write to", RunDir::unmark_start)
            .await?;
        let gone = self.engine.remove(name).await;
        if !matches!(gone, Ok(true)) {
            self.run_blocking(&folder, "write to", RunDir::mark_start)
                .await?;
        }
        gone
    }

    /// Reads the status, and retries while the engine does not answer, e.g. during a restart of the engine.
    async fn status_with_retries(&self, name: RunName) -> Result<RunStatus, RunError> {
        match self.status(name).await {
            Err(RunError::Unavailable(_)) => {
                tokio::time::sleep(PAUSE).await;
                self.status(name).await
            }
            answered => answered,
        }
    }

    /// Starts a run whose image is present, under the start lock.
    async fn start_alone(&self, spec: &RunSpec) -> Result<(), RunError> {
        let folder = self.folder(spec.name);
        let (settings, name) = (Arc::clone(&self.settings), spec.name);
        let _lock = self
            .run_blocking(&folder, "start", move |_| {
                run_dir::lock_start(&settings.work, name)
            })
            .await?;
        if !matches!(
            self.container_state(spec.name).await?,
            ContainerState::NotMade | ContainerState::Made
        ) {
            return Ok(());
        }
        let (settings, wanted) = (Arc::clone(&self.settings), spec.clone());
        self.run_blocking(&folder, "write", move |folder| {
            run_dir::create(&settings, &wanted, folder)
        })
        .await?;
        let started = self.create_and_start(spec, &folder).await;
        if let Err(RunError::Refused(_)) = &started
            && self.engine.remove(spec.name).await?
        {
            self.run_blocking(&folder, "remove", RunDir::remove_dir)
                .await?;
        }
        started
    }

    async fn create_and_start(&self, spec: &RunSpec, folder: &RunDir) -> Result<(), RunError> {
        for _ in 0..START_TRIES {
            match self.container_state(spec.name).await? {
                ContainerState::NotMade => {
                    let body =
                        container_spec::container(&self.settings, &self.modules, spec, folder)?;
                    self.engine.create(spec.name, body).await?;
                }
                ContainerState::Made => {
                    self.run_blocking(folder, "write to", RunDir::mark_start)
                        .await?;
                    self.engine.start(spec.name).await?;
                }
                ContainerState::Running
                | ContainerState::Overdue
                | ContainerState::Ended(_)
                | ContainerState::Lost(_) => {
                    return Ok(());
                }
            }
        }
        Err(RunError::Unavailable(format!(
            "The container of run {} goes as often as it is made: see who else uses the engine.",
            spec.name
        )))
    }
}

#[async_trait]
impl Runner for ContainerRunner {
    async fn status(&self, name: RunName) -> Result<RunStatus, RunError> {
        // A pending start must end first: otherwise `NeverStarted` could be wrong a moment later.
        self.starts.finished(name).await;
        Ok(match self.container_state(name).await? {
            ContainerState::NotMade => RunStatus::NeverStarted,
            ContainerState::Made => {
                // Its creator may be slow rather than dead: it must not start the container after this.
                match self.undo(name).await? {
                    true => RunStatus::NeverStarted,
                    false => RunStatus::Running,
                }
            }
            ContainerState::Running => RunStatus::Running,
            ContainerState::Overdue => {
                self.end_because(name, Exit::Deadline).await?;
                match self.container_state(name).await? {
                    ContainerState::Ended(exit) => RunStatus::Finished(exit),
                    _ => RunStatus::Running,
                }
            }
            ContainerState::Ended(exit) => RunStatus::Finished(exit),
            ContainerState::Lost(why) => RunStatus::Lost(why),
        })
    }

    async fn start(&self, spec: &RunSpec) -> Result<(), RunError> {
        let Runnable::Image { reference, .. } = &spec.runnable else {
            return Err(RunError::Refused(
                "A folder cannot be run as a container: pack it into an image first.".to_owned(),
            ));
        };
        if !matches!(
            self.container_state(spec.name).await?,
            ContainerState::NotMade | ContainerState::Made
        ) {
            return Ok(());
        }
        self.engine
            .pull_if_missing(reference, spec.limits.deadline)
            .await?;
        // The start continues even if the caller does not wait: the effect of an aborted request on the engine is
        // unknown.
        let (runner, spec) = (self.clone(), spec.clone());
        let under_way = self.starts.begin(spec.name);
        let task = tokio::spawn(async move {
            let _under_way = under_way;
            runner.start_alone(&spec).await
        });
        task.await.map_err(|_| shutting_down())?
    }

    async fn watch(
        &self,
        name: RunName,
        lines: mpsc::Sender<RunEvent>,
    ) -> Result<RunStatus, RunError> {
        let folder = self.folder(name);
        // Output comes from the engine; only progress is in the directory.
        let mut tail = Tail::new(folder.path.join("no-output"), folder.result());
        let limit = self.run_blocking(&folder, "read", RunDir::markers).await?;
        let mut log_stream = LogStream::new(limit.map_or(0, |markers| markers.limits.output_bytes));
        let status = {
            // Created once: a new stream would read everything again.
            let mut log_stream = std::pin::pin!(log_stream.follow(&self.engine, name, &lines));
            let mut tail = std::pin::pin!(tail.follow(&lines));
            loop {
                let status = self.status_with_retries(name).await?;
                if status != RunStatus::Running {
                    break status;
                }
                let left = self.run_blocking(&folder, "read", RunDir::markers).await?;
                let again = self.settings.look_again;
                let left = left.map_or(again, |markers| markers.left(jiff::Timestamp::now()));
                tokio::select! {
                    _ = tokio::time::timeout(left.min(again), self.engine.ended(name)) => {}
                    never = &mut tail => match never {},
                    never = &mut log_stream => match never {},
                }
            }
        };
        log_stream.rest(&self.engine, name, &lines).await;
        tail.rest(&lines).await;
        Ok(status)
    }

    async fn result(&self, name: RunName) -> Result<RunResult, RunError> {
        let folder = self.folder(name);
        if !matches!(
            self.container_state(name).await?,
            ContainerState::Ended(_) | ContainerState::Lost(_)
        ) {
            let sentence = format!("Run {name} has not finished: wait until it has.");
            return Err(RunError::Refused(sentence));
        }
        let at = folder.clone();
        let read = move || {
            let results = at.result();
            let mut result = match ResultDir::open(&results) {
                Ok(results) => results.read(),
                Err(fault) => crate::run::process::result_unavailable(&results, &fault)?,
            };
            if result.error.is_none() {
                // File in which old bundles leave an error text.
                let last = ResultDir::open(&at.path);
                result.error = last.ok().and_then(|last| last.text("termination-log"));
            }
            Ok(result)
        };
        let task = tokio::task::spawn_blocking(read);
        task.await.map_err(|_| shutting_down())?
    }

    async fn stop(&self, name: RunName) -> Result<(), RunError> {
        self.starts.finished(name).await;
        match self.container_state(name).await? {
            ContainerState::Running | ContainerState::Overdue => {
                self.end_because(name, Exit::Stopped).await
            }
            ContainerState::Made => match self.undo(name).await? {
                true => Ok(()),
                false => self.end_because(name, Exit::Stopped).await,
            },
            // Its container may still be running.
            ContainerState::Lost(_) => self.end(name).await.map(|_| ()),
            ContainerState::NotMade | ContainerState::Ended(_) => Ok(()),
        }
    }

    async fn remove(&self, name: RunName) -> Result<(), RunError> {
        // The directory last: while it exists, the run is known.
        if !self.engine.remove(name).await? {
            let sentence = format!("Run {name} still runs: stop it before it is removed.");
            return Err(RunError::Refused(sentence));
        }
        let folder = self.folder(name);
        self.run_blocking(&folder, "remove", RunDir::remove_dir)
            .await
    }

    async fn list(&self) -> Result<Vec<RunName>, RunError> {
        let mut names = self.engine.list(&self.settings.owner).await?;
        let runs = self.settings.runs();
        let entries =
            std::fs::read_dir(&runs).map_err(|fault| unavailable("list", &runs, &fault))?;
        let found = entries.flatten().map(|entry| entry.file_name());
        names.extend(found.filter_map(|name| name.to_str()?.parse::<RunName>().ok()));
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }
}

fn shutting_down() -> RunError {
    RunError::Unavailable("The process is shutting down: start it again.".to_owned())
}

fn unavailable(what: &str, path: &Path, fault: &io::Error) -> RunError {
    if fault.kind() == io::ErrorKind::InvalidInput {
        return RunError::Refused(fault.to_string());
    }
    RunError::Unavailable(format!(
        "Cannot {what} {}: {fault}. See that the working directory of bundles is there, has room and may be \
         written to.",
        path.display()
    ))
}
