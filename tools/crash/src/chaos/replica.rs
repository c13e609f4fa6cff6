//! One replica controlled by the harness: starts, kills, pauses it and cuts its link to the database.

use super::cuttable_link::CuttableLink;
use super::executions::Pause;
use super::fault_plan::LinkCut;
use crate::victim::{Flaw, ReplicaBoot, STORE_VARIABLE, now_us};
use crate::violation::{CheckResult, Violation};
use rustix::process::{Pid, Signal, kill_process};
use secrecy::{ExposeSecret as _, SecretString};
use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::timeout;

/// Longest wait for a replica that can reach its database; others are started again.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// Time limit of one start.
const START_WITHIN: Duration = Duration::from_secs(10);
const AGAIN_AFTER: Duration = Duration::from_millis(50);
/// Maximum time for a replica to stop or to freeze.
const STOP_WITHIN: Duration = Duration::from_secs(30);

/// What a replica is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplicaKind {
    /// A broker (`victim/replica.rs`).
    Broker,
    /// A platform (`victim/platform_process.rs`).
    Platform,
}

/// Configuration of replicas.
#[derive(Clone, Debug)]
pub(super) struct Launch {
    pub(super) kind: ReplicaKind,
    pub(super) program: PathBuf,
    pub(super) dir: PathBuf,
    pub(super) lease: Duration,
    pub(super) step: Duration,
    pub(super) large: u32,
    pub(super) flaw: Option<Flaw>,
}

/// A replica.
#[derive(Debug)]
pub(super) struct Replica {
    launch: Launch,
    replica_boot: ReplicaBoot,
    url: SecretString,
    link: CuttableLink,
    child: Option<Child>,
    home: watch::Sender<Option<SocketAddr>>,
    /// Its pauses.
    pub(super) pauses: Vec<Pause>,
}

impl Replica {
    /// A replica that is not started yet, and its future address.
    pub(super) fn new(
        launch: Launch,
        replica: usize,
        link: CuttableLink,
        url: SecretString,
    ) -> (Self, watch::Receiver<Option<SocketAddr>>) {
        let (home, serves) = watch::channel(None);
        let replica = Self {
            launch,
            replica_boot: ReplicaBoot { replica, boot: 0 },
            url,
            link,
            child: None,
            home,
            pauses: Vec::new(),
        };
        (replica, serves)
    }

    /// Path of its log.
    fn log(&self) -> PathBuf {
        let name = format!("replica-{}.log", self.replica_boot.replica);
        self.launch.dir.join(name)
    }

    fn command(&self) -> std::io::Result<Command> {
        let log = File::options().append(true).create(true).open(self.log())?;
        let mut command = Command::new(&self.launch.program);
        match self.launch.kind {
            ReplicaKind::Broker => self.broker_arguments(&mut command),
            ReplicaKind::Platform => self.platform_arguments(&mut command),
        }
        command
            .arg("--keys")
            .arg(self.launch.dir.join("keys"))
            .args(["--lease-ms", &self.launch.lease.as_millis().to_string()])
            .env(STORE_VARIABLE, self.url.expose_secret())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true);
        Ok(command)
    }

    fn broker_arguments(&self, command: &mut Command) {
        command
            .arg("replica")
            .arg("--ledger")
            .arg(self.launch.dir.join("ledger"))
            .args(["--replica", &self.replica_boot.replica.to_string()])
            .args(["--boot", &self.replica_boot.boot.to_string()])
            .args(["--step-ms", &self.launch.step.as_millis().to_string()])
            .args(["--large", &self.launch.large.to_string()]);
        if let Some(flaw) = self.launch.flaw {
            command.args(["--flaw", flaw.word()]);
        }
    }

    fn platform_arguments(&self, command: &mut Command) {
        let name = format!("replica-{}", self.replica_boot.replica);
        command.args(["platform-victim", "--name", &name]);
    }

    /// Starts it, repeatedly while its database is unreachable.
    pub(super) async fn start(&mut self) -> CheckResult<()> {
        let begun = Instant::now();
        while begun.elapsed() < READY_WITHIN {
            self.replica_boot.boot += 1;
            let failed = |error| Violation::new(format!("no replica: {error}"));
            let mut child = self
                .command()
                .and_then(|mut it| it.spawn())
                .map_err(failed)?;
            let stdout = child.stdout.take().expect("it is piped");
            let mut lines = BufReader::new(stdout).lines();
            let line = timeout(START_WITHIN, lines.next_line()).await;
            let line = line.ok().and_then(Result::ok).flatten();
            let address = line.and_then(|it| it.strip_prefix("ready ")?.parse().ok());
            if let Some(address) = address {
                self.child = Some(child);
                self.home.send_replace(Some(address));
                return Ok(());
            }
            let _ = child.kill().await;
            tokio::time::sleep(AGAIN_AFTER).await;
        }
        let sentence = format!(
            "replica {} does not start, see its log",
            self.replica_boot.replica
        );
        Err(Violation::new(sentence))
    }

    fn child(&mut self) -> CheckResult<&mut Child> {
        let number = self.replica_boot.replica;
        let ended = || Violation::new(format!("replica {number} ended by itself, see its log"));
        let child = self.child.as_mut().ok_or_else(ended)?;
        match child.try_wait() {
            Ok(None) => Ok(child),
            Ok(Some(_)) | Err(_) => Err(ended()),
        }
    }

    /// SIGKILL; starts it again after a while.
    pub(super) async fn kill(&mut self, down: Duration) -> CheckResult<()> {
        let _ = self.child()?.kill().await;
        self.child = None;
        self.home.send_replace(None);
        tokio::time::sleep(down).await;
        self.start().await
    }

    /// SIGSTOP; continues it after a while.
    pub(super) async fn pause(&mut self, down: Duration) -> CheckResult<()> {
        let replica_boot = self.replica_boot;
        let id = self.child()?.id();
        let pid = id.and_then(|id| Pid::from_raw(id.cast_signed()));
        let pid = pid.ok_or_else(|| Violation::new("no process to pause"))?;
        let _ = kill_process(pid, Signal::STOP);
        stopped_eventually(pid).await?;
        let from = now_us();
        tokio::time::sleep(down).await;
        let until = now_us();
        let _ = kill_process(pid, Signal::CONT);
        self.pauses.push(Pause {
            replica_boot,
            from,
            until,
        });
        Ok(())
    }

    /// Cuts it from the database for a while.
    pub(super) async fn cut(&mut self, cut: LinkCut, down: Duration) -> CheckResult<()> {
        self.link.set(Some(cut));
        tokio::time::sleep(down).await;
        self.link.set(None);
        self.child().map(drop)
    }

    /// SIGTERM: it must drain and exit with 0.
    pub(super) async fn stop(&mut self) -> CheckResult<()> {
        let number = self.replica_boot.replica;
        let child = self.child()?;
        if let Some(pid) = child.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let ended = timeout(STOP_WITHIN, child.wait()).await;
        match ended {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(ended) => Err(Violation::new(format!(
                "replica {number}, told to stop, ended with {ended:?}"
            ))),
            Err(_) => Err(Violation::new(format!(
                "replica {number} does not end after SIGTERM"
            ))),
        }
    }
}

/// Waits until all threads have stopped: on a busy machine some continue for a while after the signal.
async fn stopped_eventually(pid: Pid) -> CheckResult<()> {
    let folder = format!("/proc/{}/task", pid.as_raw_nonzero());
    let stands = || {
        let threads = std::fs::read_dir(&folder).ok()?;
        let all = threads.flatten().all(|thread| {
            let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            let state = stat
                .rsplit_once(") ")
                .and_then(|(_, rest)| rest.chars().next());
            state.is_none_or(|state| state == 'T')
        });
        Some(all)
    };
    let begun = Instant::now();
    while begun.elapsed() < STOP_WITHIN {
        match stands() {
            Some(true) => return Ok(()),
            Some(false) => tokio::time::sleep(Duration::from_millis(1)).await,
            None => break,
        }
    }
    Err(Violation::new("a replica does not stand still"))
}
