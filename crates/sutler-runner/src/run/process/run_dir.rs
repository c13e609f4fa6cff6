//! Directory of a process run: its paths, and how it is created and removed in one step.
//!
//! A run directory appears complete by one rename, with its lock already held by the process that starts the
//! supervisor. The markers in it are interpreted by `run_markers.rs`.

use super::ProcessSettings;
use super::job::{ProcessLimits, RunPaths, SupervisorJob, command, environment};
use super::run_markers::{self, RunFacts};
use super::supervisor_binary::JOB_FORMAT;
use super::temp_dirs::{TempDirKind, temp_dir};
use crate::run_spec::{RunName, RunSpec, Runnable, SecretFiles, Vars};
use crate::runner::RunError;
use rustix::fs::{CWD, FileType, FlockOperation, Mode, RenameFlags, flock};
use secrecy::ExposeSecret;
use serde_json::Value;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Attempts to lock while readers hold the lock.
const TRIES: u32 = 200;

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

    /// Job of the supervisor.
    pub(super) fn spec(&self) -> PathBuf {
        self.path.join("order")
    }

    pub(super) fn lock(&self) -> PathBuf {
        self.path.join("lock")
    }

    /// Pipe that wakes the supervisor, which then checks `stop`.
    pub(super) fn wake(&self) -> PathBuf {
        self.path.join("wake")
    }

    /// Pipe that the supervisor holds open as long as it lives.
    pub(super) fn alive(&self) -> PathBuf {
        self.path.join("alive")
    }

    pub(super) fn stop(&self) -> PathBuf {
        self.path.join("stop")
    }

    pub(super) fn output(&self) -> PathBuf {
        self.path.join("output")
    }

    /// Sentence that says why the program could not be started.
    pub(super) fn failure(&self) -> PathBuf {
        self.path.join("trouble")
    }

    pub(super) fn vars(&self) -> PathBuf {
        self.path.join("vars.json")
    }

    pub(super) fn state(&self) -> PathBuf {
        self.path.join("state")
    }

    pub(super) fn binding_state(&self) -> PathBuf {
        self.path.join("binding_state")
    }

    pub(super) fn secrets(&self) -> PathBuf {
        self.path.join("secrets")
    }

    pub(super) fn result(&self) -> PathBuf {
        self.path.join("result")
    }

    pub(super) fn scratch(&self) -> PathBuf {
        self.path.join("scratch")
    }

    /// Inputs and working directory of a run, which are not needed after its end. Some may be missing.
    pub(super) fn temporary_paths(&self) -> [PathBuf; 5] {
        [
            self.vars(),
            self.state(),
            self.binding_state(),
            self.secrets(),
            self.scratch(),
        ]
    }

    /// Facts of the run, and its lock if it is free. `None`: the directory does not exist.
    pub(super) fn facts(&self) -> io::Result<Option<(RunFacts, File)>> {
        let lock = match OpenOptions::new().read(true).open(self.lock()) {
            Ok(lock) => lock,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(fault) => return Err(fault),
        };
        // Shared, so that two readers do not take each other for a supervisor.
        let held = match flock(&lock, FlockOperation::NonBlockingLockShared) {
            Ok(()) => false,
            Err(rustix::io::Errno::WOULDBLOCK) => true,
            Err(fault) => return Err(fault.into()),
        };
        // While the lock is held, the markers do not matter.
        let mark = !held;
        let facts = RunFacts {
            held,
            started: mark
                .then(|| run_markers::read(&self.path, "started"))
                .transpose()?
                .flatten(),
            exit: mark
                .then(|| run_markers::read(&self.path, "exit"))
                .transpose()?
                .flatten(),
        };
        Ok(Some((facts, lock)))
    }

    /// Removes the directory, unless its lock is held or it was replaced. It is renamed at once, and its contents
    /// are removed after that.
    pub(super) fn remove_dir(&self) -> io::Result<()> {
        let lock = match OpenOptions::new().read(true).open(self.lock()) {
            Ok(lock) => lock,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(fault) => return Err(fault),
        };
        lock_alone(&lock)?;
        let (ours, there) = (lock.metadata()?, fs::metadata(self.lock()));
        if !there.is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())) {
            return Ok(());
        }
        let gone = self.temp_dir(TempDirKind::Gone)?;
        fs::rename(&self.path, &gone)?;
        clear(&gone)
    }

    fn temp_dir(&self, why: TempDirKind) -> io::Result<PathBuf> {
        let runs = self.path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        Ok(temp_dir(runs, why))
    }
}

/// Creates the directory of a run. `None`: it exists already.
pub(super) fn create(
    settings: &ProcessSettings,
    spec: &RunSpec,
) -> Result<Option<(RunDir, File)>, RunError> {
    let folder = RunDir::new(&settings.runs(), spec.name);
    let job = job_of(settings, spec, &folder)?;
    let made = || -> io::Result<Option<File>> {
        let new = RunDir {
            path: folder.temp_dir(TempDirKind::New)?,
        };
        let filled = fill(&new, spec, &job);
        let lock = match filled {
            Ok(lock) => lock,
            Err(fault) => {
                clear(&new.path)?;
                return Err(fault);
            }
        };
        match rustix::fs::renameat_with(CWD, &new.path, CWD, &folder.path, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(Some(lock)),
            Err(rustix::io::Errno::EXIST) => {
                clear(&new.path)?;
                Ok(None)
            }
            Err(fault) => {
                clear(&new.path)?;
                Err(fault.into())
            }
        }
    };
    match made() {
        Ok(lock) => Ok(lock.map(|lock| (folder, lock))),
        Err(fault) if fault.kind() == io::ErrorKind::InvalidInput => {
            Err(RunError::Refused(fault.to_string()))
        }
        Err(fault) => Err(super::unavailable("write", &folder.path, &fault)),
    }
}

fn job_of(
    settings: &ProcessSettings,
    spec: &RunSpec,
    folder: &RunDir,
) -> Result<SupervisorJob, RunError> {
    let (program, arguments) = command(spec, &folder.vars())?;
    let bundle = match &spec.runnable {
        Runnable::Folder { path, .. } => Some(path.as_path()),
        Runnable::Image { .. } => None,
    };
    let (state, binding_state) = (folder.state(), folder.binding_state());
    let places = RunPaths {
        bundle,
        scratch: &folder.scratch(),
        result: &folder.result(),
        vars: &folder.vars(),
        secrets: &folder.secrets(),
        state: spec.state.as_ref().map(|_| state.as_path()),
        binding_state: spec.binding_state.as_ref().map(|_| binding_state.as_path()),
    };
    let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    Ok(SupervisorJob {
        run: spec.name.to_string(),
        orders: JOB_FORMAT,
        words: settings.supervisor.words().to_vec(),
        program,
        arguments,
        environment: environment(spec, &settings.environment, &places),
        user: settings.user.clone(),
        deadline_ms: millis(spec.limits.deadline),
        grace_ms: millis(settings.grace),
        output_bytes: spec.limits.output,
        limits: ProcessLimits {
            memory: spec.limits.memory,
            open_files: spec.limits.open_files,
            processes: spec.limits.processes,
        },
    })
}

fn fill(folder: &RunDir, spec: &RunSpec, job: &SupervisorJob) -> io::Result<File> {
    // Others may traverse it, but not list it.
    make_folder(&folder.path, 0o711)?;
    let lock = private(&folder.lock())?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    for mark in ["exit", "trouble"] {
        run_markers::reserve(&folder.path, mark)?;
    }
    private(&folder.spec())?.write_all(&serde_json::to_vec(job)?)?;
    for pipe in [folder.wake(), folder.alive()] {
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    }
    private(&folder.vars())?.write_all(&serde_json::to_vec(&spec.vars.0)?)?;
    for (path, state) in [
        (folder.state(), &spec.state),
        (folder.binding_state(), &spec.binding_state),
    ] {
        if let Some(state) = state {
            make_folder(&path, 0o700)?;
            write_state(&path, state)?;
        }
    }
    make_folder(&folder.secrets(), 0o700)?;
    for secret in &spec.secrets {
        write_secret(&folder.secrets(), secret)?;
    }
    make_folder(&folder.result(), 0o700)?;
    make_folder(&folder.scratch(), 0o700)?;
    Ok(lock)
}

/// Writes one file per key: texts unchanged, other values as JSON.
pub(crate) fn write_state(folder: &Path, state: &Vars) -> io::Result<()> {
    for (key, value) in &state.0 {
        let mut file = private(&folder.join(file_name(key)?))?;
        match value {
            Value::String(text) => file.write_all(text.as_bytes())?,
            other => file.write_all(&serde_json::to_vec(other)?)?,
        }
    }
    Ok(())
}

pub(crate) fn write_secret(folder: &Path, secret: &SecretFiles) -> io::Result<()> {
    let folder = folder.join(format!("apb-{}", file_name(&secret.name)?));
    make_folder(&folder, 0o700)?;
    for (key, value) in &secret.keys {
        private(&folder.join(file_name(key)?))?.write_all(value.expose_secret().as_bytes())?;
    }
    Ok(())
}

/// Checks a name that is used for a file.
fn file_name(name: &str) -> io::Result<&str> {
    let bad = name.is_empty() || name.len() > 200 || name == "." || name == "..";
    if bad || name.contains(['/', '\0']) {
        let shown: String = name.chars().take(64).collect();
        let sentence = format!(
            "The name {shown:?} cannot be a file's, and state and secrets are given as files: use 1 to 200 \
             bytes without a slash."
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, sentence));
    }
    Ok(name)
}

pub(crate) fn make_folder(path: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().mode(mode).create(path)?;
    // Independent of the umask, which could remove bits that others need.
    match mode & 0o077 {
        0 => Ok(()),
        _ => fs::set_permissions(path, fs::Permissions::from_mode(mode)),
    }
}

/// Creates a folder and its missing parents. Others may traverse them, independent of the umask, but not list them:
/// runs have users of their own.
///
/// # Errors
/// A folder cannot be created.
pub fn create_traversable_dir(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
        create_traversable_dir(above)?;
    }
    match make_folder(path, 0o711) {
        // Another process was faster.
        Err(_) if path.is_dir() => Ok(()),
        other => other,
    }
}

pub(crate) fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path)
}

fn lock_alone(lock: &File) -> io::Result<()> {
    for _ in 0..TRIES {
        match flock(lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            // A reader holds it only for a moment.
            Err(rustix::io::Errno::WOULDBLOCK) => {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            Err(fault) => return Err(fault.into()),
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

/// Removes a tree, including folders whose owner has no permissions on them.
pub(crate) fn clear(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(fault) if fault.kind() == io::ErrorKind::PermissionDenied => {
            make_accessible(path)?;
            fs::remove_dir_all(path)
        }
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn make_accessible(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            make_accessible(&entry.path())?;
        }
    }
    Ok(())
}
