//! Supervisor of one run: a small process in its own session that outlives the broker.
//!
//! It inherits the lock of the run directory, records the start, starts the program, bounds its output and time,
//! kills the whole process tree at the end, and records the exit. It decides nothing (`shutdown_timeline.rs`),
//! serves no requests, has one thread and reads no configuration.

use super::job::{RunUser, SupervisorJob};
use super::launch::{LAUNCH, launch};
use super::process_tree;
use super::run_dir::{RunDir, clear};
use super::run_markers::{StartMarker, sync_folder, sync_results, write_durably, write_reserved};
use super::shutdown_timeline::{ShutdownStep, ShutdownTimeline};
use super::supervisor_binary::{FORMAT_FLAG, JOB_FORMAT, format_answer};
use crate::runner::Exit;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, pidfd_open};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Interval at which orphaned children are reaped, if nothing else happens.
const REAP_INTERVAL: Duration = Duration::from_secs(30);
/// Poll interval for terminated processes.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Reads of output per turn, and after the last writer has ended: all that a pipe holds.
const READS: usize = 32;
const LAST_READS: usize = 1024;
/// Exit code of a run whose program could not be prepared; the reason is in the file `failure`.
const FAILURE_CODE: i32 = 125;

/// Subcommand of `sutler` that supervises.
pub const SUPERVISOR: &str = "bundle-supervisor";

/// Supervises the run of a directory (`sutler bundle-supervisor`). Its standard input is the directory's lock.
#[must_use]
pub fn run_supervisor(words: &[OsString]) -> ExitCode {
    match words {
        [word, rest @ ..] if word == LAUNCH => launch(rest),
        [word] if word == FORMAT_FLAG => {
            let written = io::stdout().write_all(format_answer().as_bytes());
            written.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
        }
        [folder] => {
            let folder = RunDir {
                path: PathBuf::from(folder),
            };
            match supervise(&folder) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            }
        }
        _ => ExitCode::from(2),
    }
}

fn supervise(folder: &RunDir) -> io::Result<()> {
    // It was started by a descriptor number; this sets its name in the process list.
    rustix::thread::set_name(c"sutler-supervis").ok();
    // Fails only for a process that already leads a group, which is as good.
    rustix::process::setsid().ok();
    let _alive = open_pipe(&folder.alive())?;
    let exit = match run_program(folder) {
        Ok(exit) => exit,
        Err(fault) => {
            end_everything();
            let sentence =
                format!("The run cannot be supervised: {fault}. Correct that and try again.");
            record_failure(folder, &sentence)
        }
    };
    // The next run with this user must not have access.
    std::fs::set_permissions(&folder.path, std::fs::Permissions::from_mode(0o700))?;
    // Not needed any more, especially secrets; it also frees disk space.
    for path in folder.temporary_paths() {
        match path.is_dir() {
            true => clear(&path).unwrap_or_default(),
            false => std::fs::remove_file(&path).unwrap_or_default(),
        }
    }
    let exit = match sync_results(&folder.result()) {
        Ok(()) => exit,
        Err(fault) => record_failure(
            folder,
            &format!("What the run gave back cannot be kept: {fault}. See that the disk has room."),
        ),
    };
    write_reserved(&folder.path, "exit", &serde_json::to_vec(&exit)?)?;
    // Before watchers are notified of the end of this process.
    Ok(flock(io::stdin(), FlockOperation::Unlock)?)
}

/// Stores the reason of a failure, if possible: the run has failed in any case.
fn record_failure(folder: &RunDir, sentence: &str) -> Exit {
    write_reserved(&folder.path, "trouble", sentence.as_bytes()).unwrap_or_default();
    Exit::Code(FAILURE_CODE)
}

/// Runs the program until its last process has ended.
fn run_program(folder: &RunDir) -> io::Result<Exit> {
    let job = spec(&std::fs::read(folder.spec())?)?;
    let wake = open_pipe(&folder.wake())?;
    let user = assign_user(&job.user, &folder.path, &job.run)?;
    if let Some(user) = &user {
        chown_tree(&folder.result(), user.uid, user.gid)?;
        for path in folder.temporary_paths().iter().filter(|path| path.exists()) {
            chown_tree(path, user.uid, user.gid)?;
        }
    }
    let output = OutputFile::new(&folder.output(), job.output_bytes)?;
    rustix::process::set_child_subreaper(Pid::from_raw(1))?;
    let own_user = user.as_ref().filter(|user| user.lock.is_some());
    write_start_marker(&folder.path, own_user.map(|user| user.uid))?;
    let (output_pipe, output_writer) = io::pipe()?;
    let began = Instant::now();
    let program = start(&job, folder, user.as_ref(), output_writer)?;
    let end = pidfd_open(program, PidfdFlags::empty())?;
    rustix::fs::fcntl_setfl(&output_pipe, OFlags::NONBLOCK)?;
    let mut watch = RunWatch {
        timeline: ShutdownTimeline::new(
            Duration::from_millis(job.deadline_ms),
            Duration::from_millis(job.grace_ms),
        ),
        began,
        program,
        end,
        ended: None,
        stop: folder.stop(),
        wake,
        output_pipe: Some(output_pipe),
        output,
    };
    watch.run_to_end()
}

/// Parses a job, if it has this version's format.
fn spec(bytes: &[u8]) -> io::Result<SupervisorJob> {
    #[derive(serde::Deserialize)]
    struct Form {
        #[serde(default)]
        orders: u32,
    }
    let Form { orders } = serde_json::from_slice(bytes)?;
    if orders == JOB_FORMAT {
        return Ok(serde_json::from_slice(bytes)?);
    }
    Err(io::Error::other(format!(
        "the broker writes orders of form {orders}, and this supervisor reads form {JOB_FORMAT}; install both of \
         one version and restart the broker"
    )))
}

/// Opens both ends, so that it neither blocks nor ends with its peers.
pub(super) fn open_pipe(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    options.open(path)
}

fn write_start_marker(folder: &Path, user: Option<u32>) -> io::Result<()> {
    let started = StartMarker {
        boot: process_tree::boot().to_owned(),
        supervisor: process_tree::process(own_pid()).ok_or(io::ErrorKind::NotFound)?,
        user,
    };
    write_durably(folder, "started", &serde_json::to_vec(&started)?)?;
    folder.parent().map_or(Ok(()), sync_folder)
}

fn start(
    job: &SupervisorJob,
    folder: &RunDir,
    user: Option<&AssignedUser>,
    output_writer: io::PipeWriter,
) -> io::Result<Pid> {
    // This executable itself, even if its path was replaced or is not reachable.
    let mut command = Command::new("/proc/self/exe");
    command
        .args(&job.words)
        .arg(LAUNCH)
        .arg(job.limits.memory.to_string())
        .arg(job.limits.open_files.to_string())
        .arg(most_processes(job, user).to_string())
        .arg(std::process::id().to_string())
        .arg(&job.program)
        .args(&job.arguments)
        .env_clear()
        .envs(&job.environment)
        .current_dir(folder.scratch())
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(output_writer.try_clone()?)
        .stderr(output_writer);
    if let Some(user) = user {
        command.uid(user.uid).gid(user.gid);
    }
    let child = command.spawn()?;
    // Reaped by `RunWatch` only, so that its pid is not reused before.
    Ok(Pid::from_child(&child))
}

/// Kills all descendants, because nothing would supervise them.
fn end_everything() {
    while let Ok(buried) = rustix::process::wait(WaitOptions::NOHANG) {
        if buried.is_none() {
            process_tree::signal(&process_tree::descendants(own_pid()), Signal::KILL);
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Limit on processes. The kernel counts all processes of a user; a shared user has some already.
fn most_processes(job: &SupervisorJob, user: Option<&AssignedUser>) -> u64 {
    let shared = !matches!(job.user, RunUser::Range { .. });
    let there = if shared {
        let uid = user.map_or(rustix::process::getuid().as_raw(), |user| user.uid);
        process_tree::threads_of(uid)
    } else {
        0
    };
    there.saturating_add(job.limits.processes)
}

/// User of the run, and the lock that keeps other runs from using it.
struct AssignedUser {
    uid: u32,
    gid: u32,
    lock: Option<File>,
}

fn assign_user(user: &RunUser, folder: &Path, run: &str) -> io::Result<Option<AssignedUser>> {
    let (first, count) = match *user {
        RunUser::Own => return Ok(None),
        RunUser::Fixed { uid, gid } => {
            let lock = None;
            return Ok(Some(AssignedUser { uid, gid, lock }));
        }
        RunUser::Range { first, count } => (first, count),
    };
    let users = folder
        .ancestors()
        .nth(2)
        .ok_or(io::ErrorKind::InvalidInput)?
        .join("users");
    std::fs::create_dir_all(&users)?;
    // Spreads the runs over the range.
    let from = run.bytes().fold(0_u32, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(u32::from(byte))
    });
    for step in 0..count {
        let uid = first + (from % count + step) % count;
        let mut options = OpenOptions::new();
        let lock = options.write(true).create(true).truncate(false).mode(0o600);
        let lock = lock.open(users.join(uid.to_string()))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return Ok(Some(AssignedUser {
                uid,
                gid: uid,
                lock: Some(lock),
            }));
        }
    }
    Err(io::Error::other(format!(
        "all {count} users for runs are taken; allow for more of them, or for fewer runs at once"
    )))
}

/// Changes the owner of a tree to the run's user. It holds only files of the broker yet.
pub(crate) fn chown_tree(path: &Path, uid: u32, gid: u32) -> io::Result<()> {
    if path.is_dir() {
        for entry in std::fs::read_dir(path)? {
            chown_tree(&entry?.path(), uid, gid)?;
        }
    }
    std::os::unix::fs::lchown(path, Some(uid), Some(gid))
}

/// Output file of a run, bounded.
struct OutputFile {
    file: File,
    left: u64,
    most: u64,
    cut: bool,
}

impl OutputFile {
    fn new(path: &Path, most: u64) -> io::Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        Ok(Self {
            file,
            left: most,
            most,
            cut: false,
        })
    }

    /// Appends output. A full disk does not end a run: less of its output is stored.
    fn take(&mut self, bytes: &[u8]) {
        let fits = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        self.left -= fits as u64;
        if self.file.write_all(&bytes[..fits]).is_err() {
            self.left = 0;
        }
        if fits < bytes.len() && !self.cut {
            self.cut = true;
            let line = crate::run::cut_line(self.most);
            self.file.write_all(line.as_bytes()).unwrap_or_default();
        }
    }
}

struct RunWatch {
    timeline: ShutdownTimeline,
    began: Instant,
    program: Pid,
    /// Becomes readable when the program ends.
    end: OwnedFd,
    ended: Option<Exit>,
    stop: PathBuf,
    wake: File,
    output_pipe: Option<PipeReader>,
    output: OutputFile,
}

impl RunWatch {
    /// Loops until no process of the run is left.
    fn run_to_end(&mut self) -> io::Result<Exit> {
        let own = own_pid();
        loop {
            let nobody = self.reap_children();
            if let (true, Some(exit)) = (nobody, self.ended.clone()) {
                self.read_output(LAST_READS)?;
                return Ok(self.timeline.exit(exit));
            }
            let now = self.began.elapsed();
            if self.ended.is_some() {
                self.timeline.program_ended(now);
            }
            match self.timeline.step(now, self.stop.exists()) {
                ShutdownStep::Nothing => {}
                ShutdownStep::Terminate => {
                    process_tree::signal(&process_tree::descendants(own), Signal::TERM)
                }
                ShutdownStep::Kill => {
                    process_tree::signal(&process_tree::descendants(own), Signal::KILL)
                }
            }
            self.pause()?;
            self.read_output(READS)?;
            if rustix::fs::fstat(io::stdin())?.st_nlink == 0 {
                // It could not be found any more, nor its result read.
                return Err(io::Error::other("its directory was removed"));
            }
        }
    }

    /// Waits for an event or the next step.
    fn pause(&mut self) -> io::Result<()> {
        let idle = self.timeline.idle(self.began.elapsed());
        let most = if self.ended.is_some() {
            POLL_INTERVAL
        } else {
            REAP_INTERVAL
        };
        let idle = idle.min(most);
        let timeout = Timespec {
            tv_sec: i64::try_from(idle.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(idle.subsec_nanos()),
        };
        let mut fds = vec![PollFd::new(&self.wake, PollFlags::IN)];
        if self.ended.is_none() {
            fds.push(PollFd::new(&self.end, PollFlags::IN));
        }
        if let Some(output_pipe) = &self.output_pipe {
            fds.push(PollFd::new(output_pipe, PollFlags::IN));
        }
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(fault) => return Err(fault.into()),
        }
        let mut words = [0; 64];
        // More wake-ups will follow for the rest.
        for _ in 0..READS {
            if !matches!(self.wake.read(&mut words), Ok(1..)) {
                break;
            }
        }
        Ok(())
    }

    fn read_output(&mut self, reads: usize) -> io::Result<()> {
        read_output(&mut self.output_pipe, &mut self.output, reads)
    }

    /// Reaps ended children: the program and orphans. `true`: no child is left.
    fn reap_children(&mut self) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.program => {
                    self.ended = Some(exit_of(status));
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    }
}

/// Reads the available output, with a bound, so that other work is not delayed.
fn read_output(
    output_pipe: &mut Option<PipeReader>,
    output: &mut OutputFile,
    reads: usize,
) -> io::Result<()> {
    let mut bytes = [0; 8192];
    for _ in 0..reads {
        let Some(open) = output_pipe else {
            break;
        };
        match open.read(&mut bytes) {
            Ok(0) => *output_pipe = None,
            Ok(some) => output.take(&bytes[..some]),
            Err(fault) if fault.kind() == io::ErrorKind::WouldBlock => break,
            Err(fault) if fault.kind() == io::ErrorKind::Interrupted => {}
            Err(fault) => return Err(fault),
        }
    }
    Ok(())
}

fn exit_of(status: WaitStatus) -> Exit {
    match status.terminating_signal() {
        Some(signal) => Exit::Signal(signal),
        None => Exit::Code(status.exit_status().unwrap_or(FAILURE_CODE)),
    }
}

#[cfg(test)]
mod tests {
    use super::{LAST_READS, OutputFile, READS, read_output, spec};
    use std::fs::File;
    use std::io::PipeReader;
    use std::os::fd::OwnedFd;

    #[test]
    fn endless_output_is_read_in_bounded_turns() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("output");
        let mut output = OutputFile::new(&path, 10_000).expect("made");
        // More than any run writes: there is always something to read.
        let endless = File::open("/dev/zero").expect("there");
        let mut output_pipe = Some(PipeReader::from(OwnedFd::from(endless)));
        for reads in [READS, LAST_READS] {
            read_output(&mut output_pipe, &mut output, reads).expect("heard");
            assert!(output_pipe.is_some());
        }
        let kept = std::fs::read(&path).expect("read");
        assert!((10_000..10_200).contains(&kept.len()), "{}", kept.len());
    }

    #[test]
    fn a_job_of_another_format_is_refused_with_a_hint() {
        for newer in [r#"{"orders": 7, "what": "else"}"#, "{}"] {
            let fault = spec(newer.as_bytes()).expect_err("it is not understood");
            let sentence = fault.to_string();
            assert!(
                sentence.contains("install both of one version"),
                "{sentence}"
            );
        }
    }
}
