//! Markers in a run directory, and the verdict they give. Pure, except for functions that write a file durably.
//!
//! Read `verdict` first: it decides the status of a run.

use super::process_tree::Process;
use crate::run_result::RESULT_FILES;
use crate::runner::Exit;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Bytes reserved for a marker: more than any needs.
const RESERVED_BYTES: usize = 512;

/// Marker of a start; durable before the program is started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StartMarker {
    /// Id of the boot it started in.
    pub(super) boot: String,
    /// The supervisor's process.
    pub(super) supervisor: Process,
    /// User that only this run has.
    #[serde(default)]
    pub(super) user: Option<u32>,
}

/// Facts found about a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunFacts {
    /// Whether its lock is held.
    pub(super) held: bool,
    pub(super) started: Option<StartMarker>,
    pub(super) exit: Option<Exit>,
}

/// Status of a run according to its facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RunVerdict {
    NeverStarted,
    Running,
    Finished(Exit),
    /// Its processes may still exist in this boot.
    SupervisorDied,
    HostRestarted,
}

/// The lock is held from before the run directory is visible, first by the process that starts the supervisor and
/// then by the supervisor, without a gap. So a free lock without a start marker means: never started.
pub(super) fn verdict(facts: RunFacts, boot: &str) -> RunVerdict {
    match facts {
        RunFacts { held: true, .. } => RunVerdict::Running,
        RunFacts {
            exit: Some(exit), ..
        } => RunVerdict::Finished(exit),
        RunFacts { started: None, .. } => RunVerdict::NeverStarted,
        RunFacts {
            started: Some(started),
            ..
        } if started.boot == boot => RunVerdict::SupervisorDied,
        RunFacts {
            started: Some(_), ..
        } => RunVerdict::HostRestarted,
    }
}

/// Writes a file atomically and durably.
pub(crate) fn write_durably(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let aside = folder.join(format!(".{name}"));
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&aside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&aside, folder.join(name))?;
    sync_folder(folder)
}

/// Reserves disk space for a marker, so that the end of the run can be stored even on a full disk.
pub(super) fn reserve(folder: &Path, name: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(folder.join(format!(".{name}")))?;
    file.write_all(&[b' '; RESERVED_BYTES])
}

/// Writes a marker into its reserved space, padded with spaces.
pub(super) fn write_reserved(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let aside = folder.join(format!(".{name}"));
    let mut whole = [b' '; RESERVED_BYTES];
    let fits = bytes.len().min(RESERVED_BYTES);
    whole[..fits].copy_from_slice(&bytes[..fits]);
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(false);
    let mut file = options.mode(0o600).open(&aside)?;
    file.write_all(&whole)?;
    file.sync_all()?;
    std::fs::rename(&aside, folder.join(name))?;
    sync_folder(folder)
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(folder, flags, Mode::empty())?;
    File::from(folder).sync_all()
}

/// Makes the results of a run durable, before its end is stored. Entries that are not plain files are skipped;
/// reading refuses them.
pub(super) fn sync_results(folder: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    for name in RESULT_FILES {
        let opened = rustix::fs::open(folder.join(name), flags, Mode::empty()).map(File::from);
        let Ok(file) = opened else { continue };
        if file.metadata()?.is_file() {
            file.sync_all()?;
        }
    }
    match folder.is_dir() {
        true => sync_folder(folder),
        // The run removed it: it has no results.
        false => Ok(()),
    }
}

/// Reads a marker; `None` if it does not exist.
pub(super) fn read<T: for<'de> Deserialize<'de>>(
    folder: &Path,
    name: &str,
) -> io::Result<Option<T>> {
    match std::fs::read(folder.join(name)) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(fault) => Err(fault),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        RunFacts, RunVerdict, StartMarker, read, reserve, sync_results, verdict, write_durably,
        write_reserved,
    };
    use crate::run::process::process_tree::Process;
    use crate::runner::Exit;

    fn facts(held: bool, started: Option<&str>, exit: Option<Exit>) -> RunFacts {
        let supervisor = Process { pid: 7, since: 9 };
        let started = started.map(|boot| StartMarker {
            boot: boot.to_owned(),
            supervisor,
            user: None,
        });
        RunFacts {
            held,
            started,
            exit,
        }
    }

    #[test]
    fn every_combination_of_marks_means_one_thing() {
        let done = || Some(Exit::Code(0));
        for (found, means) in [
            (facts(true, None, None), RunVerdict::Running),
            (facts(true, Some("now"), None), RunVerdict::Running),
            (facts(true, Some("now"), done()), RunVerdict::Running),
            (facts(false, None, None), RunVerdict::NeverStarted),
            (facts(false, Some("now"), None), RunVerdict::SupervisorDied),
            (facts(false, Some("then"), None), RunVerdict::HostRestarted),
            (
                facts(false, Some("now"), done()),
                RunVerdict::Finished(Exit::Code(0)),
            ),
            (
                facts(false, Some("then"), done()),
                RunVerdict::Finished(Exit::Code(0)),
            ),
            (
                facts(false, None, done()),
                RunVerdict::Finished(Exit::Code(0)),
            ),
        ] {
            assert_eq!(verdict(found.clone(), "now"), means, "{found:?}");
        }
    }

    #[test]
    fn odd_result_files_do_not_prevent_writing_the_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        std::fs::write(path.join("credentials.json"), "{}").expect("written");
        std::fs::create_dir(path.join("state.json")).expect("made");
        std::os::unix::fs::symlink("/nowhere", path.join("error")).expect("made");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, path.join("progress"), kind, mode, 0).expect("made");
        sync_results(path).expect("synced");
        sync_results(&path.join("gone")).expect("nothing to sync");
    }

    #[test]
    fn a_mark_reads_back_as_it_was_written() {
        let folder = tempfile::tempdir().expect("a folder");
        for exit in [
            Exit::Code(8),
            Exit::Signal(15),
            Exit::Deadline,
            Exit::Stopped,
            Exit::Memory,
        ] {
            let bytes = serde_json::to_vec(&exit).expect("JSON");
            write_durably(folder.path(), "end", &bytes).expect("written");
            assert_eq!(
                read(folder.path(), "end").expect("read"),
                Some(exit.clone())
            );
            reserve(folder.path(), "exit").expect("reserved");
            write_reserved(folder.path(), "exit", &bytes).expect("written");
            assert_eq!(read(folder.path(), "exit").expect("read"), Some(exit));
        }
        assert_eq!(read::<Exit>(folder.path(), "other").expect("read"), None);
    }
}
