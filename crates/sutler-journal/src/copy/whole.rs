//! Whole operations with their logs, several at a time.

use crate::operation::{Operation, OperationId};
use crate::store::{Store, StoreError};
use bytes::Bytes;
use std::sync::Arc;

/// Operations that are read at the same time.
const AT_ONCE: usize = 16;
/// Pieces of a log that are read at a time.
const CHUNKS: usize = 64;

/// An operation and its log.
pub(super) struct Whole {
    pub(super) operation: Operation,
    pub(super) log: Vec<Bytes>,
}

/// Those of these operations that are there, in their order.
pub(super) async fn wholes(
    store: &Arc<dyn Store>,
    ids: &[OperationId],
) -> Result<Vec<Whole>, StoreError> {
    let mut found = Vec::with_capacity(ids.len());
    for some in ids.chunks(AT_ONCE) {
        let reading: Vec<_> = some
            .iter()
            .map(|id| tokio::spawn(whole(Arc::clone(store), *id)))
            .collect();
        for task in reading {
            let read = task.await;
            let read = read.map_err(|cause| StoreError::caused("a read was broken off", cause))?;
            found.extend(read?);
        }
    }
    Ok(found)
}

async fn whole(store: Arc<dyn Store>, id: OperationId) -> Result<Option<Whole>, StoreError> {
    let Some(operation) = store.operation(id).await? else {
        return Ok(None);
    };
    let mut log: Vec<Bytes> = Vec::new();
    loop {
        let from = u32::try_from(log.len()).unwrap_or(u32::MAX);
        let chunks = store.read_log(id, from, CHUNKS).await?;
        let last = chunks.len() < CHUNKS;
        log.extend(chunks.into_iter().map(|chunk| chunk.text));
        if last {
            return Ok(Some(Whole { operation, log }));
        }
    }
}

/// Adds pieces to logs.
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
