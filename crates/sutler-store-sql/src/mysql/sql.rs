//! All statements of this store. The tables are described in `layout_1/tables.sql`.
//!
//! No statement is assembled at run time, so each is prepared once per connection.

use crate::dialect::Statements;

pub(super) const COMMIT: &str = "CALL sutler_commit_v3(?, ?, ?)";
pub(super) const FIND_SESSION: &str = "SELECT CAST(IS_USED_LOCK(?) AS SIGNED)";

pub(super) const STATEMENTS: Statements = Statements {
    get: "SELECT version, body FROM sutler_doc WHERE `key` = ?",
    list_by_key: "SELECT `key`, version, body FROM sutler_doc
    WHERE `key` >= ? AND `key` < ? ORDER BY `key` LIMIT ?",
    scan_documents: "SELECT `key`, version, body, terms FROM sutler_doc
    WHERE `key` >= ? ORDER BY `key` LIMIT ?",
    // The rest of one value, then the values after it: one range each, because row comparisons do not use
    // an index.
    list_by_term: "SELECT t.`key`, d.version, d.body, t.value FROM (
        (SELECT value, `key` FROM sutler_term
         WHERE scope = ? AND value = ? AND `key` >= ? AND value <= ? ORDER BY value, `key` LIMIT ?)
        UNION ALL
        (SELECT value, `key` FROM sutler_term
         WHERE scope = ? AND value > ? AND value <= ? ORDER BY value, `key` LIMIT ?)) t
    STRAIGHT_JOIN sutler_doc d ON d.`key` = t.`key` ORDER BY t.value, t.`key` LIMIT ?",
    poll: "SELECT state, verb, detail FROM sutler_op WHERE id = ? AND lane = ?",
    operation: "SELECT id, lane, verb, queue, state, due, fence, attempt, takeovers, cancel,
            pinned, accepted, finished, detail, request, progress FROM sutler_op WHERE id = ?",
    operations: "SELECT id, lane, verb, queue, state, due, fence, attempt, takeovers, cancel,
            pinned, accepted, finished, detail FROM sutler_op WHERE id < ? ORDER BY id DESC LIMIT ?",
    operations_of_lane: "SELECT id, lane, verb, queue, state, due, fence, attempt, takeovers, cancel,
            pinned, accepted, finished, detail FROM sutler_op WHERE lane = ? AND id < ? ORDER BY id DESC LIMIT ?",
    operations_unfinished: "SELECT id, lane, verb, queue, state, due, fence, attempt, takeovers, cancel,
            pinned, accepted, finished, detail FROM sutler_op FORCE INDEX (sutler_op_due)
     WHERE state IN (0, 1, 2) AND id < ? ORDER BY id DESC LIMIT ?",
    renew: "CALL sutler_renew_v1(?, ?)",
    claim: "CALL sutler_claim_v1(?, ?, ?, ?, ?)",
    release: "CALL sutler_release_v1(?, ?)",
    sweep: "CALL sutler_sweep_v1(?, ?, ?, ?, ?)",
    trim: "CALL sutler_trim_v1(?, ?)",
    changes: "SELECT t.trimmed, f.seq, f.id, f.subjects
    FROM sutler_swept t LEFT JOIN sutler_feed f ON f.seq > GREATEST(?, t.trimmed)
    WHERE t.no = 1 ORDER BY f.seq LIMIT ?",
    append_log: "CALL sutler_append_log_v1(?, ?, ?)",
    read_log: "SELECT number, text FROM sutler_log
    WHERE op = ? AND number >= ? ORDER BY number LIMIT ?",
    reseal_log: "UPDATE sutler_log SET text = ? WHERE op = ? AND number = ? AND text = ?",
    now: "SELECT micros FROM sutler_clock",
    feed_length: "SELECT CAST(COUNT(*) AS SIGNED) FROM sutler_feed",
    info: "SELECT
        CAST((SELECT COUNT(*) FROM sutler_lease l WHERE l.expires > c.micros) AS SIGNED),
        CAST((SELECT COUNT(*) FROM sutler_lease l WHERE l.expires <= c.micros) AS SIGNED),
        CAST((SELECT COUNT(*) FROM sutler_op o WHERE o.state = 2 AND NOT EXISTS (
            SELECT 1 FROM sutler_lease l WHERE l.worker = o.worker AND l.expires > c.micros))
            AS SIGNED),
        CAST((SELECT COUNT(*) FROM sutler_feed) AS SIGNED),
        CAST((SELECT COUNT(DISTINCT g.op) FROM sutler_log g
            WHERE NOT EXISTS (SELECT 1 FROM sutler_op o WHERE o.id = g.op)) AS SIGNED),
        CAST((SELECT COALESCE(SUM(t.DATA_LENGTH + t.INDEX_LENGTH), 0)
            FROM information_schema.TABLES t
            WHERE t.TABLE_SCHEMA = DATABASE() AND LEFT(t.TABLE_NAME, 7) = 'sutler_') AS SIGNED),
        CAST((SELECT COUNT(*) FROM sutler_doc) AS SIGNED)
    FROM sutler_clock c",
    // One statement, so one snapshot: live and ended operations are counted at one moment.
    stats: "SELECT t.accepted, t.ended - s.cleaned, s.cleaned, q.queue,
        CAST(q.waiting AS SIGNED), CAST(q.ready AS SIGNED), CAST(q.running AS SIGNED), q.oldest
    FROM sutler_tally t JOIN sutler_swept s ON s.no = t.no LEFT JOIN (
        SELECT queue, SUM(state = 0) AS waiting, SUM(state = 1) AS ready, SUM(state = 2) AS running,
               MIN(accepted) AS oldest
        FROM sutler_op FORCE INDEX (sutler_op_due) WHERE state IN (0, 1, 2) GROUP BY queue) q ON TRUE
    WHERE t.no = 1 ORDER BY q.queue",
};
