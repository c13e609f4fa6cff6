//! Runs bundles as containers, by any engine that speaks Docker's API over a socket of this host.
//!
//! What a run is given and gives back lies in its directory and is mounted into the container, so the engine
//! must see the same files: one on another host is not supported. The engine's word is the truth about a run
//! (`container/standing.rs`); `container/engine.rs` is all that is ever said to it; `container/layout.rs` is the
//! directory and the container made of an order.

mod engine;
mod hear;
mod layout;
mod standing;

pub use layout::{ContainerSettings, Network, RegistryLogin};

use crate::ansible;
use crate::given::{Given, ResultFolder};
use crate::order::{Order, RunName, Runnable};
use crate::run::process::{make_way, sweep};
use crate::run::starts::Starts;
use crate::run::tail::Tail;
use crate::runner::{Exit, Line, RunFault, Runner, Seen};
use async_trait::async_trait;
use engine::Engine;
use hear::Ear;
use layout::RunFolder;
use standing::{Standing, standing};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// How often a start is tried that somebody else undid.
const START_TRIES: usize = 5;
/// How long there is between two questions that an engine did not answer.
const PAUSE: Duration = Duration::from_millis(500);
/// How long a container may take to end that was killed.
const KILLED: Duration = Duration::from_secs(30);

/// Runs bundles as containers.
#[derive(Clone, Debug)]
pub struct ContainerRunner {
    settings: Arc<ContainerSettings>,
    /// Where our modules for playbooks are.
    modules: Arc<Path>,
    engine: Engine,
    starts: Starts,
}

impl ContainerRunner {
    /// Makes the working directory, and clears what starts and removals have left that were cut short. The
    /// engine need not answer yet.
    ///
    /// # Errors
    /// The directory cannot be made, or there is no socket.
    pub fn open(settings: ContainerSettings) -> Result<Self, RunFault> {
        let runs = settings.runs();
        make_way(&runs)
            .and_then(|()| sweep(&runs))
            .map_err(|fault| trouble_with("use", &runs, &fault))?;
        let modules = ansible::lay_out(&settings.work)
            .map_err(|fault| trouble_with("use", &settings.work, &fault))?;
        let engine = Engine::new(&settings)?;
        Ok(Self {
            settings: Arc::new(settings),
            modules: Arc::from(modules),
            engine,
            starts: Starts::default(),
        })
    }

    fn folder(&self, name: RunName) -> RunFolder {
        RunFolder::new(&self.settings.runs(), name)
    }

    async fn beside<T: Send + 'static>(
        &self,
        folder: &RunFolder,
        what: &'static str,
        work: impl FnOnce(&RunFolder) -> io::Result<T> + Send + 'static,
    ) -> Result<T, RunFault> {
        let at = folder.clone();
        let task = tokio::task::spawn_blocking(move || {
            work(&at).map_err(|fault| trouble_with(what, &at.path, &fault))
        });
        task.await.map_err(|_| shutting_down())?
    }

    /// What is there of a run.
    async fn stands(&self, name: RunName) -> Result<Standing, RunFault> {
        let folder = self.folder(name);
        let (marks, container) = (
            self.beside(&folder, "read", RunFolder::marks).await?,
            self.engine.inspect(name).await?,
        );
        Ok(standing(container, marks, jiff::Timestamp::now()))
    }

    /// Ends a run, and writes down why.
    async fn end_because(&self, name: RunName, why: Exit) -> Result<(), RunFault> {
        let folder = self.folder(name);
        let marked = self.beside(&folder, "write to", move |folder| folder.mark_end(&why));
        if let Err(fault) = marked.await {
            // A run that must end does not go on because a disk is full.
            tracing::warn!(run = %name, error = %fault, "why a run is ended cannot be written down");
        }
        match self.end(name).await? {
            true => Ok(()),
            // It ended by itself before.
            false => {
                self.beside(&folder, "write to", RunFolder::unmark_end)
                    .await
            }
        }
    }

    /// Ends a container: a word, then a blow. Returns when it is certain that it does not run; false: it did
    /// not run before.
    async fn end(&self, name: RunName) -> Result<bool, RunFault> {
        let told = self.engine.signal(name, "SIGTERM").await?;
        let grace = if told {
            self.settings.grace
        } else {
            Duration::ZERO
        };
        if self.ends_within(name, grace).await? {
            return Ok(told);
        }
        self.engine.signal(name, "SIGKILL").await?;
        match self.ends_within(name, KILLED).await? {
            true => Ok(true),
            false => Err(RunFault::Unavailable(format!(
                "The container of run {name} does not end although it was killed: see with the engine's own \
                 tools what holds it."
            ))),
        }
    }

    /// Whether a container does not run, at the latest after this time.
    async fn ends_within(&self, name: RunName, time: Duration) -> Result<bool, RunFault> {
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

    /// Takes a container away that was made and not started. False: it runs by now.
    async fn undo(&self, name: RunName) -> Result<bool, RunFault> {
        let folder = self.folder(name);
        // It provably never started, and without its container this word would mean that it is lost.
        self.beside(&folder, "write to", RunFolder::unmark_start)
            .await?;
        let gone = self.engine.remove(name).await;
        if !matches!(gone, Ok(true)) {
            self.beside(&folder, "write to", RunFolder::mark_start)
                .await?;
        }
        gone
    }

    /// An engine that is restarted is there again soon.
    async fn look_patiently(&self, name: RunName) -> Result<Seen, RunFault> {
        match self.look(name).await {
            Err(RunFault::Unavailable(_)) => {
                tokio::time::sleep(PAUSE).await;
                self.look(name).await
            }
            answered => answered,
        }
    }

    /// Starts a run whose image is there, once nobody else does.
    async fn start_alone(&self, order: &Order) -> Result<(), RunFault> {
        let folder = self.folder(order.name);
        let (settings, name) = (Arc::clone(&self.settings), order.name);
        let _alone = self
            .beside(&folder, "start", move |_| {
                layout::alone(&settings.work, name)
            })
            .await?;
        if !matches!(
            self.stands(order.name).await?,
            Standing::NotMade | Standing::Made
        ) {
            return Ok(());
        }
        let (settings, wanted) = (Arc::clone(&self.settings), order.clone());
        self.beside(&folder, "write", move |folder| {
            layout::lay_out(&settings, &wanted, folder)
        })
        .await?;
        let started = self.create_and_start(order, &folder).await;
        if let Err(RunFault::Refused(_)) = &started
            && self.engine.remove(order.name).await?
        {
            self.beside(&folder, "remove", RunFolder::take_away).await?;
        }
        started
    }

    async fn create_and_start(&self, order: &Order, folder: &RunFolder) -> Result<(), RunFault> {
        for _ in 0..START_TRIES {
            match self.stands(order.name).await? {
                Standing::NotMade => {
                    let body = layout::container(&self.settings, &self.modules, order, folder)?;
                    self.engine.create(order.name, body).await?;
                }
                Standing::Made => {
                    self.beside(folder, "write to", RunFolder::mark_start)
                        .await?;
                    self.engine.start(order.name).await?;
                }
                Standing::Running | Standing::Overdue | Standing::Ended(_) | Standing::Lost(_) => {
                    return Ok(());
                }
            }
        }
        Err(RunFault::Unavailable(format!(
            "The container of run {} goes as often as it is made: see who else uses the engine.",
            order.name
        )))
    }
}

#[async_trait]
impl Runner for ContainerRunner {
    async fn look(&self, name: RunName) -> Result<Seen, RunFault> {
        // It is not to be said of a run that it never started, and then it does.
        self.starts.over(name).await;
        Ok(match self.stands(name).await? {
            Standing::NotMade => Seen::NeverStarted,
            Standing::Made => {
                // Whoever made it may be slow rather than dead: it must not start it after this.
                match self.undo(name).await? {
                    true => Seen::NeverStarted,
                    false => Seen::Running,
                }
            }
            Standing::Running => Seen::Running,
            Standing::Overdue => {
                self.end_because(name, Exit::Deadline).await?;
                match self.stands(name).await? {
                    Standing::Ended(exit) => Seen::Finished(exit),
                    _ => Seen::Running,
                }
            }
            Standing::Ended(exit) => Seen::Finished(exit),
            Standing::Lost(why) => Seen::Lost(why),
        })
    }

    async fn start(&self, order: &Order) -> Result<(), RunFault> {
        let Runnable::Image { reference, .. } = &order.runnable else {
            return Err(RunFault::Refused(
                "A folder cannot be run as a container: pack it into an image first.".to_owned(),
            ));
        };
        if !matches!(
            self.stands(order.name).await?,
            Standing::NotMade | Standing::Made
        ) {
            return Ok(());
        }
        self.engine
            .have_image(reference, order.limits.deadline)
            .await?;
        // It goes on to its end even if nobody waits for it: nobody knows what an engine does about a
        // question that was hung up.
        let (runner, order) = (self.clone(), order.clone());
        let under_way = self.starts.begin(order.name);
        let task = tokio::spawn(async move {
            let _under_way = under_way;
            runner.start_alone(&order).await
        });
        task.await.map_err(|_| shutting_down())?
    }

    async fn watch(&self, name: RunName, lines: mpsc::Sender<Line>) -> Result<Seen, RunFault> {
        let folder = self.folder(name);
        // Output comes from the engine; only progress lies in the directory.
        let mut tail = Tail::new(folder.path.join("no-output"), folder.result());
        let limit = self.beside(&folder, "read", RunFolder::marks).await?;
        let mut ear = Ear::new(limit.map_or(0, |marks| marks.limits.output_bytes));
        let seen = {
            // Once for all looks: to begin again is to read everything again.
            let mut ear = std::pin::pin!(ear.follow(&self.engine, name, &lines));
            let mut tail = std::pin::pin!(tail.follow(&lines));
            loop {
                let seen = self.look_patiently(name).await?;
                if seen != Seen::Running {
                    break seen;
                }
                let left = self.beside(&folder, "read", RunFolder::marks).await?;
                let again = self.settings.look_again;
                let left = left.map_or(again, |marks| marks.left(jiff::Timestamp::now()));
                tokio::select! {
                    _ = tokio::time::timeout(left.min(again), self.engine.ended(name)) => {}
                    never = &mut tail => match never {},
                    never = &mut ear => match never {},
                }
            }
        };
        ear.rest(&self.engine, name, &lines).await;
        tail.rest(&lines).await;
        Ok(seen)
    }

    async fn given(&self, name: RunName) -> Result<Given, RunFault> {
        let folder = self.folder(name);
        if !matches!(
            self.stands(name).await?,
            Standing::Ended(_) | Standing::Lost(_)
        ) {
            let sentence = format!("Run {name} has not finished: wait until it has.");
            return Err(RunFault::Refused(sentence));
        }
        let at = folder.clone();
        let read = move || {
            let results = at.result();
            let mut given = match ResultFolder::open(&results) {
                Ok(results) => results.read(),
                Err(fault) => crate::run::process::given_nowhere(&results, &fault)?,
            };
            if given.error.is_none() {
                // Where bundles of old leave their last words.
                let last = ResultFolder::open(&at.path);
                given.error = last.ok().and_then(|last| last.text("termination-log"));
            }
            Ok(given)
        };
        let task = tokio::task::spawn_blocking(read);
        task.await.map_err(|_| shutting_down())?
    }

    async fn stop(&self, name: RunName) -> Result<(), RunFault> {
        self.starts.over(name).await;
        match self.stands(name).await? {
            Standing::Running | Standing::Overdue => self.end_because(name, Exit::Stopped).await,
            Standing::Made => match self.undo(name).await? {
                true => Ok(()),
                false => self.end_because(name, Exit::Stopped).await,
            },
            // Its container may run even so.
            Standing::Lost(_) => self.end(name).await.map(|_| ()),
            Standing::NotMade | Standing::Ended(_) => Ok(()),
        }
    }

    async fn remove(&self, name: RunName) -> Result<(), RunFault> {
        // The directory last: as long as it is there, the run is remembered.
        if !self.engine.remove(name).await? {
            let sentence = format!("Run {name} still runs: stop it before it is removed.");
            return Err(RunFault::Refused(sentence));
        }
        let folder = self.folder(name);
        self.beside(&folder, "remove", RunFolder::take_away).await
    }

    async fn list(&self) -> Result<Vec<RunName>, RunFault> {
        let mut names = self.engine.list(&self.settings.owner).await?;
        let runs = self.settings.runs();
        let entries =
            std::fs::read_dir(&runs).map_err(|fault| trouble_with("list", &runs, &fault))?;
        let found = entries.flatten().map(|entry| entry.file_name());
        names.extend(found.filter_map(|name| name.to_str()?.parse::<RunName>().ok()));
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }
}

fn shutting_down() -> RunFault {
    RunFault::Unavailable("The process is shutting down: start it again.".to_owned())
}

fn trouble_with(what: &str, path: &Path, fault: &io::Error) -> RunFault {
    if fault.kind() == io::ErrorKind::InvalidInput {
        return RunFault::Refused(fault.to_string());
    }
    RunFault::Unavailable(format!(
        "Cannot {what} {}: {fault}. See that the working directory of bundles is there, has room and may be \
         written to.",
        path.display()
    ))
}
