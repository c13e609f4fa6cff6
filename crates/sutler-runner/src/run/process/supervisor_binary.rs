//! Finds the executable that supervises runs, and checks that it understands this broker's job format.
//!
//! Two versions may be installed next to each other, and an upgrade replaces both under a running broker. So the
//! executable is asked for its job format once and is then kept open: later replacements at its path have no
//! effect. The supervisor itself is `supervise.rs`.

use super::supervise::SUPERVISOR;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Format of jobs and run directories. Increment it with every change of files that a supervisor reads or writes.
pub(super) const JOB_FORMAT: u32 = 1;
/// Argument that asks a supervisor for its job format.
pub(super) const FORMAT_FLAG: &str = "--orders";

/// The executable that supervises runs.
#[derive(Clone, Debug)]
pub struct Supervisor {
    path: PathBuf,
    /// First arguments: one executable can have several functions.
    words: Vec<String>,
    held: Option<Arc<File>>,
}

impl Supervisor {
    /// The executable at a path, resolved whenever a run starts.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            words: Vec::new(),
            held: None,
        }
    }

    /// The separate small executable, if it is installed next to this one: a waiting supervisor then takes a tenth
    /// of the memory. If it is missing or has another version, this executable is used.
    pub(super) fn of(own: &Path) -> Self {
        let small = own.with_file_name("sutler-supervisor");
        match probe(&small) {
            SupervisorProbe::Understands(held) => Self {
                held: Some(Arc::new(held)),
                ..Self::at(&small)
            },
            SupervisorProbe::Other => {
                let shown = small.display();
                tracing::warn!(
                    "{shown} is of another version than this broker and is not used: install both of one \
                     version, so that runs that wait take less memory"
                );
                Self::own(own)
            }
            SupervisorProbe::NotThere => Self::own(own),
        }
    }

    fn own(path: &Path) -> Self {
        let held = File::open("/proc/self/exe").ok().map(Arc::new);
        Self {
            path: path.to_owned(),
            words: vec![SUPERVISOR.to_owned()],
            held,
        }
    }

    /// Its path, possibly outdated since it was opened.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// First arguments of the executable.
    pub(super) fn words(&self) -> &[String] {
        &self.words
    }

    /// A command that starts it.
    pub(super) fn command(&self) -> Command {
        let mut command = match &self.held {
            Some(held) => open_as(held),
            None => Command::new(&self.path),
        };
        command.arg0(&self.path).args(&self.words);
        command
    }
}

/// Result of probing a supervisor.
enum SupervisorProbe {
    NotThere,
    Other,
    Understands(File),
}

fn probe(path: &Path) -> SupervisorProbe {
    let Ok(held) = File::open(path) else {
        return SupervisorProbe::NotThere;
    };
    let mut command = open_as(&held);
    command
        .arg0(path)
        .arg(FORMAT_FLAG)
        .env_clear()
        .current_dir("/");
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let understands = |answer: &[u8]| answer == format_answer().as_bytes();
    match command.output() {
        Ok(output) if understands(&output.stdout) => SupervisorProbe::Understands(held),
        _ => SupervisorProbe::Other,
    }
}

/// Answer of a supervisor to the question for its job format.
pub(super) fn format_answer() -> String {
    format!("orders {JOB_FORMAT}\n")
}

/// Command for the opened file, even if its path was replaced.
fn open_as(file: &File) -> Command {
    Command::new(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::{Supervisor, format_answer};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};

    /// Writes an executable that prints its arguments.
    fn write_program(folder: &Path, program: &str) -> PathBuf {
        let small = folder.join("sutler-supervisor");
        // Never written in place: it may be running.
        let aside = folder.join("new");
        fs::copy(program, &aside).expect("copied");
        fs::set_permissions(&aside, fs::Permissions::from_mode(0o755)).expect("set");
        fs::rename(&aside, &small).expect("moved");
        small
    }

    #[test]
    fn a_supervisor_that_does_not_report_its_job_format_is_not_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = folder.path().join("sutler");
        assert_eq!(Supervisor::of(&own).path(), own, "there is none");
        let small = write_program(folder.path(), "/bin/true");
        assert!(small.is_file());
        assert_eq!(Supervisor::of(&own).path(), own, "it is another");
        assert_eq!(Supervisor::of(&own).words(), ["bundle-supervisor"]);
    }

    #[test]
    fn the_opened_executable_runs_although_its_path_was_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let small = write_program(folder.path(), "/bin/echo");
        let held = fs::File::open(&small).expect("opened");
        let supervisor = Supervisor {
            held: Some(std::sync::Arc::new(held)),
            ..Supervisor::at(&small)
        };
        write_program(folder.path(), "/bin/false");
        let output = supervisor.command().arg("-n").arg(format_answer()).output();
        let output = output.expect("it runs");
        assert_eq!(String::from_utf8_lossy(&output.stdout), format_answer());
    }
}
