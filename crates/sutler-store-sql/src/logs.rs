//! Logs of operations: appended and read in chunks.

use crate::codec;
use crate::dialect::{Dialect, Value};
use crate::error::SqlError;
use crate::read::ROWS_MAX;
use crate::rows;
use crate::store::SqlShared;
use bytes::Bytes;
use sutler_journal::{LOG_BYTES_MAX, LOG_CHUNK_BYTES_MAX, LogChunk, OperationId};

impl<D: Dialect> SqlShared<D> {
    pub(crate) async fn append_log(
        &self,
        id: OperationId,
        mut text: Bytes,
    ) -> Result<(), SqlError> {
        text.truncate(LOG_CHUNK_BYTES_MAX);
        if text.is_empty() {
            return Ok(());
        }
        let most = Value::Number(codec::limit(LOG_BYTES_MAX));
        let values = [Value::Id(id.0), Value::Bytes(&text), most];
        let fill = |to: &mut D::Arguments| D::add_all(to, &values);
        self.ask_once(D::SQL.append_log, &fill).await.map(drop)
    }

    /// Replaces a chunk that is as it was read; returns whether it has the new text then. The second statement
    /// reads it: not every server reports the rows that it changed in the same way.
    pub(crate) async fn reseal_log(
        &self,
        id: OperationId,
        read: &LogChunk,
        text: &[u8],
    ) -> Result<bool, SqlError> {
        let values = [
            Value::Bytes(text),
            Value::Id(id.0),
            Value::Index(read.number),
            Value::Bytes(&read.text),
        ];
        let fill = |to: &mut D::Arguments| D::add_all(to, &values);
        self.ask_once(D::SQL.reseal_log, &fill).await?;
        let found = self.read_log(id, read.number, 1).await?;
        Ok(found
            .iter()
            .any(|it| it.number == read.number && it.text == text))
    }

    pub(crate) async fn read_log(
        &self,
        id: OperationId,
        from: u32,
        limit: usize,
    ) -> Result<Vec<LogChunk>, SqlError> {
        let limit = Value::Number(codec::limit(limit.min(ROWS_MAX)));
        let values = [Value::Id(id.0), Value::Index(from), limit];
        let found = self.ask(D::SQL.read_log, &values).await?;
        found.iter().map(rows::chunk).collect()
    }
}
