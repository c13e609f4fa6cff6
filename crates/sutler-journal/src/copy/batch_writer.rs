//! Commits of a copy: as many writes as fit, together with the state of the copy.
//!
//! Every commit expects the state as it was read, so of two processes that copy into one target one
//! fails. Not here: which writes.

use super::copy_state::{self, CopyState};
use super::{CopyError, Side};
use crate::commit::{BYTES_MAX, Commit, CommitError, StaleItem, WRITES_MAX, Write, bytes_of};
use crate::commit_retry::commit_until_known;
use crate::document::Version;
use crate::store::Store;
use std::ops::Range;
use std::sync::Arc;

/// Bytes and writes reserved for the state.
const STATE_BYTES: usize = 8 * 1024;
const STATE_WRITES: usize = 1;

/// Result of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BatchResult {
    /// It was written.
    Written,
    /// An expectation did not hold; nothing was written.
    Unfit,
}

/// Splits writes of these sizes into one range per commit. A write that is too large gets its own.
pub(super) fn batches(sizes: &[usize]) -> Vec<Range<usize>> {
    let (most, room) = (WRITES_MAX - STATE_WRITES, BYTES_MAX - STATE_BYTES);
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut bytes = 0;
    for (n, size) in sizes.iter().enumerate() {
        match ranges.last_mut() {
            Some(range) if range.len() < most && bytes + size <= room => {
                range.end = n + 1;
                bytes += size;
            }
            Some(_) | None => {
                ranges.push(n..n + 1);
                bytes = *size;
            }
        }
    }
    ranges
}

/// Sizes of writes, for [`batches`].
pub(super) fn sizes<'w>(writes: impl IntoIterator<Item = &'w Write>) -> Vec<usize> {
    writes.into_iter().map(bytes_of).collect()
}

/// Writes to the target and maintains the state.
pub(super) struct BatchWriter {
    target: Arc<dyn Store>,
    version: Version,
    pub(super) state: CopyState,
}

impl BatchWriter {
    /// Continues with an existing state.
    pub(super) fn over(target: &Arc<dyn Store>, version: Version, state: CopyState) -> Self {
        Self {
            target: Arc::clone(target),
            version,
            state,
        }
    }

    /// Writes the first state.
    pub(super) async fn first(
        target: &Arc<dyn Store>,
        state: CopyState,
    ) -> Result<Self, CopyError> {
        let commit = Commit::new().insert(copy_state::key(), Vec::new(), state.body());
        let version = Version(commit.id());
        let writer = Self::over(target, version, state);
        match writer.commit_until_known(&commit).await? {
            BatchResult::Written => Ok(writer),
            BatchResult::Unfit => Err(CopyError::TakenOver),
        }
    }

    /// Writes these together with the next state, all or nothing. If one of them leaves no room for the
    /// state, it is written first, and is repeated if necessary.
    pub(super) async fn write(
        &mut self,
        writes: Vec<Write>,
        next: CopyState,
    ) -> Result<BatchResult, CopyError> {
        let state = Commit::new().replace(copy_state::key(), self.version, Vec::new(), next.body());
        let size: usize = writes.iter().map(bytes_of).sum();
        let fits = size + STATE_BYTES <= BYTES_MAX;
        let last = match fits {
            true => writes.into_iter().fold(state, Commit::write),
            false => {
                let alone = Commit::new().unchanged(copy_state::key(), self.version);
                let alone = writes.into_iter().fold(alone, Commit::write);
                if alone.check().is_err() {
                    return Err(CopyError::TooLarge(subject(&alone)));
                }
                if self.commit_until_known(&alone).await? == BatchResult::Unfit {
                    return Ok(BatchResult::Unfit);
                }
                state
            }
        };
        let fit = self.commit_until_known(&last).await?;
        if fit == BatchResult::Written {
            self.version = Version(last.id());
            self.state = next;
        }
        Ok(fit)
    }

    async fn commit_until_known(&self, commit: &Commit) -> Result<BatchResult, CopyError> {
        match commit_until_known(&*self.target, commit).await {
            Ok(()) => Ok(BatchResult::Written),
            // The state is the first expectation, and the only one.
            Err(CommitError::Stale(StaleItem::Expect(_))) => Err(CopyError::TakenOver),
            Err(CommitError::Stale(StaleItem::Write(_))) => Ok(BatchResult::Unfit),
            Err(CommitError::NotWritten(cause) | CommitError::Unknown(cause)) => {
                Err(CopyError::of(Side::Target)(cause))
            }
        }
    }
}

/// Subject of a commit's only write, for an error.
fn subject(commit: &Commit) -> String {
    match commit.writes().first() {
        Some(Write::Put { key, .. }) => format!("the document {key:?}"),
        Some(Write::Import(operation)) => format!("the operation {}", operation.row.id),
        Some(Write::Reseal { operation, .. }) => format!("the operation {operation}"),
        Some(
            Write::Remove(_)
            | Write::Start(_)
            | Write::Advance { .. }
            | Write::Cancel(_)
            | Write::Wake(_)
            | Write::Unpin(_),
        )
        | None => "a change".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{STATE_BYTES, batches};
    use crate::commit::{BYTES_MAX, WRITES_MAX};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_write_is_in_one_batch_that_fits(
            sizes in prop::collection::vec(
                prop_oneof![4 => 0..20_000_usize, 1 => 0..BYTES_MAX],
                0..400,
            ),
        ) {
            let ranges = batches(&sizes);
            let all: Vec<usize> = ranges.iter().cloned().flatten().collect();
            prop_assert_eq!(all, (0..sizes.len()).collect::<Vec<_>>());
            for range in ranges {
                let bytes: usize = sizes[range.clone()].iter().sum();
                prop_assert!(range.len() < WRITES_MAX);
                prop_assert!(range.len() == 1 || bytes + STATE_BYTES <= BYTES_MAX);
            }
        }
    }
}
