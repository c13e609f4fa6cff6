//! Directory of a container run: its paths and markers, and how it is created and removed in one step.
//!
//! The markers are interpreted by `state.rs`; which parts of the directory are mounted is decided by
//! `container_spec.rs`. Directories of process runs are `run/process/run_dir.rs`.

use super::settings::ContainerSettings;
use super::state::{RunMarkers, WatchLimits};
use crate::run::process::{
    TempDirKind, make_folder, private, temp_dir, write_durably, write_secret, write_state,
};
use crate::run_spec::{RunName, RunSpec};
use crate::runner::Exit;
use jiff::Timestamp;
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock};
use serde::de::DeserializeOwned;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Number of start locks.
const START_LOCKS: u128 = 64;

/// Paths of a run directory.
#[derive(Clone, Debug)]
pub(super) struct RunDir {
    pub(super) path: PathBuf,
}

impl RunDir {
    pub(super) fn new(runs: &Path, name: RunName) -> Self {
        Self {
            path: runs.join(name.to_string()),
        }
    }

    pub(super) fn result(&self) -> PathBuf {
        self.path.join("result")
    }

    /// Markers of the run; `None` if the directory does not exist.
    pub(super) fn markers(&self) -> io::Result<Option<RunMarkers>> {
        let Some(limits) = read::<WatchLimits>(&self.path.join("limits"))? else {
            return Ok(None);
        };
        Ok(Some(RunMarkers {
            limits,
            started: read(&self.path.join("started"))?,
            end: read(&self.path.join("end"))?,
        }))
    }

    /// Written before the engine is asked to start it, so that a run that may have started never counts as not
    /// started.
    pub(super) fn mark_start(&self) -> io::Result<()> {
        let now = serde_json::to_vec(&Timestamp::now())?;
        write_durably(&self.path, "started", &now)?;
        self.path
            .parent()
            .map_or(Ok(()), crate::run::process::sync_folder)
    }

    /// Removes the start marker: it was not started.
    pub(super) fn unmark_start(&self) -> io::Result<()> {
        ignore_not_found(fs::remove_file(self.path.join("started")))
    }

    pub(super) fn mark_end(&self, why: &Exit) -> io::Result<()> {
        write_durably(&self.path, "end", &serde_json::to_vec(why)?)
    }

    pub(super) fn unmark_end(&self) -> io::Result<()> {
        ignore_not_found(fs::remove_file(self.path.join("end")))
    }

    pub(super) fn remove_dir(&self) -> io::Result<()> {
        let gone = self.temp_dir(TempDirKind::Gone)?;
        match fs::rename(&self.path, &gone) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.and_then(|()| crate::run::process::clear(&gone)),
        }
    }

    fn temp_dir(&self, why: TempDirKind) -> io::Result<PathBuf> {
        let runs = self.path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        Ok(temp_dir(runs, why))
    }
}

/// Waits until no other process starts this run. A few locks serve all runs.
pub(super) fn lock_start(work: &Path, name: RunName) -> io::Result<fs::File> {
    let locks = work.join("starts");
    fs::create_dir_all(&locks)?;
    // Runs of other users must not be able to hold the locks.
    fs::set_permissions(&locks, fs::Permissions::from_mode(0o700))?;
    let slot = name.operation.as_u128() % START_LOCKS;
    let lock = fs::File::create(locks.join(slot.to_string()))?;
    flock(&lock, FlockOperation::LockExclusive)?;
    Ok(lock)
}

fn ignore_not_found(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// Creates the directory of a run in one step, unless it exists.
pub(super) fn create(
    settings: &ContainerSettings,
    spec: &RunSpec,
    folder: &RunDir,
) -> io::Result<()> {
    if folder.path.is_dir() {
        return Ok(());
    }
    let new = RunDir {
        path: folder.temp_dir(TempDirKind::New)?,
    };
    let filled = fill(settings, spec, &new).and_then(|()| {
        let renamed =
            rustix::fs::renameat_with(CWD, &new.path, CWD, &folder.path, RenameFlags::NOREPLACE);
        Ok(renamed?)
    });
    match filled {
        Ok(()) => Ok(()),
        Err(fault) => {
            crate::run::process::clear(&new.path)?;
            match fault.kind() {
                io::ErrorKind::AlreadyExists => Ok(()),
                _ => Err(fault),
            }
        }
    }
}

fn fill(settings: &ContainerSettings, spec: &RunSpec, folder: &RunDir) -> io::Result<()> {
    let at = |name: &str| folder.path.join(name);
    make_folder(&folder.path, 0o711)?;
    let millis = u64::try_from(spec.limits.deadline.as_millis()).unwrap_or(u64::MAX);
    let limits = WatchLimits {
        deadline_ms: millis,
        output_bytes: spec.limits.output,
    };
    private(&at("limits"))?.write_all(&serde_json::to_vec(&limits)?)?;
    private(&at("vars.json"))?.write_all(&serde_json::to_vec(&spec.vars.0)?)?;
    private(&at("termination-log"))?;
    for (name, state) in [
        ("state", &spec.state),
        ("binding-state", &spec.binding_state),
    ] {
        make_folder(&at(name), 0o700)?;
        if let Some(state) = state {
            write_state(&at(name), state)?;
        }
    }
    make_folder(&at("secrets"), 0o700)?;
    for secret in &spec.secrets {
        write_secret(&at("secrets"), secret)?;
    }
    make_folder(&at("result"), 0o700)?;
    if rustix::process::geteuid().is_root() {
        let (uid, gid) = settings.user;
        for name in [
            "vars.json",
            "termination-log",
            "state",
            "binding-state",
            "secrets",
            "result",
        ] {
            crate::run::process::chown_tree(&at(name), uid, gid)?;
        }
    }
    // The mounts give access to this directory only.
    fs::set_permissions(&folder.path, fs::Permissions::from_mode(0o711))
}
