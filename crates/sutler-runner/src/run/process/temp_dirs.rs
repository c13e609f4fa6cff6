//! Temporary directories of runs that are being created or removed. They may hold secrets, so each is named after
//! its process and is removed once that process is dead.
//!
//! Created and removed by `run_dir.rs` and by the container runner.

use super::process_tree::{self, Process};
use super::run_dir::clear;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Purpose of a temporary directory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TempDirKind {
    /// It is being created.
    New,
    /// It is being removed.
    Gone,
}

impl TempDirKind {
    const fn word(self) -> &'static str {
        match self {
            Self::New => ".new",
            Self::Gone => ".gone",
        }
    }
}

/// Unique name of a directory of this process.
pub(crate) fn temp_dir(runs: &Path, why: TempDirKind) -> PathBuf {
    static OWN: LazyLock<(i32, u64)> = LazyLock::new(|| {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        (pid, process_tree::process(pid).map_or(0, |own| own.since))
    });
    let (pid, since) = *OWN;
    let one = uuid::Uuid::new_v4().simple();
    runs.join(format!("{}-{pid}-{since}-{one}", why.word()))
}

/// Removes directories of dead processes. Failures are logged and block nothing.
pub(crate) fn sweep(runs: &Path) -> io::Result<()> {
    let lives = |process: Process| process_tree::process(process.pid) == Some(process);
    for entry in fs::read_dir(runs)? {
        let entry = entry?;
        if !is_left_over(&entry.file_name().to_string_lossy(), lives) {
            continue;
        }
        let path = entry.path();
        if let Err(fault) = clear(&path) {
            tracing::warn!(path = %path.display(), error = %fault, "what is left of a run that was cut short cannot be removed: remove it");
        }
    }
    Ok(())
}

/// Whether a name belongs to a temporary directory of a dead process. Names in an older format do: their writers do
/// not run concurrently with this version.
fn is_left_over(name: &str, lives: impl Fn(Process) -> bool) -> bool {
    let words = [TempDirKind::New.word(), TempDirKind::Gone.word()];
    let mut parts = name.split('-');
    if !parts.next().is_some_and(|word| words.contains(&word)) {
        return false;
    }
    let (pid, since, one) = (parts.next(), parts.next(), parts.next());
    let pid = pid.and_then(|pid| pid.parse().ok());
    let since = since.and_then(|since| since.parse().ok());
    match (pid, since, one) {
        (Some(pid), Some(since), Some(_)) => !lives(Process { pid, since }),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::{Process, TempDirKind, is_left_over, sweep, temp_dir};

    #[test]
    fn only_directories_of_dead_processes_are_left_over() {
        let seven = |process: Process| process == Process { pid: 7, since: 9 };
        for (name, left) in [
            (".new-7-9-a", false),
            (".gone-7-9-a", false),
            (".new-7-8-a", true),
            (".gone-8-9-a", true),
            (".new-0123abcd", true),
            (".gone-1", true),
            ("0123-1", false),
            (".other-8-9-a", false),
            (".newest", false),
        ] {
            assert_eq!(is_left_over(name, seven), left, "{name}");
        }
    }

    #[test]
    fn directories_of_this_process_are_not_swept() {
        let runs = tempfile::tempdir().expect("a folder");
        let (new, gone) = (
            temp_dir(runs.path(), TempDirKind::New),
            temp_dir(runs.path(), TempDirKind::Gone),
        );
        for path in [&new, &gone] {
            std::fs::create_dir(path).expect("made");
        }
        let dead = runs.path().join(".new-1-0-dead");
        std::fs::create_dir(&dead).expect("made");
        sweep(runs.path()).expect("swept");
        assert!(new.is_dir() && gone.is_dir() && !dead.exists());
    }
}
