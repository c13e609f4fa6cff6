//! Log of runs: every run of the bundle under test adds a line when it begins and one when it ends, and locks
//! its instance in between.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Name of the program that wraps the bundle's own.
pub(super) const ENTRY: &str = "counted";

/// The file with the records.
#[derive(Clone, Debug)]
pub(super) struct RunLog(PathBuf);

/// A run, as recorded by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunRecord {
    pub(super) action: String,
    pub(super) operation: String,
    pub(super) attempt: u32,
    pub(super) key: String,
    alone: bool,
    pub(super) exit: Option<i32>,
}

impl RunLog {
    /// Creates an empty log that every user can write, and the recording program in a bundle.
    pub(super) fn new(folder: &Path, bundle: &Path) -> Self {
        let path = folder.join("ledger");
        fs::write(&path, "").expect("a file");
        open_to_all(&path, 0o666);
        let locks = folder.join("locks");
        fs::create_dir(&locks).expect("a folder");
        open_to_all(&locks, 0o777);
        let text = format!(
            r#"#!/bin/sh
instance=$(sed -n 's/.*"_apb_service_instance_id":"\([^"]*\)".*/\1/p' "$SUTLER_VARS_FILE")
umask 0
exec 9>>"{locks}/$instance"
umask 077
if flock -n 9; then alone=alone; else alone=beside-another; fi
echo "begins $1 $SUTLER_OPERATION $SUTLER_ATTEMPT $SUTLER_IDEMPOTENCY_KEY $alone" >>"{path}"
"$SUTLER_BUNDLE_DIR/run" "$@"
exit=$?
echo "ends $SUTLER_OPERATION $SUTLER_ATTEMPT $exit" >>"{path}"
exit $exit
"#,
            locks = locks.display(),
            path = path.display(),
        );
        fs::write(bundle.join(ENTRY), text).expect("a file");
        open_to_all(&bundle.join(ENTRY), 0o755);
        Self(path)
    }

    /// Returns all runs in the order of their begin, and empties the log.
    pub(super) fn take(&self) -> Vec<RunRecord> {
        let text = fs::read_to_string(&self.0).expect("a ledger");
        fs::write(&self.0, "").expect("a file");
        read(&text)
    }
}

fn open_to_all(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
}

/// Parses the records of runs.
pub(super) fn read(text: &str) -> Vec<RunRecord> {
    let mut runs: Vec<RunRecord> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["begins", action, operation, attempt, key, alone] => runs.push(RunRecord {
                action: (*action).to_owned(),
                operation: (*operation).to_owned(),
                attempt: attempt.parse().expect("a number"),
                key: (*key).to_owned(),
                alone: *alone == "alone",
                exit: None,
            }),
            ["ends", operation, attempt, exit] => {
                let attempt: u32 = attempt.parse().expect("a number");
                let of =
                    |run: &&mut RunRecord| run.operation == *operation && run.attempt == attempt;
                let run = runs.iter_mut().rev().find(of).expect("it began");
                run.exit = exit.parse().ok();
            }
            _ => panic!("no line of a ledger: {line}"),
        }
    }
    runs
}

/// Checks the invariants of all runs of a lifecycle, for any kills.
///
/// # Panics
/// If a run happened twice, two ran at the same time, or a key does not belong to one operation.
pub(super) fn check(runs: &[RunRecord]) {
    let mut names = BTreeSet::new();
    let mut keys: BTreeMap<&str, &str> = BTreeMap::new();
    for run in runs {
        assert!(run.alone, "two runs at work at once: {run:?} in {runs:#?}");
        let twice = !names.insert((&run.operation, run.attempt));
        assert!(!twice, "one run was made twice: {run:?} in {runs:#?}");
        let other = keys.insert(&run.operation, &run.key);
        assert!(
            other.is_none_or(|key| key == run.key),
            "the key changed: {run:?}"
        );
    }
    let of_all: BTreeSet<&&str> = keys.values().collect();
    assert_eq!(
        of_all.len(),
        keys.len(),
        "operations share a key: {runs:#?}"
    );
}

#[cfg(test)]
mod tests {
    use super::{check, read};

    fn complains(text: &str) -> bool {
        let runs = read(text);
        std::panic::catch_unwind(|| check(&runs)).is_err()
    }

    #[test]
    fn runs_that_happened_once_each_are_valid() {
        let text = "begins provision a 1 k alone\nends a 1 0\nbegins bind b 1 l alone\nbegins bind b 2 l alone\nends b 2 0\n";
        assert!(!complains(text));
        let runs = read(text);
        let exits: Vec<Option<i32>> = runs.iter().map(|run| run.exit).collect();
        assert_eq!(exits, [Some(0), None, Some(0)]);
    }

    #[test]
    fn every_fault_is_reported() {
        for text in [
            "begins provision a 1 k alone\nbegins provision a 1 k alone\n",
            "begins provision a 1 k alone\nbegins provision a 2 k beside-another\n",
            "begins provision a 1 k alone\nbegins provision a 2 l alone\n",
            "begins provision a 1 k alone\nbegins bind b 1 k alone\n",
        ] {
            assert!(complains(text), "{text}");
        }
    }
}
