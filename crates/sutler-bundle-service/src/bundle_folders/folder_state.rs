//! State of one bundle's folder between scans. Time is an argument; nothing is listed here.
//!
//! Scans are `bundle_folders.rs`.

use super::fingerprint::{self, Fingerprint};
use crate::version_store::{Bundle, VersionStoreError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Number of consecutive scans without the bundle before it is gone.
const MISSING_SCANS: u32 = 2;
/// First wait before a failed read is repeated; doubles up to the maximum.
const AGAIN_FIRST: Duration = Duration::from_secs(1);
const AGAIN_LAST: Duration = Duration::from_secs(60);

/// State of one bundle's folder.
#[derive(Default)]
pub(super) struct FolderState {
    /// Fingerprint when it was last copied or refused.
    taken: Option<Fingerprint>,
    /// Fingerprint of the last scan.
    scanned: Option<Fingerprint>,
    /// The offered version.
    pub(super) good: Option<Arc<Bundle>>,
    /// Fault of the last read.
    fault: Option<String>,
    /// Why the folder cannot be read now.
    read_error: Option<String>,
    missing: Option<MissingSince>,
    again: Option<RetryAt>,
}

/// Since when, and in how many consecutive scans, a bundle is missing.
struct MissingSince {
    since: Instant,
    scans: u32,
}

/// Time of the next retry, and the wait before it.
struct RetryAt {
    at: Instant,
    wait: Duration,
}

impl RetryAt {
    fn after(before: Option<&Self>, now: Instant) -> Self {
        let wait = before.map_or(AGAIN_FIRST, |it| (it.wait * 2).min(AGAIN_LAST));
        Self {
            at: now + wait,
            wait,
        }
    }
}

impl FolderState {
    /// The folder has a manifest.
    pub(super) fn is_there(&mut self) {
        self.missing = None;
    }

    /// The folder was not listed. Returns whether its bundle is kept for now.
    pub(super) fn is_missing(&mut self, now: Instant, grace: Duration) -> bool {
        let missing = self.missing.get_or_insert(MissingSince {
            since: now,
            scans: 0,
        });
        missing.scans += 1;
        let for_long = now.duration_since(missing.since) >= grace;
        let gone = missing.scans >= MISSING_SCANS && for_long;
        self.good.is_some() && !gone
    }

    /// Whether it was missing in the last scan.
    pub(super) fn was_missing(&self) -> bool {
        self.missing.is_some()
    }

    /// Its fault, with the version that is still offered.
    pub(super) fn fault(&self, folder: &Path) -> Option<String> {
        if self.was_missing() {
            let folder = folder.display();
            return Some(format!(
                "{folder} has no manifest any more: its last good version is offered for a moment, and \
                 withdrawn if that lasts"
            ));
        }
        let sentence = self.read_error.as_ref().or(self.fault.as_ref())?;
        let what = match self.good {
            Some(_) => "its last good version is offered",
            None => "it is not offered",
        };
        Some(format!("{sentence} ({what})"))
    }

    /// Reads the fingerprint, and copies the bundle if it has changed and stopped changing, or if an earlier read
    /// failed because of the disk.
    pub(super) fn examine(
        &mut self,
        folder: &Path,
        now: Instant,
        take_in: &dyn Fn(&Path) -> Result<Arc<Bundle>, VersionStoreError>,
    ) {
        if self.was_missing() {
            return;
        }
        let fingerprint = match fingerprint::fingerprint(folder) {
            Ok(fingerprint) => fingerprint,
            Err(sentence) => {
                self.read_error = Some(sentence);
                return;
            }
        };
        self.read_error = None;
        let due = self.again.as_ref().is_some_and(|it| it.at <= now);
        let first = self.taken.is_none() && self.scanned.is_none();
        let at_rest = first || self.scanned == Some(fingerprint);
        self.scanned = Some(fingerprint);
        if at_rest && (due || self.taken != Some(fingerprint)) {
            self.taken = Some(fingerprint);
            self.take(folder, now, take_in);
        }
    }

    fn take(
        &mut self,
        folder: &Path,
        now: Instant,
        take_in: &dyn Fn(&Path) -> Result<Arc<Bundle>, VersionStoreError>,
    ) {
        let sentence = match catch_panic(|| take_in(folder)) {
            Ok(Ok(bundle)) => {
                self.good = Some(bundle);
                (self.fault, self.again) = (None, None);
                return;
            }
            Ok(Err(fault)) => {
                let again = fault.is_passing();
                self.again = again.then(|| RetryAt::after(self.again.as_ref(), now));
                fault.to_string()
            }
            Err(sentence) => {
                self.again = Some(RetryAt::after(self.again.as_ref(), now));
                sentence
            }
        };
        self.fault = Some(format!("{}: {sentence}", folder.display()));
    }
}

/// Runs a function and turns its panic into an error.
pub(super) fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| {
        "a fault in this program, whose words are on standard error; please report it".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::{AGAIN_FIRST, FolderState};
    use crate::version_store::{Bundle, VersionStore, VersionStoreError};
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::time::{Duration, Instant};
    use tempfile::TempDir;

    const MANIFEST: &str = "version: 1.0\nname: one\ndescription: One.\nplans:\n  - name: small\n    description: Small.\n";

    fn fixture() -> (TempDir, PathBuf, Arc<Bundle>) {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("one");
        fs::create_dir(&folder).expect("a folder");
        fs::write(folder.join("bundle.yml"), MANIFEST).expect("a manifest");
        let version_store = VersionStore::open(&root.path().join("work")).expect("a version store");
        let bundle = version_store.take_in(&folder).expect("a bundle");
        (root, folder, bundle)
    }

    fn full(path: &Path) -> Result<Arc<Bundle>, VersionStoreError> {
        let error = std::io::Error::from(std::io::ErrorKind::StorageFull);
        Err(VersionStoreError::Disk(path.to_owned(), error))
    }

    #[test]
    fn a_read_that_failed_because_of_the_disk_is_retried_after_a_while() {
        let (_root, folder, bundle) = fixture();
        let (mut known, now) = (FolderState::default(), Instant::now());
        known.examine(&folder, now, &full);
        assert!(
            known
                .fault(&folder)
                .is_some_and(|it| it.contains("not offered"))
        );
        let good = |_: &Path| Ok(bundle.clone());
        known.examine(&folder, now, &good);
        assert!(known.good.is_none(), "not at once");
        known.examine(&folder, now + AGAIN_FIRST, &good);
        assert!(known.good.is_some());
        assert_eq!(known.fault(&folder), None);
        known.examine(&folder, now + AGAIN_FIRST * 9, &full);
        assert_eq!(
            known.fault(&folder),
            None,
            "what is in is not taken in again"
        );
    }

    #[test]
    fn a_panic_is_a_fault_of_one_bundle_and_ends_nothing() {
        let (_root, folder, bundle) = fixture();
        let (mut known, now) = (FolderState::default(), Instant::now());
        known.examine(&folder, now, &|_| panic!("a test said so"));
        assert!(
            known
                .fault(&folder)
                .is_some_and(|it| it.contains("report it"))
        );
        known.examine(&folder, now + AGAIN_FIRST, &|_| Ok(bundle.clone()));
        assert!(known.good.is_some());
    }

    #[test]
    fn a_missing_bundle_is_gone_after_two_scans_and_the_grace() {
        let (_root, folder, bundle) = fixture();
        let (mut known, now) = (FolderState::default(), Instant::now());
        let grace = Duration::from_secs(3);
        assert!(!known.is_missing(now, grace), "it never was there");
        known = FolderState::default();
        known.examine(&folder, now, &|_| Ok(bundle.clone()));
        assert!(known.is_missing(now, grace));
        assert!(known.is_missing(now + grace / 2, grace));
        known.is_there();
        assert!(known.is_missing(now + grace * 2, grace), "counted anew");
        assert!(known.is_missing(now + grace * 2, grace));
        assert!(!known.is_missing(now + grace * 3, grace));
        assert!(
            known
                .fault(&folder)
                .is_some_and(|it| it.contains("withdrawn"))
        );
    }
}
