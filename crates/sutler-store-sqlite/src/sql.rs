//! All statements of this crate. The tables are described in `schema.rs`.
//!
//! No statement is assembled at run time. Statements of the writer come first, then
//! those of the readers; a test checks that each list uses its index (`query_plan_tests.rs`).

// Interned strings

pub(crate) const WORD_NUMBER: &str = "SELECT no FROM word WHERE text = ?1";
pub(crate) const WORD_TEXT: &str = "SELECT text FROM word WHERE no = ?1";
pub(crate) const WORD_ADD: &str = "INSERT INTO word (text) VALUES (?1)";

// The writer: documents

pub(crate) const DOC_FIND: &str =
    "SELECT doc.no, doc.version, doc.terms FROM doc_key CROSS JOIN doc ON doc.no = doc_key.no
     WHERE doc_key.key = ?1";
pub(crate) const DOC_ADD: &str =
    "INSERT INTO doc (no, version, key, terms, body) VALUES (?1, ?2, ?3, ?4, ?5)";
pub(crate) const DOC_REPLACE: &str =
    "UPDATE doc SET version = ?2, terms = ?3, body = ?4 WHERE no = ?1";
pub(crate) const DOC_DELETE: &str = "DELETE FROM doc WHERE no = ?1";
pub(crate) const DOC_FILE: &str = "INSERT INTO doc_key (key, no) VALUES (?1, ?2)";
pub(crate) const DOC_UNFILE: &str = "DELETE FROM doc_key WHERE key = ?1";
pub(crate) const YOUNG: &str = "SELECT doc.no, doc.key, doc.terms, doc.version FROM doc
     WHERE doc.no > (SELECT filed FROM tally)
       AND NOT EXISTS (SELECT 1 FROM doc_key WHERE doc_key.key = doc.key)";
pub(crate) const LANE_FIND: &str = "SELECT no FROM lane_key WHERE key = ?1";
pub(crate) const LANE_ADD: &str = "INSERT INTO lane_key (key, no) VALUES (?1, ?2)";
pub(crate) const LANE_DELETE: &str = "DELETE FROM lane_key WHERE key = ?1";
pub(crate) const LANE_IS_USED: &str = "SELECT 1 FROM op WHERE lane = ?1 LIMIT 1";
pub(crate) const TERM_ADD: &str =
    "INSERT OR IGNORE INTO term (scope, value, key, doc) VALUES (?1, ?2, ?3, ?4)";
pub(crate) const TERM_DELETE: &str =
    "DELETE FROM term WHERE scope = ?1 AND value = ?2 AND key = ?3";

// The writer: operations

pub(crate) const OP_FIND: &str =
    "SELECT no, state, boot, queue, due, fence, takeovers, pinned, worker FROM op WHERE id = ?1";
pub(crate) const OP_ADD: &str =
    "INSERT INTO op (no, id, lane, state, boot, queue, verb, due, fence, attempt, takeovers, cancel,
                     pinned, accepted, finished, worker, lane_key, detail, request, progress)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19,
             ?20)";
pub(crate) const OP_START: &str =
    "INSERT INTO op (no, id, lane, state, boot, queue, verb, due, fence, attempt, takeovers, cancel,
                     pinned, accepted, finished, worker, lane_key, detail, request, progress)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 1, 0, 0, 1, ?10, NULL, ?11, ?12, ?13, ?14, x'')";
pub(crate) const OP_TOUCH: &str =
    "UPDATE op SET takeovers = iif(?3 IS NULL, takeovers, 0), detail = coalesce(?2, detail),
                   progress = coalesce(?3, progress)
     WHERE no = ?1";
pub(crate) const OP_MOVE: &str =
    "UPDATE op SET state = ?2, boot = 0, due = ?3, attempt = attempt + ?4, takeovers = ?5,
                   finished = ?6, worker = NULL, detail = coalesce(?7, detail),
                   progress = coalesce(?8, progress)
     WHERE no = ?1";
pub(crate) const OP_CANCEL: &str = "UPDATE op SET cancel = 1 WHERE no = ?1";
pub(crate) const OP_WAKE: &str = "UPDATE op SET state = 1, due = ?2 WHERE no = ?1";
pub(crate) const OP_UNPIN: &str = "UPDATE op SET pinned = 0 WHERE no = ?1";
pub(crate) const OP_READ: &str = "SELECT detail = ?2 AND progress = ?3 FROM op WHERE no = ?1";
pub(crate) const OP_RESEAL: &str =
    "UPDATE op SET detail = ?2, request = ?3, progress = ?4 WHERE no = ?1";
pub(crate) const OP_CLAIM: &str =
    "UPDATE op SET state = 2, boot = ?2, fence = fence + 1, takeovers = takeovers + ?3, worker = ?4
     WHERE no = ?1";
pub(crate) const OP_RELEASE: &str =
    "UPDATE op SET state = 1, boot = 0, due = ?2, worker = NULL WHERE no = ?1";
pub(crate) const OP_UNCLAIM: &str =
    "UPDATE op SET state = 1, boot = 0, worker = NULL WHERE no = ?1 AND state = 2 AND fence = ?2";
pub(crate) const OP_READY: &str = "SELECT no, id, due FROM op INDEXED BY op_unfinished
     WHERE state < 3 AND queue = ?1 AND state = 1 AND boot = 0 AND due <= ?2 ORDER BY due LIMIT ?3";
pub(crate) const OP_VOID: &str = "SELECT no, id, due FROM op INDEXED BY op_unfinished
     WHERE state < 3 AND queue = ?1 AND state = 2 AND boot < ?2 ORDER BY boot, due LIMIT ?3";
pub(crate) const OP_RUNNING: &str =
    "SELECT no, id, queue, due, cancel, worker FROM op INDEXED BY op_unfinished
     WHERE state < 3 AND state = 2 AND boot = ?1";
pub(crate) const OP_WHOLE_BY_NUMBER: &str =
    "SELECT id, state, queue, verb, due, fence, attempt, takeovers, cancel, pinned, accepted,
            finished, lane_key, detail, request, progress
     FROM op WHERE no = ?1";

// The writer: feed, logs, sweeps, numbers

pub(crate) const FEED_ADD: &str =
    "INSERT INTO feed (seq, at, id, subjects) VALUES (?1, ?2, ?3, ?4)";
pub(crate) const FEED_KNOWS: &str = "SELECT 1 FROM feed WHERE id = ?1";
pub(crate) const FEED_OLDEST: &str = "SELECT seq, at FROM feed ORDER BY seq LIMIT ?1";
pub(crate) const FEED_DELETE: &str = "DELETE FROM feed WHERE seq <= ?1";
pub(crate) const LOG_LAST: &str =
    "SELECT number, total FROM log WHERE op = ?1 ORDER BY number DESC LIMIT 1";
pub(crate) const LOG_ADD: &str =
    "INSERT INTO log (op, number, total, text) VALUES (?1, ?2, ?3, ?4)";
pub(crate) const SWEEPABLE: &str =
    "SELECT no, lane, finished, lane_key FROM op INDEXED BY op_sweepable
     WHERE state > 2 AND pinned = 0 AND state = ?1 AND finished < ?2
       AND lane_key >= ?3 AND (?4 IS NULL OR lane_key < ?4)
     ORDER BY finished LIMIT ?5";
pub(crate) const OP_DELETE: &str = "DELETE FROM op WHERE no = ?1";
pub(crate) const LOG_DELETE: &str = "DELETE FROM log WHERE op = ?1";
pub(crate) const TALLY_READ: &str =
    "SELECT boot, accepted, terminal, cleaned, trimmed, filed, last, lanes FROM tally";
pub(crate) const TALLY_WRITE: &str =
    "UPDATE tally SET boot = ?1, accepted = ?2, terminal = ?3, cleaned = ?4, trimmed = ?5, filed = ?6,
                      last = ?7, lanes = ?8";
pub(crate) const LAST_NUMBERS: &str =
    "SELECT max((SELECT coalesce(max(no), 0) FROM doc), (SELECT last FROM tally)),
            (SELECT coalesce(max(no), 0) FROM op),
            (SELECT coalesce(max(seq), 0) FROM feed), (SELECT max(id) FROM op),
            (SELECT max(id) FROM feed)";

// The readers: single rows

pub(crate) const DOC_GET: &str =
    "SELECT doc.version, doc.body FROM doc_key CROSS JOIN doc ON doc.no = doc_key.no
     WHERE doc_key.key = ?1";
pub(crate) const DOC_GET_YOUNG: &str = "SELECT version, body FROM doc WHERE no = ?1";
pub(crate) const OP_POLL: &str = "SELECT state, verb, lane_key, detail FROM op WHERE id = ?1";
pub(crate) const OP_WHOLE: &str =
    "SELECT id, state, queue, verb, due, fence, attempt, takeovers, cancel, pinned, accepted,
            finished, lane_key, detail, request, progress
     FROM op WHERE id = ?1";
pub(crate) const OP_NUMBER: &str = "SELECT no FROM op WHERE id = ?1";
pub(crate) const OP_LANE: &str = "SELECT lane_key FROM op WHERE id = ?1";

// The readers: lists

pub(crate) const LIST_BY_KEY_FROM: &str =
    "SELECT key, no FROM doc_key WHERE key >= ?1 ORDER BY key";
pub(crate) const LIST_BY_KEY_AFTER: &str =
    "SELECT key, no FROM doc_key WHERE key > ?1 ORDER BY key";
pub(crate) const LIST_BY_TERM_FROM: &str =
    "SELECT key, doc, value FROM term WHERE scope = ?1 AND value >= ?2 AND value <= ?3
     ORDER BY value, key";
pub(crate) const LIST_BY_TERM_AFTER: &str =
    "SELECT key, doc, value FROM term WHERE scope = ?1 AND (value, key) > (?2, ?4) AND value <= ?3
     ORDER BY value, key";
pub(crate) const LISTED: &str = "SELECT version, body, key FROM doc WHERE no = ?1";
pub(crate) const LISTED_FILED: &str = "SELECT version, body, key, terms FROM doc WHERE no = ?1";
pub(crate) const OPS_ALL: &str =
    "SELECT id, state, queue, verb, due, fence, attempt, takeovers, cancel, pinned, accepted,
            finished, lane_key, detail
     FROM op WHERE id < ?1 ORDER BY id DESC LIMIT ?2";
pub(crate) const OPS_OF_LANE: &str =
    "SELECT id, state, queue, verb, due, fence, attempt, takeovers, cancel, pinned, accepted,
            finished, lane_key, detail
     FROM op WHERE lane = ?3 AND id < ?1 ORDER BY id DESC LIMIT ?2";
pub(crate) const OPS_UNFINISHED: &str =
    "SELECT id, state, queue, verb, due, fence, attempt, takeovers, cancel, pinned, accepted,
            finished, lane_key, detail
     FROM op INDEXED BY op_unfinished WHERE state < 3 AND id < ?1 ORDER BY id DESC LIMIT ?2";
pub(crate) const LANE_NUMBER: &str =
    "SELECT no FROM doc_key WHERE key = ?1 UNION ALL SELECT no FROM lane_key WHERE key = ?1";
pub(crate) const LAST_COMMIT: &str =
    "SELECT max(tally.trimmed, coalesce((SELECT max(seq) FROM feed), 0)) FROM tally";
pub(crate) const FEED_AFTER: &str =
    "SELECT seq, id, subjects FROM feed WHERE seq > ?1 ORDER BY seq";
pub(crate) const LOG_RESEAL: &str =
    "UPDATE log SET text = ?1 WHERE op = ?2 AND number = ?3 AND text = ?4";
pub(crate) const LOG_SAME: &str = "SELECT text = ?1 FROM log WHERE op = ?2 AND number = ?3";
pub(crate) const LOG_READ: &str =
    "SELECT number, text FROM log WHERE op = ?1 AND number >= ?2 ORDER BY number LIMIT ?3";
pub(crate) const QUEUES: &str =
    "SELECT queue, sum(state = 0), sum(state = 1), sum(state = 2), min(accepted)
     FROM op INDEXED BY op_unfinished WHERE state < 3 GROUP BY queue";

// Counters and settings

pub(crate) const STORE_INFO: &str =
    "SELECT (SELECT count(*) FROM op INDEXED BY op_unfinished WHERE state < 3 AND state = 2
                AND boot < (SELECT boot FROM tally)),
            (SELECT count(*) FROM feed),
            (SELECT count(DISTINCT op) FROM log
                WHERE NOT EXISTS (SELECT 1 FROM op AS o WHERE o.no = log.op)),
            (SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()),
            (SELECT count(*) FROM doc)";

pub(crate) const FEED_LENGTH: &str = "SELECT count(*) FROM feed";

pub(crate) const CHECKPOINT: &str = "PRAGMA wal_checkpoint(PASSIVE)";
pub(crate) const CHECKPOINT_ALL: &str = "PRAGMA wal_checkpoint(TRUNCATE)";
pub(crate) const COUNTS: &str = "SELECT (SELECT count(*) FROM doc), (SELECT count(*) FROM op),
            (SELECT accepted - cleaned FROM tally)";
