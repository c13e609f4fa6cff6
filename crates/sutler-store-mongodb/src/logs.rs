//! Logs of runs: bounded chunks, outside commits.

use crate::commit_steps::delete;
use crate::error::{DUPLICATE_KEY, MongoError};
use crate::read::options;
use crate::rows::{self, Collection, binary, int, uuid};
use crate::store::MongoStore;
use bytes::Bytes;
use mongodb::bson::{Bson, Document as Bsons, doc};
use mongodb::options::ReturnDocument;
use sutler_journal::{LOG_BYTES_MAX, LOG_CHUNK_BYTES_MAX, LogChunk, OperationId};

/// Id of a chunk: all have the same length, so they are sorted as bytes.
fn piece(operation: OperationId, number: u32) -> Bson {
    let mut name = operation.0.as_bytes().to_vec();
    name.extend(number.to_be_bytes());
    binary(&name)
}

/// Steps that delete a log.
pub(crate) fn removal(operation: OperationId) -> [Bsons; 2] {
    let pieces = doc! { "$gte": piece(operation, 0), "$lte": piece(operation, u32::MAX) };
    let mut all = delete(Collection::Logs, doc! { "_id": pieces });
    all.insert("multi", true);
    let head = doc! { "_id": uuid(operation.0) };
    [all, delete(Collection::LogHeads, head)]
}

impl MongoStore {
    pub(crate) async fn add_to_log(
        &self,
        operation: OperationId,
        mut text: Bytes,
    ) -> Result<(), MongoError> {
        text.truncate(LOG_CHUNK_BYTES_MAX);
        let filter = doc! { "_id": uuid(operation.0) };
        let found = self
            .commands
            .find_one(Collection::Operations, filter, &["_id"]);
        if text.is_empty() || found.await?.is_none() {
            return Ok(());
        }
        let Some(number) = self.next_number(operation, text.len()).await? else {
            return Ok(());
        };
        let logs = self
            .commands
            .database
            .collection::<Bsons>(Collection::Logs.name());
        let row = doc! { "_id": piece(operation, number), "text": binary(&text) };
        let added = logs.insert_one(row).into_future();
        self.commands.bounded(added).await.map(drop)
    }

    /// Number of the next chunk; `None` if the log is full.
    async fn next_number(
        &self,
        operation: OperationId,
        bytes: usize,
    ) -> Result<Option<u32>, MongoError> {
        let room = i64::try_from(LOG_BYTES_MAX.saturating_sub(bytes)).unwrap_or(0);
        let heads = self
            .commands
            .database
            .collection::<Bsons>(Collection::LogHeads.name());
        let filter = doc! { "_id": uuid(operation.0), "bytes": { "$lte": room } };
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let more = doc! { "$inc": { "pieces": 1_i64, "bytes": bytes } };
        let counted = heads
            .find_one_and_update(filter, more)
            .upsert(true)
            .return_document(ReturnDocument::After)
            .into_future();
        match self.commands.bounded(counted).await {
            Ok(Some(head)) => Ok(u32::try_from(int(&head, "pieces")? - 1).ok()),
            Ok(None) => Err(MongoError::odd("a log")),
            // The log exists and is full.
            Err(MongoError::Refused {
                code: DUPLICATE_KEY,
                ..
            }) => Ok(None),
            Err(trouble) => Err(trouble),
        }
    }

    /// Replaces a chunk that is as it was read; returns whether it has the new text then.
    pub(crate) async fn replace_piece(
        &self,
        operation: OperationId,
        read: &LogChunk,
        text: Bytes,
    ) -> Result<bool, MongoError> {
        let logs = self
            .commands
            .database
            .collection::<Bsons>(Collection::Logs.name());
        let filter = doc! { "_id": piece(operation, read.number), "text": binary(&read.text) };
        let change = doc! { "$set": { "text": binary(&text) } };
        let updated = logs.update_one(filter, change).into_future();
        self.commands.bounded(updated).await?;
        let found = self.log(operation, read.number, 1).await?;
        Ok(found
            .iter()
            .any(|it| it.number == read.number && it.text == text))
    }

    pub(crate) async fn log(
        &self,
        operation: OperationId,
        from: u32,
        limit: usize,
    ) -> Result<Vec<LogChunk>, MongoError> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let range = doc! { "$gte": piece(operation, from), "$lte": piece(operation, u32::MAX) };
        let options = options(doc! { "_id": 1 }, limit);
        let found = self
            .commands
            .find(Collection::Logs, doc! { "_id": range }, options)
            .await?;
        found.iter().map(read_piece).collect()
    }
}

fn read_piece(row: &Bsons) -> Result<LogChunk, MongoError> {
    let name = rows::read_bytes(row, "_id")?;
    let number = name.get(16..).and_then(|it| it.try_into().ok());
    let number = number.map(u32::from_be_bytes);
    Ok(LogChunk {
        number: number.ok_or_else(|| MongoError::odd("a piece of a log"))?,
        text: rows::read_bytes(row, "text")?,
    })
}
