//! Runs bundles as processes of this host, each under a supervisor that outlives the broker.
//!
//! Everything that is known of a run lies in its directory (`process/folder.rs`), and what that means is in
//! `process/marks.rs`. What the supervisor does: `process/supervise.rs`.

mod aside;
mod course;
mod end;
mod family;
mod folder;
mod graves;
mod job;
mod kin;
mod launch;
mod marks;
mod supervise;

#[cfg(feature = "containers")]
pub(crate) use aside::{Aside, aside, sweep};
#[cfg(feature = "containers")]
pub(crate) use folder::{clear, make_folder, private, write_secret, write_state};
#[cfg(feature = "containers")]
pub(crate) use job::{Places, environment, mapped_here};
#[cfg(feature = "containers")]
pub(crate) use marks::{sync_folder, write_durably};
#[cfg(feature = "containers")]
pub(crate) use supervise::hand_over;

pub use folder::make_way;
pub use job::RunUser;
pub use kin::Supervisor;
pub use supervise::{SUPERVISOR, supervisor};

use crate::ansible;
use crate::given::{Given, ResultFolder};
use crate::order::{Order, RunName};
use crate::run::starts::Starts;
use crate::run::tail::Tail;
use crate::runner::{Line, RunFault, Runner, Seen};
use async_trait::async_trait;
use folder::RunFolder;
use graves::Graves;
use marks::Verdict;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

/// How long a run has from the word to end to the blow.
const GRACE: Duration = Duration::from_secs(10);
/// How much longer than that a supervisor may take before it is ended itself.
const SUPERVISOR_SLACK: Duration = Duration::from_secs(10);
/// How often a run is looked at that cannot tell of its end.
const LOOK: Duration = Duration::from_millis(10);
/// How often a run is looked at even so.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// Variables of the broker's own environment that runs get too.
const PASSED_ON: [&str; 6] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// What the process runner has to know.
#[derive(Clone, Debug)]
pub struct ProcessSettings {
    /// Where run directories are made. Others must be able to pass through to it.
    pub work: PathBuf,
    /// The program that supervises.
    pub supervisor: Supervisor,
    /// Who runs are.
    pub user: RunUser,
    /// How long a run has from the word to end to the blow.
    pub grace: Duration,
    /// What every run finds in its environment.
    pub environment: BTreeMap<String, String>,
}

impl ProcessSettings {
    /// What is usual: this executable supervises, nobody's rights, proxies passed on.
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

/// What every run finds in its environment: a language, and how to get out.
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
    graves: Graves,
    starts: Starts,
}

impl ProcessRunner {
    /// Makes the working directory, and clears what starts and removals have left that were cut short.
    ///
    /// # Errors
    /// The directory cannot be made or read.
    pub fn open(mut settings: ProcessSettings) -> Result<Self, RunFault> {
        let runs = settings.runs();
        make_way(&runs)
            .and_then(|()| aside::sweep(&runs))
            .map_err(|fault| trouble_with("use", &runs, &fault))?;
        let modules = ansible::lay_out(&settings.work)
            .map_err(|fault| trouble_with("use", &settings.work, &fault))?;
        for (name, value) in ansible::environment(&modules) {
            settings.environment.entry(name).or_insert(value);
        }
        Ok(Self {
            settings: Arc::new(settings),
            graves: Graves::default(),
            starts: Starts::default(),
        })
    }

    fn folder(&self, name: RunName) -> RunFolder {
        RunFolder::new(&self.settings.runs(), name)
    }

    /// Does what blocks beside the runtime.
    async fn beside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&ProcessSettings) -> Result<T, RunFault> + Send + 'static,
    ) -> Result<T, RunFault> {
        let settings = Arc::clone(&self.settings);
        let task = tokio::task::spawn_blocking(move || work(&settings));
        task.await.map_err(|_| {
            RunFault::Unavailable("The process is shutting down: start it again.".to_owned())
        })?
    }
}

impl ProcessRunner {
    /// Whether a run ends within this time.
    async fn ends_within(&self, name: RunName, time: Duration) -> Result<bool, RunFault> {
        let (lines, _) = mpsc::channel(1);
        match tokio::time::timeout(time, self.watch(name, lines)).await {
            Ok(seen) => seen.map(|_| true),
            Err(_) => Ok(false),
        }
    }
}

#[async_trait]
impl Runner for ProcessRunner {
    async fn look(&self, name: RunName) -> Result<Seen, RunFault> {
        let folder = self.folder(name);
        // It is not to be said of a run that it never started, and then it does.
        self.starts.over(name).await;
        let graves = self.graves.clone();
        self.beside(move |_| {
            let seen = look(&folder, name)?;
            if seen != Seen::Running {
                graves.bury(name);
            }
            Ok(seen)
        })
        .await
    }

    async fn start(&self, order: &Order) -> Result<(), RunFault> {
        let order = order.clone();
        let under_way = self.starts.begin(order.name);
        let graves = self.graves.clone();
        self.beside(move |settings| {
            // It goes on to its end even if nobody waits for it.
            let _under_way = under_way;
            if let Some(child) = start(settings, &order)? {
                graves.expect(order.name, child);
            }
            Ok(())
        })
        .await
    }

    async fn watch(&self, name: RunName, lines: mpsc::Sender<Line>) -> Result<Seen, RunFault> {
        let folder = self.folder(name);
        let mut tail = Tail::new(folder.output(), folder.result());
        loop {
            let seen = self.look(name).await?;
            if seen != Seen::Running {
                tail.rest(&lines).await;
                return Ok(seen);
            }
            tokio::select! {
                // A supervisor that was killed may let go of the pipe before it does of the lock.
                _ = tokio::time::timeout(LOOK_AGAIN, ended(&folder)) => {}
                never = tail.follow(&lines) => match never {},
            }
        }
    }

    async fn given(&self, name: RunName) -> Result<Given, RunFault> {
        let folder = self.folder(name);
        self.beside(move |_| given(&folder, name)).await
    }

    async fn stop(&self, name: RunName) -> Result<(), RunFault> {
        let folder = self.folder(name);
        match self.look(name).await? {
            // Whatever was left of it has been ended by the look at it.
            Seen::Finished(_) | Seen::Lost(_) => return Ok(()),
            // Somebody may have taken its directory away: then only its processes know of it.
            Seen::NeverStarted => {
                return self.beside(move |_| end::left_over(name, None)).await;
            }
            Seen::Running => {}
        }
        let at = folder.clone();
        self.beside(move |_| {
            end::tell_to_stop(&at).map_err(|fault| trouble_with("stop", &at.path, &fault))
        })
        .await?;
        if self
            .ends_within(name, self.settings.grace + SUPERVISOR_SLACK)
            .await?
        {
            return Ok(());
        }
        self.beside(move |_| {
            end::kill_supervisor(&folder);
            Ok(())
        })
        .await?;
        match self.ends_within(name, SUPERVISOR_SLACK).await? {
            true => Ok(()),
            false => Err(RunFault::Unavailable(format!(
                "The supervisor of run {name} does not end although it was killed: see what holds it."
            ))),
        }
    }

    async fn remove(&self, name: RunName) -> Result<(), RunFault> {
        let folder = self.folder(name);
        let graves = self.graves.clone();
        self.beside(move |_| {
            graves.bury(name);
            if look(&folder, name)? == Seen::Running {
                let sentence = format!("Run {name} still runs: stop it before it is removed.");
                return Err(RunFault::Refused(sentence));
            }
            let gone = folder.take_away();
            gone.map_err(|fault| trouble_with("remove", &folder.path, &fault))
        })
        .await
    }

    async fn list(&self) -> Result<Vec<RunName>, RunFault> {
        self.graves.bury_all();
        self.beside(|settings| {
            let runs = settings.runs();
            let entries =
                std::fs::read_dir(&runs).map_err(|fault| trouble_with("list", &runs, &fault))?;
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

fn look(folder: &RunFolder, name: RunName) -> Result<Seen, RunFault> {
    let trouble = |fault: io::Error| trouble_with("read", &folder.path, &fault);
    let Some((facts, lock)) = folder.facts().map_err(trouble)? else {
        return Ok(Seen::NeverStarted);
    };
    let verdict = marks::verdict(facts, family::boot());
    // Nobody else takes it away while we look.
    let seen = match verdict {
        Verdict::NeverStarted => Seen::NeverStarted,
        Verdict::Running => Seen::Running,
        Verdict::Finished(exit) => Seen::Finished(exit),
        Verdict::HostRestarted => Seen::Lost(
            "The host was restarted while the bundle ran: how far it got is not known.".to_owned(),
        ),
        Verdict::SupervisorDied => {
            end::left_over(name, end::own_user(folder))?;
            Seen::Lost(
                "The supervisor of the run was killed, and what it ran was ended: how far it got is not \
                 known."
                    .to_owned(),
            )
        }
    };
    drop(lock);
    Ok(seen)
}

/// Starts a run, unless it is there. The supervisor is returned, to be buried when it ends.
fn start(settings: &ProcessSettings, order: &Order) -> Result<Option<Child>, RunFault> {
    let folder = RunFolder::new(&settings.runs(), order.name);
    let made = match folder::lay_out(settings, order)? {
        Some(made) => Some(made),
        // Somebody may have died before the start.
        None if look(&folder, order.name)? == Seen::NeverStarted => {
            let gone = folder.take_away();
            gone.map_err(|fault| trouble_with("remove", &folder.path, &fault))?;
            folder::lay_out(settings, order)?
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
            folder.take_away().unwrap_or_default();
            return Err(trouble_with("use", &folder.path, &fault));
        }
    };
    let spawned = settings
        .supervisor
        .command()
        .arg(&folder.path)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(lock))
        // Whoever watches hears of its end, from its first moment on.
        .stdout(alive)
        .stderr(Stdio::null())
        .spawn();
    spawned.map(Some).map_err(|fault| {
        // The lock went with the command: it never started, and says so.
        folder.take_away().unwrap_or_default();
        let program = settings.supervisor.path().display();
        RunFault::Unavailable(format!(
            "The supervisor {program} cannot be started: {fault}. See that it is there and may be run."
        ))
    })
}

fn given(folder: &RunFolder, name: RunName) -> Result<Given, RunFault> {
    if !matches!(look(folder, name)?, Seen::Finished(_) | Seen::Lost(_)) {
        let sentence = format!("Run {name} has not finished: wait until it has.");
        return Err(RunFault::Refused(sentence));
    }
    let results = folder.result();
    let mut given = match ResultFolder::open(&results) {
        Ok(results) => results.read(),
        Err(fault) => given_nowhere(&results, &fault)?,
    };
    if let Ok(sentence) = std::fs::read_to_string(folder.trouble()) {
        given.error = Some(sentence.trim().to_owned());
    }
    Ok(given)
}

/// A run may remove its result directory, or put something else there: then it gave nothing. Everything else
/// may be better at the next look.
pub(crate) fn given_nowhere(results: &Path, fault: &io::Error) -> Result<Given, RunFault> {
    let why = match fault.kind() {
        io::ErrorKind::NotFound => "is gone",
        io::ErrorKind::NotADirectory => "is no folder any more",
        _ if fault.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            "leads elsewhere"
        }
        _ => return Err(trouble_with("read", results, fault)),
    };
    let sentence = format!(
        "What the bundle gave back cannot be used: its result directory {why}; leave it as it is, and write \
         files into it."
    );
    Ok(Given {
        refused: vec![sentence],
        ..Given::default()
    })
}

/// Waits until the supervisor has ended, or for a moment where that cannot be told. It holds one end of a
/// pipe from its birth on, for as long as it lives.
async fn ended(folder: &RunFolder) {
    let opened = pipe::OpenOptions::new().open_receiver(folder.alive());
    let Ok(end) = opened else {
        return tokio::time::sleep(LOOK).await;
    };
    // A pipe tells only of ends that it has seen: one before it was opened shows in the lock.
    while is_held(folder) && end.readable().await.is_ok() {
        match end.try_read(&mut [0]) {
            Err(fault) if fault.kind() == io::ErrorKind::WouldBlock => {}
            Ok(1..) => {}
            // It is about to be started, or to let go of the lock.
            Ok(0) | Err(_) if is_held(folder) => return tokio::time::sleep(LOOK).await,
            Ok(0) | Err(_) => return,
        }
    }
}

fn is_held(folder: &RunFolder) -> bool {
    let facts = folder.facts();
    facts.is_ok_and(|found| found.is_some_and(|(facts, _)| facts.held))
}

fn trouble_with(what: &str, path: &Path, fault: &io::Error) -> RunFault {
    RunFault::Unavailable(format!(
        "Cannot {what} {}: {fault}. See that the working directory of bundles is there, has room and may be \
         written to.",
        path.display()
    ))
}
