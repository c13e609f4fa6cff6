//! Locks among the commits of one process: commits of the same document or operation wait for each other.
//!
//! MongoDB has no queue for that: of two transactions that touch the same document, one is aborted. Locks
//! avoid this within a process. Between processes MongoDB aborts one, and it is repeated.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use sutler_journal::{Commit, Expect, Write};
use tokio::sync::OwnedMutexGuard;

/// Number of names above which unused ones are removed.
const NAMES_MAX: usize = 4096;

type Lock = Arc<tokio::sync::Mutex<()>>;

/// Names in use.
#[derive(Default)]
pub(crate) struct CommitLocks(Mutex<HashMap<Vec<u8>, Lock>>);

impl CommitLocks {
    /// Locks every name of a commit. All commits lock in the same order, so there is no deadlock.
    pub(crate) async fn hold(&self, commit: &Commit) -> Vec<OwnedMutexGuard<()>> {
        let mut held = Vec::new();
        for lock in self.locks(names(commit)) {
            held.push(lock.lock_owned().await);
        }
        held
    }

    fn locks(&self, names: BTreeSet<Vec<u8>>) -> Vec<Lock> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() > NAMES_MAX {
            all.retain(|_, lock| Arc::strong_count(lock) > 1);
        }
        let locks = names
            .into_iter()
            .map(|it| all.entry(it).or_default().clone());
        locks.collect()
    }
}

/// The names of everything a commit concerns. Keys have separators, ids of operations have another length:
/// no two subjects share a name.
fn names(commit: &Commit) -> BTreeSet<Vec<u8>> {
    let mut names = BTreeSet::new();
    for expect in commit.expects() {
        names.insert(match expect {
            Expect::Absent(key) | Expect::Version(key, _) | Expect::Unchanged(key, _) => {
                document(key.as_bytes())
            }
            Expect::Fence(id, _) => id.0.as_bytes().to_vec(),
        });
    }
    for write in commit.writes() {
        names.insert(match write {
            Write::Put { key, .. } | Write::Remove(key) => document(key.as_bytes()),
            Write::Start(new) => new.id.0.as_bytes().to_vec(),
            Write::Import(operation) => operation.row.id.0.as_bytes().to_vec(),
            Write::Advance { operation, .. } | Write::Reseal { operation, .. } => {
                operation.0.as_bytes().to_vec()
            }
            Write::Cancel(id) | Write::Wake(id) | Write::Unpin(id) => id.0.as_bytes().to_vec(),
        });
    }
    // A concurrent repeat of a commit waits for the first.
    names.insert([b"commit".as_slice(), commit.id().0.as_bytes()].concat());
    names
}

fn document(key: &[u8]) -> Vec<u8> {
    [b"document", key].concat()
}
