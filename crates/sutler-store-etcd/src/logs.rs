//! Logs of runs: numbered chunks, written outside commits.
//!
//! A separate value holds the number of chunks and their total length; every append requires that it
//! is unchanged.

use crate::client::RequestEffect;
use crate::codec::{ByteReader, damaged, put_number};
use crate::store::EtcdStore;
use crate::wire::{Compare, Range, RequestOp, Txn};
use bytes::Bytes;
use sutler_journal::{LOG_BYTES_MAX, LOG_CHUNK_BYTES_MAX, LogChunk, OperationId, StoreError};

/// Attempts to append a chunk while others append to the same log.
const TRIES_MAX: usize = 100;
/// Maximum chunks per read: as many as the longest log has unless chunks are tiny.
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
            let place = self.keys.log_length(operation);
            let found = self.client.range(&Range::one(place.clone())).await?;
            let (length, revision) = match found.kvs.first() {
                Some(kv) => (LogLength::read(&kv.value.0)?, kv.mod_revision.0),
                None => (LogLength::default(), 0),
            };
            let Some(longer) = length.with(text.len()) else {
                return Ok(());
            };
            let chunk = self.keys.log_chunk(operation, length.chunks);
            let exists = self.keys.operation(operation);
            // A swept operation must not get a new log.
            let txn = Txn {
                compare: vec![
                    Compare::present(exists.clone()),
                    Compare::unchanged(place.clone(), revision),
                ],
                success: vec![
                    RequestOp::put(chunk, text.to_vec()),
                    RequestOp::put(place, longer.write()),
                ],
                failure: vec![RequestOp::Range(Range::one(exists))],
            };
            let answer = self.client.txn(&txn, RequestEffect::Writes).await?;
            let gone = answer.ranges().any(|found| found.kvs.is_empty());
            if answer.succeeded || gone {
                return Ok(());
            }
        }
        Err(StoreError::new(
            "others wrote to this log faster than this chunk could; try it again",
        ))
    }

    /// Replaces a chunk that is as it was read; returns whether it has the new text then.
    pub(crate) async fn replace_chunk(
        &self,
        operation: OperationId,
        read: &LogChunk,
        text: Bytes,
    ) -> Result<bool, StoreError> {
        let chunk = self.keys.log_chunk(operation, read.number);
        let found = self.client.range(&Range::one(chunk.clone())).await?;
        let Some(kv) = found.kvs.first() else {
            return Ok(false);
        };
        if kv.value.0 != read.text {
            return Ok(kv.value.0 == text);
        }
        let txn = Txn {
            compare: vec![Compare::unchanged(chunk.clone(), kv.mod_revision.0)],
            success: vec![RequestOp::put(chunk, text.to_vec())],
            failure: Vec::new(),
        };
        let answer = self.client.txn(&txn, RequestEffect::Writes).await?;
        Ok(answer.succeeded)
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
        let chunks = found.kvs.into_iter().map(|kv| {
            let number = self.keys.chunk_number(&kv.key.0);
            Ok(LogChunk {
                number: number.ok_or_else(|| damaged("a log"))?,
                text: kv.value.0,
            })
        });
        chunks.collect()
    }
}

/// Length of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LogLength {
    chunks: u32,
    bytes: usize,
}

impl LogLength {
    /// The length with one more chunk; `None` if the log is full.
    fn with(self, bytes: usize) -> Option<Self> {
        let bytes = self.bytes + bytes;
        let chunks = self.chunks.checked_add(1)?;
        (bytes <= LOG_BYTES_MAX).then_some(Self { chunks, bytes })
    }

    fn write(self) -> Vec<u8> {
        let mut value = Vec::new();
        put_number(&mut value, u64::from(self.chunks));
        put_number(&mut value, self.bytes as u64);
        value
    }

    fn read(value: &[u8]) -> Result<Self, StoreError> {
        let mut reader = ByteReader(value);
        let mut read = || {
            Some(Self {
                chunks: u32::try_from(reader.number()?).ok()?,
                bytes: usize::try_from(reader.number()?).ok()?,
            })
        };
        read().ok_or_else(|| damaged("the length of a log"))
    }
}

#[cfg(test)]
mod tests {
    use super::{LOG_BYTES_MAX, LogLength};

    #[test]
    fn a_log_grows_by_chunks_until_it_is_full() {
        let length = LogLength::default().with(5).and_then(|it| it.with(70_000));
        let length = length.expect("there is room");
        assert_eq!((length.chunks, length.bytes), (2, 70_005));
        assert_eq!(LogLength::read(&length.write()).expect("a length"), length);
        assert_eq!(length.with(LOG_BYTES_MAX), None);
        assert!(LogLength::read(&[0x80]).is_err());
    }
}
