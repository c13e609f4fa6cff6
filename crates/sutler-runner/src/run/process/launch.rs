//! Last step before the program: runs as the run's user, sets limits, and replaces itself with the program.
//!
//! Started by `supervise.rs` as `--launch MEMORY OPEN_FILES PROCESSES SUPERVISOR PROGRAM ARGUMENT…`.

use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// Argument that selects this step.
pub(super) const LAUNCH: &str = "--launch";

/// Maximum size of one file that a run writes, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// Exit codes of a shell for a missing program and for one that cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_RUNNABLE: u8 = 126;

/// Replaces this process with the program, or reports why it cannot.
pub(super) fn launch(words: &[OsString]) -> ExitCode {
    let [
        memory,
        open_files,
        processes,
        supervisor,
        program,
        arguments @ ..,
    ] = words
    else {
        return refuse(
            "This is a step of the supervisor: nobody else starts it.",
            NOT_RUNNABLE,
        );
    };
    let number = |word: &OsString| word.to_str().and_then(|word| word.parse::<u64>().ok());
    let (Some(memory), Some(open_files), Some(processes), Some(supervisor)) = (
        number(memory),
        number(open_files),
        number(processes),
        number(supervisor),
    ) else {
        return refuse(
            "The supervisor gave no numbers: install one version of it.",
            NOT_RUNNABLE,
        );
    };
    if let Err(fault) = confine(memory, open_files, processes) {
        let sentence =
            format!("The limits of the run cannot be set: {fault}. Lower them in the manifest.");
        return refuse(&sentence, NOT_RUNNABLE);
    }
    // If the parent died before the death signal was set, it would never arrive.
    let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    if u64::try_from(parent).ok() != Some(supervisor) {
        return ExitCode::from(NOT_RUNNABLE);
    }
    let fault = Command::new(program).args(arguments).exec();
    let shown = program.to_string_lossy();
    match fault.kind() {
        io::ErrorKind::NotFound => refuse(
            &format!(
                "{shown}: there is no such program, or not the one its first line names. Install it, or correct the entry point."
            ),
            NOT_FOUND,
        ),
        io::ErrorKind::PermissionDenied => refuse(
            &format!(
                "{shown}: may not be run. Make it executable, and its folders open to the user of runs."
            ),
            NOT_RUNNABLE,
        ),
        _ => refuse(
            &format!("{shown}: cannot be run: {fault}. Correct the entry point."),
            NOT_RUNNABLE,
        ),
    }
}

fn confine(memory: u64, open_files: u64, processes: u64) -> rustix::io::Result<()> {
    for (resource, most) in [
        (Resource::Data, memory),
        (Resource::Nofile, open_files),
        (Resource::Nproc, processes),
        (Resource::Fsize, FILE_BYTES_MAX),
        (Resource::Core, 0),
    ] {
        let there = rustix::process::getrlimit(resource).maximum;
        let most = there.map_or(most, |there| there.min(most));
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        setrlimit(resource, limit)?;
    }
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    rustix::thread::set_no_new_privs(true)?;
    // Without its supervisor a run would have no deadline.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
}

/// Writes the reason to the run's log and, as the run's error, to the result directory.
fn refuse(sentence: &str, code: u8) -> ExitCode {
    let mut log = io::stderr().lock();
    // Best effort: the log may be unusable too.
    io::Write::write_all(&mut log, format!("{sentence}\n").as_bytes()).unwrap_or_default();
    if let Some(results) = std::env::var_os("SUTLER_RESULT_DIR") {
        let path = std::path::Path::new(&results).join("error");
        std::fs::write(path, sentence).unwrap_or_default();
    }
    ExitCode::from(code)
}
