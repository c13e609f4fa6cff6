//! The mark of a store that was moved: one document of the source, written when its copy is finished.
//!
//! Source and target hold the same unfinished operations, so brokers on both would execute them twice. A broker
//! refuses a marked store ([`check_usable`]); [`reopen`] removes the mark. Not here: the state of the copy itself, a
//! document of the target (`copy_state.rs`).

use super::copy_state::{KIND, is_ours, realm};
use super::{CopyError, Side, StoreCopy, is_unfinished};
use crate::commit::{Commit, CommitError, Write};
use crate::commit_retry::commit_until_known;
use crate::key::Key;
use crate::printable::printable;
use crate::query::{Change, Subject};
use crate::store::{Store, StoreError};
use serde::{Deserialize, Serialize};

/// Version of the document's format.
const FORM: u32 = 1;

/// Why no broker may use a store.
#[derive(Debug, thiserror::Error)]
pub enum UnusableStoreError {
    /// It is the target of an unfinished copy.
    #[error(
        "a copy into this store is not finished: finish it with `sutler store copy --finish`, or use the store \
         that it is copied from"
    )]
    Unfinished,
    /// It is the source of a finished copy.
    #[error(
        "this store was moved to {0}: use that one. To use this one again, make sure that no broker uses the other, \
         and run `sutler store reopen`"
    )]
    Moved(String),
    /// The store did not answer.
    #[error("the store cannot be used")]
    Store(#[from] StoreError),
}

/// The document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct MovedMark {
    form: u32,
    /// Name of the target, without secrets.
    to: String,
}

impl MovedMark {
    /// A mark of a later program is a mark too.
    fn target_of(body: &[u8]) -> String {
        let mark: Result<Self, _> = serde_json::from_slice(body);
        mark.map_or_else(|_| "another store".to_owned(), |it| it.to)
    }
}

fn key() -> Key {
    Key::new(&realm(), KIND, &["moved"]).expect("a valid key")
}

/// Printable name of the store that this one was moved to, if it is the source of a finished copy.
///
/// # Errors
/// The store did not answer.
pub async fn moved_to(store: &dyn Store) -> Result<Option<String>, StoreError> {
    Ok(target_of(store).await?.map(|it| printable(&it)))
}

/// The name as it is in the mark, to be compared and not to be printed.
async fn target_of(store: &dyn Store) -> Result<Option<String>, StoreError> {
    let found = store.get(&key()).await?;
    Ok(found.map(|document| MovedMark::target_of(&document.body)))
}

/// Whether a broker may use a store: it is not the target of an unfinished copy, and was not moved.
///
/// # Errors
/// See [`UnusableStoreError`].
pub async fn check_usable(store: &dyn Store) -> Result<(), UnusableStoreError> {
    if is_unfinished(store).await? {
        return Err(UnusableStoreError::Unfinished);
    }
    match moved_to(store).await? {
        Some(to) => Err(UnusableStoreError::Moved(to)),
        None => Ok(()),
    }
}

/// Adds to a commit that the store was not moved. For commits of a process that holds no lease: a lease keeps a copy
/// from being finished.
#[must_use]
pub fn expect_not_moved(commit: Commit) -> Commit {
    commit.absent(key())
}

/// Makes a store usable that was moved; returns the name of the other store, or `None` if it was not moved.
///
/// # Errors
/// The store did not answer.
pub async fn reopen(store: &dyn Store) -> Result<Option<String>, CommitError> {
    let found = moved_to(store).await.map_err(CommitError::NotWritten)?;
    if found.is_some() {
        let remove = Commit::new().write(Write::Remove(key()));
        commit_until_known(store, &remove).await?;
    }
    Ok(found)
}

/// Whether a change of the source is one of its mark.
pub(super) fn is_of_mark(change: &Change) -> bool {
    match &change.subject {
        Subject::Put(key) | Subject::Removed(key) => is_ours(key),
        Subject::Operation(_) => false,
    }
}

/// Whether the source was moved to this target; fails if it was moved to another store.
pub(super) async fn is_moved_to(source: &dyn Store, target: &str) -> Result<bool, CopyError> {
    let to = target_of(source).await;
    match to.map_err(CopyError::of(Side::Source))? {
        Some(to) if to != target => Err(CopyError::Moved(printable(&to))),
        found => Ok(found.is_some()),
    }
}

impl StoreCopy {
    /// Marks the source as moved to the target.
    pub(super) async fn mark_source(&self) -> Result<(), CopyError> {
        let mark = MovedMark {
            form: FORM,
            to: self.target_name.clone(),
        };
        let body = serde_json::to_vec(&mark).expect("our own types serialise");
        let put = Write::Put {
            key: key(),
            terms: Vec::new(),
            body: body.into(),
        };
        self.commit_to_source(Commit::new().write(put)).await
    }

    /// Removes the mark of the source.
    pub(super) async fn unmark_source(&self) -> Result<(), CopyError> {
        let remove = Commit::new().write(Write::Remove(key()));
        self.commit_to_source(remove).await
    }

    async fn commit_to_source(&self, commit: Commit) -> Result<(), CopyError> {
        match commit_until_known(&*self.source, &commit).await {
            // Nothing is expected of the source.
            Ok(()) | Err(CommitError::Stale(_)) => Ok(()),
            Err(CommitError::NotWritten(cause) | CommitError::Unknown(cause)) => {
                Err(CopyError::of(Side::Source)(cause))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MovedMark;

    #[test]
    fn a_mark_of_a_later_program_is_a_mark() {
        assert_eq!(
            MovedMark::target_of(br#"{"form":9,"to":"etcd://a/b","x":1}"#),
            "etcd://a/b"
        );
        assert_eq!(MovedMark::target_of(b"\xff"), "another store");
    }
}
