//! Repeats a commit while its outcome is unknown.

use crate::commit::{Commit, CommitError};
use crate::store::Store;
use std::time::Duration;

/// Repeats before `Unknown` is returned.
const REPEATS: u32 = 6;

/// Commits, repeating the same commit while its outcome is unknown: for about two seconds.
///
/// # Errors
/// Those of [`Store::commit`]; `Unknown` only if no repeat resolved it.
pub async fn commit_until_known(store: &dyn Store, commit: &Commit) -> Result<(), CommitError> {
    let mut wait = Duration::from_millis(30);
    let mut answer = store.commit(commit).await;
    for _ in 0..REPEATS {
        let Err(CommitError::Unknown(error)) = answer else {
            return answer;
        };
        tracing::warn!(%error, "the outcome of a commit is not known yet; asking again");
        tokio::time::sleep(wait).await;
        wait *= 2;
        answer = match store.commit(commit).await {
            // This repeat was not written; the outcome of the first attempt is still unknown.
            Err(CommitError::NotWritten(error)) => Err(CommitError::Unknown(error)),
            other => other,
        };
    }
    answer
}
