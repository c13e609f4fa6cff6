//! Every statement of this store, in one place. What the tables mean is in `layout_1/tables.sql`.
//!
//! Nothing here is put together from parts at run time, so each is prepared once a connection.

pub(super) const COMMIT: &str = "CALL sutler_commit_v1(?, ?, ?)";
pub(super) const FIND_SESSION: &str = "SELECT CAST(IS_USED_LOCK(?) AS SIGNED)";

pub(super) const GET: &str = "SELECT version, body FROM sutler_doc WHERE `key` = ?";
pub(super) const LIST_BY_KEY: &str = "SELECT `key`, version, body FROM sutler_doc
    WHERE `key` >= ? AND `key` < ? ORDER BY `key` LIMIT ?";
pub(super) const FILED: &str = "SELECT `key`, version, body, terms FROM sutler_doc
    WHERE `key` >= ? ORDER BY `key` LIMIT ?";
/// The rest of one value, then the values behind it: one range each, because rows of values are not
/// looked up in an index as one.
pub(super) const LIST_BY_TERM: &str = "SELECT t.`key`, d.version, d.body, t.value FROM (
        (SELECT value, `key` FROM sutler_term
         WHERE scope = ? AND value = ? AND `key` >= ? AND value <= ? ORDER BY value, `key` LIMIT ?)
        UNION ALL
        (SELECT value, `key` FROM sutler_term
         WHERE scope = ? AND value > ? AND value <= ? ORDER BY value, `key` LIMIT ?)) t
    STRAIGHT_JOIN sutler_doc d ON d.`key` = t.`key` ORDER BY t.value, t.`key` LIMIT ?";

pub(super) const POLL: &str = "SELECT state, verb, detail FROM sutler_op WHERE id = ? AND lane = ?";
pub(super) const OPERATION: &str =
    "SELECT id, lane, verb, queue, state, due, fence, attempt, takeovers, cancel, pinned, accepted,
            finished, detail, request, progress FROM sutler_op WHERE id = ?";
pub(super) const OPERATIONS: &str =
    "SELECT id, lane, verb, queue, state, due, fence, attempt, takeovers, cancel, pinned, accepted,
            finished, detail FROM sutler_op WHERE id < ? ORDER BY id DESC LIMIT ?";
pub(super) const OPERATIONS_OF_LANE: &str =
    "SELECT id, lane, verb, queue, state, due, fence, attempt, takeovers, cancel, pinned, accepted,
            finished, detail FROM sutler_op WHERE lane = ? AND id < ? ORDER BY id DESC LIMIT ?";
pub(super) const OPERATIONS_UNFINISHED: &str =
    "SELECT id, lane, verb, queue, state, due, fence, attempt, takeovers, cancel, pinned, accepted,
            finished, detail FROM sutler_op FORCE INDEX (sutler_op_due)
     WHERE state IN (0, 1, 2) AND id < ? ORDER BY id DESC LIMIT ?";

pub(super) const RENEW: &str = "CALL sutler_renew_v1(?, ?)";
pub(super) const CLAIM: &str = "CALL sutler_claim_v1(?, ?, ?, ?, ?)";
pub(super) const RELEASE: &str = "CALL sutler_release_v1(?, ?)";
pub(super) const SWEEP: &str = "CALL sutler_sweep_v1(?, ?, ?, ?, ?)";
pub(super) const TRIM: &str = "CALL sutler_trim_v1(?, ?)";
pub(super) const CHANGES: &str = "SELECT t.trimmed, f.seq, f.id, f.subjects
    FROM sutler_swept t LEFT JOIN sutler_feed f ON f.seq > GREATEST(?, t.trimmed)
    WHERE t.no = 1 ORDER BY f.seq LIMIT ?";
pub(super) const APPEND_LOG: &str = "CALL sutler_append_log_v1(?, ?, ?)";
pub(super) const READ_LOG: &str = "SELECT number, text FROM sutler_log
    WHERE op = ? AND number >= ? ORDER BY number LIMIT ?";
pub(super) const NOW: &str = "SELECT micros FROM sutler_clock";
pub(super) const SURVEY: &str = "SELECT
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
    FROM sutler_clock c";
/// One statement, so one view of everything: what is live and what ended is counted at one moment.
pub(super) const STATS: &str = "SELECT t.accepted, t.ended - s.cleaned, s.cleaned, q.queue,
        CAST(q.waiting AS SIGNED), CAST(q.ready AS SIGNED), CAST(q.running AS SIGNED), q.oldest
    FROM sutler_tally t JOIN sutler_swept s ON s.no = t.no LEFT JOIN (
        SELECT queue, SUM(state = 0) AS waiting, SUM(state = 1) AS ready, SUM(state = 2) AS running,
               MIN(accepted) AS oldest
        FROM sutler_op FORCE INDEX (sutler_op_due) WHERE state IN (0, 1, 2) GROUP BY queue) q ON TRUE
    WHERE t.no = 1 ORDER BY q.queue";

/// The beginning of a statement, for a line in the log.
pub(super) fn name(statement: &str) -> &str {
    statement.split('(').next().unwrap_or_default()
}
