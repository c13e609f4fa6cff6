//! The writer's statements, prepared once while the file is open.

use crate::sql;
use rusqlite::{Connection, PrepFlags, Result, Statement};

macro_rules! statements {
    ($($name:ident = $sql:expr),* $(,)?) => {
        /// One handle for each statement; the texts are in `sql.rs`.
        pub(super) struct Statements<'c> {
            $(pub(super) $name: Statement<'c>,)*
        }

        impl<'c> Statements<'c> {
            pub(super) fn prepare(db: &'c Connection) -> Result<Self> {
                let flags = PrepFlags::SQLITE_PREPARE_PERSISTENT;
                Ok(Self {
                    $($name: db.prepare_with_flags($sql, flags)?,)*
                })
            }
        }
    };
}

statements! {
    begin = "BEGIN IMMEDIATE",
    commit = "COMMIT",
    word_number = sql::WORD_NUMBER,
    word_add = sql::WORD_ADD,
    doc_find = sql::DOC_FIND,
    doc_add = sql::DOC_ADD,
    doc_replace = sql::DOC_REPLACE,
    doc_delete = sql::DOC_DELETE,
    doc_file = sql::DOC_FILE,
    doc_unfile = sql::DOC_UNFILE,
    lane_find = sql::LANE_FIND,
    lane_add = sql::LANE_ADD,
    lane_delete = sql::LANE_DELETE,
    lane_is_used = sql::LANE_IS_USED,
    term_add = sql::TERM_ADD,
    term_delete = sql::TERM_DELETE,
    op_find = sql::OP_FIND,
    op_add = sql::OP_ADD,
    op_start = sql::OP_START,
    op_touch = sql::OP_TOUCH,
    op_move = sql::OP_MOVE,
    op_cancel = sql::OP_CANCEL,
    op_wake = sql::OP_WAKE,
    op_unpin = sql::OP_UNPIN,
    op_read = sql::OP_READ,
    op_reseal = sql::OP_RESEAL,
    op_claim = sql::OP_CLAIM,
    op_release = sql::OP_RELEASE,
    op_ready = sql::OP_READY,
    op_void = sql::OP_VOID,
    op_whole_by_number = sql::OP_WHOLE_BY_NUMBER,
    op_delete = sql::OP_DELETE,
    feed_add = sql::FEED_ADD,
    feed_knows = sql::FEED_KNOWS,
    feed_oldest = sql::FEED_OLDEST,
    feed_delete = sql::FEED_DELETE,
    log_last = sql::LOG_LAST,
    log_add = sql::LOG_ADD,
    log_reseal = sql::LOG_RESEAL,
    log_same = sql::LOG_SAME,
    log_delete = sql::LOG_DELETE,
    sweepable = sql::SWEEPABLE,
    tally_write = sql::TALLY_WRITE,
}
