//! Log of an operation for operators, read in pieces from a position.
//!
//! It is written by `hook_context/log.rs`.

use super::query::Query;
use super::response::AdminError;
use crate::hook_context::{Piece, log_from};
use crate::requests::RequestHandler;
use serde::Serialize;
use sutler_journal::{OperationId, State};

/// A part of a log.
#[derive(Debug, Serialize)]
pub(crate) struct LogView {
    /// In the order in which they were stored. If two workers wrote at the same time, pieces can overlap:
    /// `attempt` and `from` show it.
    pub items: Vec<PieceView>,
    /// Next position, for `after`; there may be nothing yet.
    pub next: String,
    /// Whether the operation has ended, so that the log is complete.
    pub ended: bool,
}

/// A piece of a log.
#[derive(Debug, Serialize)]
pub(crate) struct PieceView {
    pub attempt: u32,
    /// Offset in the output of its attempt, in bytes.
    pub from: u64,
    pub text: String,
}

impl From<Piece> for PieceView {
    fn from(piece: Piece) -> Self {
        Self {
            attempt: piece.attempt,
            from: piece.from,
            text: piece.text,
        }
    }
}

/// Reads the log from a position.
pub(crate) async fn read(
    requests: &RequestHandler,
    id: OperationId,
    query: &Query,
) -> Result<LogView, AdminError> {
    let at = match query.after.as_deref().map(str::parse) {
        None => 0,
        Some(Ok(at)) => at,
        Some(Err(_)) => {
            let sentence = "after is not what this log has handed out as next; begin without it.";
            return Err(AdminError::invalid(sentence));
        }
    };
    let records = &requests.realm_context.records;
    let found = records.store.operation(id).await?;
    let operation = found
        .filter(|it| it.row.lane.realm() == records.realm.as_str())
        .ok_or_else(|| {
            AdminError::not_found(
                "There is no operation with this id; it may have been cleaned up.",
            )
        })?;
    let (pieces, next) = log_from(records, id, at, query.limit).await?;
    Ok(LogView {
        items: pieces.into_iter().map(PieceView::from).collect(),
        ended: matches!(operation.row.state, State::Done(_)),
        next: next.to_string(),
    })
}
