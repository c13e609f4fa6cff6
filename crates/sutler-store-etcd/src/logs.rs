//! Logs of runs: numbered chunks beside the operations, outside commits.
//!
//! A chunk's value begins with how many bytes of log stand before it, so that the last chunk alone
//! tells whether there is room for another.

use crate::client::Effect;
use crate::codec::{Reader, damaged};
use crate::store::EtcdStore;
use crate::wire::{Compare, Range, Step, Txn};
use bytes::Bytes;
use sutler_journal::{LOG_BYTES_MAX, LOG_CHUNK_BYTES_MAX, LogChunk, OperationId, StoreError};

/// How often a chunk looks for its place because others wrote to the same log.
const TRIES_MAX: usize = 100;
/// Most chunks that are read at a time: as many as the longest log has if none is tiny.
const CHUNKS_MAX: usize = 1000;

impl EtcdStore {
    pub(crate) async fn add_to_log(
        &self,
        operation: OperationId,
        mut text: Bytes,
    ) -> Result<(), StoreError> {
        if text.is_empty() {
            return Ok(());
        }
        text.truncate(LOG_CHUNK_BYTES_MAX);
        for _ in 0..TRIES_MAX {
            let mut last = Range::between(self.keys.log(operation)).limit(1);
            last.sort_order = Some("DESCEND");
            let found = self.client.range(&last).await?;
            let (number, before) = match found.kvs.first() {
                Some(kv) => {
                    let number = self.keys.chunk_number(&kv.key.0);
                    let number = number.ok_or_else(|| damaged("a log"))?;
                    let (before, chunk) = read_chunk(&kv.value.0)?;
                    (number + 1, before + chunk.len())
                }
                None => (0, 0),
            };
            if before + text.len() > LOG_BYTES_MAX {
                return Ok(());
            }
            let place = self.keys.log_chunk(operation, number);
            let exists = self.keys.operation(operation);
            let mut value = (before as u64).to_be_bytes().to_vec();
            value.extend_from_slice(&text);
            // What was swept must not come back as a log without an operation.
            let txn = Txn {
                compare: vec![
                    Compare::present(exists.clone()),
                    Compare::absent(place.clone()),
                ],
                success: vec![Step::put(place, value)],
                failure: vec![Step::Range(Range::one(exists))],
            };
            let answer = self.client.txn(&txn, Effect::Writes).await?;
            let gone = answer.ranges().any(|found| found.kvs.is_empty());
            if answer.succeeded || gone {
                return Ok(());
            }
        }
        Err(StoreError::new(
            "others wrote to this log faster than this chunk could; try it again",
        ))
    }

    pub(crate) async fn log(
        &self,
        operation: OperationId,
        from: u32,
        limit: usize,
    ) -> Result<Vec<LogChunk>, StoreError> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let (_, to) = self.keys.log(operation);
        let first = self.keys.log_chunk(operation, from);
        let range = Range::between((first, to)).limit(limit.min(CHUNKS_MAX));
        let found = self.client.range(&range).await?;
        let chunks = found.kvs.iter().map(|kv| {
            let number = self.keys.chunk_number(&kv.key.0);
            Ok(LogChunk {
                number: number.ok_or_else(|| damaged("a log"))?,
                text: read_chunk(&kv.value.0)?.1,
            })
        });
        chunks.collect()
    }
}

fn read_chunk(value: &Bytes) -> Result<(usize, Bytes), StoreError> {
    let mut reader = Reader(value);
    let before = reader.time().and_then(|it| usize::try_from(it).ok());
    let before = before.ok_or_else(|| damaged("a log"))?;
    Ok((before, value.slice_ref(reader.rest())))
}
