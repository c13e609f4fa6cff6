//! Starts, kills and stops victims.

use crate::victim::Moment;
use crate::violation::{CheckResult, Violation};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Longest wait for `ready`; usually some 30 ms, but traced and busy machines are slow.
const READY_WITHIN: Duration = Duration::from_secs(20);
/// Maximum time for a victim to stop.
const STOP_WITHIN: Duration = Duration::from_secs(30);

/// Configuration of victims in one directory.
#[derive(Clone, Debug)]
pub struct Launch {
    /// This package's executable.
    pub program: PathBuf,
    /// Arguments before it: a tracer, a namespace.
    pub wrapper: Vec<String>,
    /// The store's file.
    pub db: PathBuf,
    /// The log of effects.
    pub ledger: PathBuf,
    /// Log of standard error of all starts.
    pub log: PathBuf,
    /// Number of the start.
    pub boot: u64,
    /// Call and moment at which it kills itself, if it does.
    pub kill_at: Option<(u64, Moment)>,
    /// Further arguments.
    pub extra: Vec<String>,
}

impl Launch {
    /// All files in one directory.
    pub fn new(program: &Path, dir: &Path) -> Self {
        Self {
            program: program.to_owned(),
            wrapper: Vec::new(),
            db: dir.join("victim.db"),
            ledger: dir.join("ledger"),
            log: dir.join("victim.log"),
            boot: 0,
            kill_at: None,
            extra: Vec::new(),
        }
    }

    fn command(&self) -> std::io::Result<Command> {
        let mut words = self.wrapper.iter().map(String::as_str);
        let mut command = match words.next() {
            Some(first) => {
                let mut command = Command::new(first);
                command.args(words).arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        command
            .arg("victim")
            .arg("--db")
            .arg(&self.db)
            .arg("--ledger")
            .arg(&self.ledger);
        command.args(["--boot", &self.boot.to_string()]);
        if let Some((number, moment)) = self.kill_at {
            command.args(["--kill-at", &number.to_string(), "--moment", moment.word()]);
        }
        command
            .args(&self.extra)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::options().append(true).create(true).open(&self.log)?)
            .kill_on_drop(true);
        Ok(command)
    }

    /// Starts the next victim. `None`: it killed itself before it was ready.
    ///
    /// # Errors
    /// It could not be started, or it ended in any other way.
    pub async fn start(&mut self) -> CheckResult<Option<VictimProcess>> {
        self.boot += 1;
        let begun = Instant::now();
        let failed = |error: std::io::Error| Violation::new(format!("no victim: {error}"));
        let mut child = self
            .command()
            .and_then(|mut it| it.spawn())
            .map_err(failed)?;
        let stdout = child
            .stdout
            .take()
            .ok_or_else(|| Violation::new("no standard output"))?;
        let mut lines = BufReader::new(stdout).lines();
        let line = timeout(READY_WITHIN, lines.next_line()).await;
        let line = line.map_err(|_| Violation::new("the victim is not ready in time"))?;
        let address = line
            .map_err(failed)?
            .and_then(|it| it.strip_prefix("ready ")?.parse().ok());
        match address {
            Some(address) => Ok(Some(VictimProcess {
                child,
                address,
                ready: begun.elapsed(),
            })),
            None => {
                let status = child.wait().await.map_err(failed)?;
                if self.may_die() && killed(&status) {
                    return Ok(None);
                }
                Err(Violation::new(format!(
                    "the victim ended before it was ready: {status}"
                )))
            }
        }
    }

    /// Whether it may die before it is ready.
    pub(crate) fn may_die(&self) -> bool {
        self.kill_at.is_some() || !self.wrapper.is_empty()
    }

    /// Starts the next victim, which must become ready.
    ///
    /// # Errors
    /// It did not become ready.
    pub async fn start_ready(&mut self) -> CheckResult<VictimProcess> {
        let started = self.start().await?;
        started.ok_or_else(|| Violation::new("the victim died before it was ready"))
    }
}

/// A running victim. Killed on drop.
#[derive(Debug)]
pub struct VictimProcess {
    child: Child,
    /// Address.
    pub address: SocketAddr,
    /// Time until it served.
    pub ready: Duration,
}

impl VictimProcess {
    /// Its process, or its tracer's.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// SIGKILL, and waits for its end.
    ///
    /// # Errors
    /// It had already ended, and not by SIGKILL.
    pub async fn kill(mut self) -> CheckResult<()> {
        let _ = self.child.start_kill();
        self.died().await
    }

    /// Waits for a victim that kills itself, or kills it after a while.
    ///
    /// # Errors
    /// It ended, and not by SIGKILL.
    pub async fn await_death(mut self, limit: Duration) -> CheckResult<()> {
        if timeout(limit, self.child.wait()).await.is_err() {
            let _ = self.child.start_kill();
        }
        self.died().await
    }

    /// Waits for a victim that kills itself.
    ///
    /// # Errors
    /// It ended, and not by SIGKILL.
    pub async fn death(&mut self) -> CheckResult<()> {
        self.died().await
    }

    async fn died(&mut self) -> CheckResult<()> {
        let failed = |error: std::io::Error| Violation::new(format!("no end: {error}"));
        let status = self.child.wait().await.map_err(failed)?;
        if killed(&status) {
            return Ok(());
        }
        Err(Violation::new(format!(
            "the victim ended by itself: {status}"
        )))
    }

    /// SIGTERM: it must drain and exit with 0.
    ///
    /// # Errors
    /// It does not end in time, or not with 0.
    pub async fn stop(mut self) -> CheckResult<()> {
        let pid = self
            .child
            .id()
            .and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::TERM);
        }
        let ended = timeout(STOP_WITHIN, self.child.wait()).await;
        match ended {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(Violation::new(format!(
                "a drained victim ended with {status}"
            ))),
            Ok(Err(error)) => Err(Violation::new(format!("no end: {error}"))),
            Err(_) => Err(Violation::new("the victim does not end after SIGTERM")),
        }
    }
}

pub(crate) fn killed(status: &std::process::ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    status.signal() == Some(Signal::KILL.as_raw())
}
