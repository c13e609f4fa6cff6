//! Operations with their logs, several at a time.

use crate::operation::{Operation, OperationId};
use crate::query::LogChunk;
use crate::store::{Store, StoreError};
use bytes::Bytes;
use std::future::Future;
use std::sync::Arc;

/// Operations read concurrently.
const AT_ONCE: usize = 16;
/// Chunks of a log per read.
const CHUNKS: usize = 64;

/// An operation and its log.
pub(super) struct OperationWithLog {
    pub(super) operation: Operation,
    pub(super) log: Vec<Bytes>,
}

/// Reads these operations with their logs, in order; absent ones are omitted.
pub(super) async fn read_with_logs(
    store: &Arc<dyn Store>,
    ids: &[OperationId],
) -> Result<Vec<OperationWithLog>, StoreError> {
    let mut found = Vec::with_capacity(ids.len());
    for some in ids.chunks(AT_ONCE) {
        let reading: Vec<_> = some
            .iter()
            .map(|id| tokio::spawn(read_with_log(Arc::clone(store), *id)))
            .collect();
        for task in reading {
            let read = task.await;
            let read = read.map_err(|cause| StoreError::caused("a read was broken off", cause))?;
            found.extend(read?);
        }
    }
    Ok(found)
}

async fn read_with_log(
    store: Arc<dyn Store>,
    id: OperationId,
) -> Result<Option<OperationWithLog>, StoreError> {
    let Some(operation) = store.operation(id).await? else {
        return Ok(None);
    };
    let log = pieces(|from| store.read_log(id, from, CHUNKS)).await?;
    Ok(Some(OperationWithLog { operation, log }))
}

/// All chunks of a log; `read` returns up to [`CHUNKS`] of them from a number on. Numbers may be missing.
async fn pieces<F>(read: impl Fn(u32) -> F) -> Result<Vec<Bytes>, StoreError>
where
    F: Future<Output = Result<Vec<LogChunk>, StoreError>>,
{
    let mut log: Vec<Bytes> = Vec::new();
    let mut from = 0;
    loop {
        let chunks = read(from).await?;
        let bytes_after = match chunks.last() {
            Some(last) if chunks.len() >= CHUNKS => last.number.checked_add(1),
            Some(_) | None => None,
        };
        log.extend(chunks.into_iter().map(|chunk| chunk.text));
        match bytes_after {
            Some(number) => from = number,
            None => return Ok(log),
        }
    }
}

/// Appends chunks to logs.
pub(super) async fn append(
    store: &dyn Store,
    id: OperationId,
    pieces: &[Bytes],
) -> Result<(), StoreError> {
    for piece in pieces {
        store.append_log(id, piece.clone()).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{CHUNKS, pieces};
    use crate::query::LogChunk;
    use bytes::Bytes;
    use std::future::ready;

    /// A log whose chunks contain their numbers.
    fn log(numbers: impl Iterator<Item = u32>) -> Vec<LogChunk> {
        let chunk = |number: u32| LogChunk {
            number,
            text: Bytes::from(number.to_string()),
        };
        numbers.map(chunk).collect()
    }

    #[tokio::test]
    async fn every_piece_is_read_once_though_numbers_are_missing() {
        for missing in [None, Some(0), Some(3), Some(63), Some(64), Some(65)] {
            for count in [0, 1, 63, 64, 65, 128, 200] {
                let numbers = (0..count).filter(|number| Some(*number) != missing);
                let stored = log(numbers);
                let read = pieces(|from| {
                    let found = stored.iter().filter(|chunk| chunk.number >= from);
                    ready(Ok(found.take(CHUNKS).cloned().collect()))
                });
                let read = read.await.expect("a log");
                let texts: Vec<Bytes> = stored.iter().map(|chunk| chunk.text.clone()).collect();
                assert_eq!(read, texts, "without {missing:?} of {count}");
            }
        }
    }
}
