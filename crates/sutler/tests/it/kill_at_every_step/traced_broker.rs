//! A broker under a tracer, killed when `kill_loop.rs` decides so.
//!
//! Every call that may be a step is delayed when it returns, so that the reader of the trace can kill the
//! process before the next call. The rest of the trace shows whether the kill came in time.

use super::kill_loop::{KillLoop, KilledAt};
use super::syscall_steps::{CALLS, ENGINE_CALLS, Trace};
use crate::process::sutler;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{BufRead, BufReader, PipeReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use sutler_servers::MissingServer;

/// Delay of each step, in microseconds.
const HELD_UP_US: u32 = 6_000;
/// Time limit for a start.
const TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(3);

/// Whether a tracer is available; reports it if not.
pub(super) fn can_trace() -> bool {
    let tried = Command::new("strace")
        .args([
            "-D",
            "-f",
            "--seccomp-bpf",
            "-qq",
            "-o",
            "/dev/null",
            "true",
        ])
        .stderr(Stdio::null())
        .status();
    let can = tried.is_ok_and(|status| status.success());
    if !can {
        let missing = MissingServer {
            name: "strace",
            program: "strace",
            how: "apt-get install strace, and be allowed to trace",
            may_be: false,
        };
        missing.report();
    }
    can
}

/// A running broker.
pub(super) struct TracedBroker {
    process: Child,
    pub(super) address: String,
    log: PathBuf,
    /// Reader of the trace; taken when the broker has ended.
    reader: Option<JoinHandle<()>>,
}

impl TracedBroker {
    /// Starts a broker in its folder. If it is killed before it listens, returns the reader of its trace.
    pub(super) fn start(
        folder: &Path,
        path: &str,
        kill_loop: &Arc<KillLoop>,
    ) -> Result<Self, JoinHandle<()>> {
        let boots = std::fs::read_dir(folder).expect("a folder").count();
        let log = folder.join(format!("broker-{boots}.log"));
        let (trace, trace_writer) = std::io::pipe().expect("a pipe");
        let mut command = under_a_tracer(folder, kill_loop.traces_engine);
        command
            .env("PATH", path)
            .stdin(Stdio::from(trace_writer))
            .stdout(Stdio::null())
            .stderr(File::create(&log).expect("a log"));
        let process = command.spawn().expect("strace runs");
        // Closes our end of the pipe.
        drop(command);
        let (pid, kill_loop) = (process.id(), kill_loop.clone());
        let reader = std::thread::spawn(move || follow(trace, pid, &kill_loop));
        let broker = Self {
            process,
            address: String::new(),
            log,
            reader: Some(reader),
        };
        broker.until_it_listens()
    }

    fn until_it_listens(mut self) -> Result<Self, JoinHandle<()>> {
        let begun = Instant::now();
        loop {
            let output = std::fs::read_to_string(&self.log).unwrap_or_default();
            let listening = output.split_once("listening address=");
            if let Some((_, rest)) = listening
                && let Some((address, _)) = rest.split_once('\n')
            {
                self.address = address
                    .split_whitespace()
                    .next()
                    .unwrap_or_default()
                    .to_owned();
                return Ok(self);
            }
            if self.is_dead() {
                return Err(self.into_reader());
            }
            assert!(begun.elapsed() < TIMEOUT, "it does not listen: {output}");
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Whether it was killed; fails if it ended in another way.
    pub(super) fn is_dead(&mut self) -> bool {
        use std::os::unix::process::ExitStatusExt;
        let Some(status) = self.process.try_wait().expect("it is ours") else {
            return false;
        };
        let output = std::fs::read_to_string(&self.log).unwrap_or_default();
        assert_eq!(
            status.signal(),
            Some(Signal::KILL.as_raw()),
            "{status}: {output}"
        );
        true
    }

    /// Returns the thread that reads its trace to the end.
    pub(super) fn into_reader(mut self) -> JoinHandle<()> {
        self.reader.take().expect("it is buried once")
    }

    /// Stops it with SIGTERM.
    pub(super) fn stop(mut self) -> JoinHandle<()> {
        let pid = Pid::from_raw(self.process.id().cast_signed()).expect("a process");
        kill_process(pid, Signal::TERM).expect("it is ours");
        let status = self.process.wait().expect("it is ours");
        assert!(status.success(), "{status}");
        self.into_reader()
    }
}

/// Kills the broker of a failed test.
impl Drop for TracedBroker {
    fn drop(&mut self) {
        if self.reader.is_some() {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

fn under_a_tracer(folder: &Path, traces_engine: bool) -> Command {
    let calls = match traces_engine {
        true => format!("{CALLS},{ENGINE_CALLS},execve"),
        false => format!("{CALLS},execve"),
    };
    let inner = sutler(folder);
    let mut command = Command::new("strace");
    command
        .args([
            "-D",
            "-f",
            "--seccomp-bpf",
            "-qq",
            "-y",
            "-s",
            "256",
            "-e",
            "signal=none",
        ])
        .args(["-e", &format!("trace={calls}")])
        .args(["-e", &format!("inject={CALLS}:delay_exit={HELD_UP_US}")])
        .args(["-o", "/dev/stdin"])
        .arg(inner.get_program())
        .args([
            "broker",
            "--config",
            "sutler.yaml",
            "--listen",
            "127.0.0.1:0",
        ])
        .current_dir(folder);
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// Reads a trace to its end, and kills at the steps that `kill_loop` selects.
fn follow(trace: PipeReader, broker: u32, kill_loop: &KillLoop) {
    let mut steps = Trace::default();
    let mut last: Option<KilledAt> = None;
    for (number, line) in BufReader::new(trace).lines().enumerate() {
        let Ok(line) = line else {
            return;
        };
        // Until its first call the process is still the tracer, which must not be killed.
        if number == 0 {
            kill_loop.broker_started(broker);
        }
        let Some(step) = steps.step(&line) else {
            continue;
        };
        if let Some(killed) = last.take_if(|killed| killed.last_step_of == Some(step.thread)) {
            kill_loop.missed(&killed);
        }
        if let Some(killed) = kill_loop.at(&step) {
            last = Some(killed);
        }
    }
}
