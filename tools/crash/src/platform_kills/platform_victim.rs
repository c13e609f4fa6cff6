//! Starts, arms, kills and stops platforms over one file.

use crate::process::killed;
use crate::victim::{FastClock, Moment, PlatformFlaw};
use crate::violation::{CheckResult, Violation};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// Longest wait for its address and for answers to orders; machines may be busy.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// Longest wait for its end after SIGTERM.
const STOP_WITHIN: Duration = Duration::from_secs(30);
/// How often it looks for operations.
const LOOK_EVERY_MS: u64 = 40;

/// Platforms over one file.
#[derive(Clone, Debug)]
pub(super) struct PlatformLaunch {
    pub(super) program: PathBuf,
    /// Directory of the file, its keys and the log.
    pub(super) dir: PathBuf,
    pub(super) clock: FastClock,
    pub(super) flaw: Option<PlatformFlaw>,
}

/// A running platform. Killed on drop.
#[derive(Debug)]
pub(super) struct PlatformVictim {
    child: Child,
    orders: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    pub(super) address: SocketAddr,
}

impl PlatformLaunch {
    pub(super) fn db(&self) -> PathBuf {
        self.dir.join("platform.db")
    }

    pub(super) fn keys(&self) -> PathBuf {
        self.dir.join("platform.key")
    }

    /// Over a copy of its file in another directory.
    pub(super) fn copied_to(&self, dir: &Path) -> CheckResult<Self> {
        let failed = |error: std::io::Error| Violation::new(format!("no copy: {error}"));
        std::fs::create_dir_all(dir).map_err(failed)?;
        for entry in std::fs::read_dir(&self.dir).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            std::fs::copy(entry.path(), dir.join(entry.file_name())).map_err(failed)?;
        }
        Ok(Self {
            dir: dir.to_owned(),
            ..self.clone()
        })
    }

    fn command(&self, kill_at: Option<(u64, Moment)>) -> std::io::Result<Command> {
        let log = self.dir.join("platform.log");
        let mut command = Command::new(&self.program);
        command
            .arg("platform-victim")
            .arg("--db")
            .arg(self.db())
            .arg("--keys")
            .arg(self.keys())
            .args(["--speed", &self.clock.speed.to_string()])
            .args(["--clock-from", &self.clock.from_us.to_string()])
            .args(["--look-every-ms", &LOOK_EVERY_MS.to_string()]);
        if let Some((number, moment)) = kill_at {
            command.args(["--kill-at", &number.to_string(), "--moment", moment.word()]);
        }
        if let Some(flaw) = self.flaw {
            command.args(["--flaw", flaw.word()]);
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::options().append(true).create(true).open(log)?)
            .kill_on_drop(true);
        Ok(command)
    }

    /// Starts a platform, which may be meant to die. `None`: it died before it was ready.
    ///
    /// # Errors
    /// It does not start, or it ended in any other way.
    pub(super) async fn start(
        &self,
        kill_at: Option<(u64, Moment)>,
    ) -> CheckResult<Option<PlatformVictim>> {
        let failed = |error: std::io::Error| Violation::new(format!("no platform: {error}"));
        let mut child = self
            .command(kill_at)
            .and_then(|mut it| it.spawn())
            .map_err(failed)?;
        let (orders, stdout) = child
            .stdin
            .take()
            .zip(child.stdout.take())
            .ok_or_else(none)?;
        let mut lines = BufReader::new(stdout).lines();
        let line = timeout(READY_WITHIN, lines.next_line()).await;
        let line = line.map_err(|_| Violation::new("the platform is not ready in time"))?;
        let address = line
            .map_err(failed)?
            .and_then(|it| it.strip_prefix("ready ")?.parse().ok());
        if let Some(address) = address {
            return Ok(Some(PlatformVictim {
                child,
                orders,
                lines,
                address,
            }));
        }
        let status = child.wait().await.map_err(failed)?;
        match kill_at.is_some() && killed(&status) {
            true => Ok(None),
            false => Err(Violation::new(format!(
                "the platform ended before it was ready: {status}"
            ))),
        }
    }

    /// Starts a platform that lives.
    ///
    /// # Errors
    /// It does not start.
    pub(super) async fn start_ready(&self) -> CheckResult<PlatformVictim> {
        self.start(None).await?.ok_or_else(none)
    }
}

fn none() -> Violation {
    Violation::new("no platform")
}

impl PlatformVictim {
    /// Makes it die at the n-th commit from now on. `false`: it is dead already.
    pub(super) async fn arm(&mut self, commits: u64, moment: Moment) -> bool {
        let order = format!("arm {commits} {}", moment.word());
        self.ask(&order).await.is_some()
    }

    /// Number of commits so far.
    pub(super) async fn count(&mut self) -> Option<u64> {
        let answer = self.ask("count").await?;
        answer.strip_prefix("count ")?.parse().ok()
    }

    async fn ask(&mut self, order: &str) -> Option<String> {
        let line = format!("{order}\n");
        self.orders.write_all(line.as_bytes()).await.ok()?;
        let answer = timeout(READY_WITHIN, self.lines.next_line()).await;
        answer.ok()?.ok()?
    }

    /// Waits until it kills itself.
    ///
    /// # Errors
    /// It ended in any other way.
    pub(super) async fn death(&mut self) -> CheckResult<()> {
        let status = self.child.wait().await;
        let status = status.map_err(|error| Violation::new(format!("no end: {error}")))?;
        match killed(&status) {
            true => Ok(()),
            false => Err(Violation::new(format!(
                "the platform ended by itself: {status}"
            ))),
        }
    }

    /// SIGKILL, and waits for its end.
    pub(super) async fn kill(mut self) {
        let _ = self.child.kill().await;
    }

    /// SIGTERM: it must drain and exit with 0.
    ///
    /// # Errors
    /// It does not.
    pub(super) async fn stop(mut self) -> CheckResult<()> {
        let id = self.child.id();
        if let Some(pid) = id.and_then(|id| Pid::from_raw(id.cast_signed())) {
            let _ = kill_process(pid, Signal::TERM);
        }
        match timeout(STOP_WITHIN, self.child.wait()).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            ended => Err(Violation::new(format!(
                "a platform that was stopped ended with {ended:?}"
            ))),
        }
    }
}
