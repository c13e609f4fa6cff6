//! Job of a supervisor, written into the run directory. It holds paths of secrets, never secrets.
//!
//! Written by `run_dir.rs`, executed by `supervise.rs`.

use crate::run_spec::{RunSpec, Runnable};
use crate::runner::RunError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// User of runs, if the broker is root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunUser {
    /// The broker's user.
    Own,
    /// One user for all runs.
    Fixed {
        /// User id.
        uid: u32,
        /// Group id.
        gid: u32,
    },
    /// One of these users per concurrent run: runs cannot access each other, and limits on processes apply to each
    /// run separately.
    Range {
        /// First user id.
        first: u32,
        /// Number of ids: the maximum of concurrent runs.
        count: u32,
    },
}

/// Ids that neither hosts nor containers usually assign.
const FIRST: u32 = 70_000;
const COUNT: u32 = 1_000;
const NOBODY: u32 = 65_534;

impl RunUser {
    /// If the broker is root: a user per run, or `nobody` for all in a container without such ids. Otherwise the
    /// broker's user.
    #[must_use]
    pub fn unprivileged() -> Self {
        if !rustix::process::geteuid().is_root() {
            return Self::Own;
        }
        if mapped_here(FIRST, COUNT) {
            Self::Range {
                first: FIRST,
                count: COUNT,
            }
        } else {
            Self::Fixed {
                uid: NOBODY,
                gid: NOBODY,
            }
        }
    }
}

/// Whether the user namespace of this process maps all of these ids.
pub(crate) fn mapped_here(first: u32, count: u32) -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    mapped(&map, first, count)
}

fn mapped(map: &str, first: u32, count: u32) -> bool {
    let (first, end) = (u64::from(first), u64::from(first) + u64::from(count));
    map.lines().any(|line| {
        let numbers: Vec<u64> = line
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        matches!(numbers[..], [inside, _, length] if inside <= first && end <= inside + length)
    })
}

/// Job of a supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SupervisorJob {
    /// Format of the job.
    #[serde(default)]
    pub(super) orders: u32,
    /// Name of the run.
    pub(super) run: String,
    /// First arguments of the supervisor's executable, which starts itself again.
    pub(super) words: Vec<String>,
    pub(super) program: String,
    pub(super) arguments: Vec<String>,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) user: RunUser,
    pub(super) deadline_ms: u64,
    pub(super) grace_ms: u64,
    pub(super) output_bytes: u64,
    pub(super) limits: ProcessLimits,
}

/// Limits of a process and its descendants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProcessLimits {
    pub(super) memory: u64,
    pub(super) open_files: u64,
    pub(super) processes: u64,
}

/// Program and arguments. Words of the entry point that name a file in the bundle's folder become absolute paths,
/// because a run works in a folder of its own.
pub(super) fn command(spec: &RunSpec, vars: &Path) -> Result<(String, Vec<String>), RunError> {
    let Runnable::Folder { path, entrypoint } = &spec.runnable else {
        return Err(RunError::Refused(
            "An image cannot be run as a process: configure a container engine for it.".to_owned(),
        ));
    };
    let mut words = entrypoint.iter().map(|word| in_folder(path, word));
    let Some(program) = words.next() else {
        return Err(RunError::Refused(
            "The bundle has no entry point: name one in its manifest.".to_owned(),
        ));
    };
    let mut arguments: Vec<String> = words.collect();
    arguments.extend([
        spec.action.as_str().to_owned(),
        "--extra-vars".to_owned(),
        format!("@{}", vars.display()),
    ]);
    Ok((program, arguments))
}

fn in_folder(folder: &Path, word: &str) -> String {
    let plain = !word.is_empty() && !word.starts_with(['/', '-']) && !word.contains("..");
    let there: PathBuf = folder.join(word);
    if plain && there.exists() {
        there.display().to_string()
    } else {
        word.to_owned()
    }
}

/// Paths of a run for its environment.
pub(crate) struct RunPaths<'a> {
    pub(crate) bundle: Option<&'a Path>,
    pub(crate) scratch: &'a Path,
    pub(crate) result: &'a Path,
    pub(crate) vars: &'a Path,
    pub(crate) secrets: &'a Path,
    pub(crate) state: Option<&'a Path>,
    pub(crate) binding_state: Option<&'a Path>,
}

/// Complete environment of a run: only `base` comes from the broker's own.
pub(crate) fn environment(
    spec: &RunSpec,
    base: &BTreeMap<String, String>,
    places: &RunPaths<'_>,
) -> BTreeMap<String, String> {
    let run = spec.name.to_string();
    let mut all = base.clone();
    all.insert("POD_NAME".to_owned(), format!("bundle-{run}"));
    all.insert("POD_NAMESPACE".to_owned(), "sutler".to_owned());
    all.extend(spec.environment.clone());
    let mut set = |name: &str, value: String| all.insert(name.to_owned(), value);
    let shown = |path: &Path| path.display().to_string();
    set("HOME", shown(places.scratch));
    set("TMPDIR", shown(places.scratch));
    set(super::process_tree::MARK, run);
    set("SUTLER_ACTION", spec.action.to_string());
    set("SUTLER_OPERATION", spec.name.operation.to_string());
    set("SUTLER_ATTEMPT", spec.name.attempt.to_string());
    set("SUTLER_IDEMPOTENCY_KEY", spec.idempotency_key.clone());
    set("SUTLER_RESULT_DIR", shown(places.result));
    set("SUTLER_VARS_FILE", shown(places.vars));
    set("SUTLER_SECRETS_DIR", shown(places.secrets));
    if let Some(bundle) = places.bundle {
        set("SUTLER_BUNDLE_DIR", shown(bundle));
    }
    if let Some(state) = places.state {
        set("BUNDLE_STATE_LOCATION", shown(state));
    }
    if let Some(state) = places.binding_state {
        set("SUTLER_BINDING_STATE_LOCATION", shown(state));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{COUNT, FIRST, in_folder, mapped};

    #[test]
    fn a_range_of_users_is_there_or_it_is_not() {
        assert!(mapped("         0          0 4294967295\n", FIRST, COUNT));
        assert!(!mapped("0 100000 65536\n", FIRST, COUNT));
        assert!(mapped("0 1000 1\n1 100000 200000\n", FIRST, COUNT));
        assert!(!mapped("", FIRST, COUNT));
    }

    #[test]
    fn words_that_name_something_in_the_bundle_mean_that() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("bin")).expect("made");
        std::fs::write(folder.path().join("bin/run"), "").expect("written");
        let there = folder.path().join("bin/run").display().to_string();
        for (word, means) in [
            ("bin/run", there.as_str()),
            ("python3", "python3"),
            ("/bin/run", "/bin/run"),
            ("bin/../bin/run", "bin/../bin/run"),
            ("-x", "-x"),
            ("", ""),
        ] {
            assert_eq!(in_folder(folder.path(), word), means);
        }
    }
}
