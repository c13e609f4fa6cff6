//! All statements of this store. The tables are described in `layout_1/tables.sql`.
//!
//! No statement is assembled at run time, so each is prepared once per connection.

use crate::dialect::Statements;

pub(super) const COMMIT: &str = "SELECT sutler_commit_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
    $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26)";
pub(super) const ACCEPT: &str = "SELECT sutler_commit_accept_v1($1, $2, $3, $4, $5, $6, $7, $8, $9,
    $10, $11, $12, $13, $14, $15, $16, $17)";
pub(super) const RESULT: &str = "SELECT sutler_commit_result_v1($1, $2, $3, $4, $5, $6, $7, $8, $9,
    $10, $11, $12, $13)";
pub(super) const END_SESSION: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE pid = $1 AND (extract(epoch FROM backend_start) * 1000000)::bigint = $2";
pub(super) const NOTIFY: &str = "SELECT pg_notify('sutler_hint', $1)";
pub(super) const FOLD: &str = "SELECT sutler_fold_v1(sutler_horizon_v1())";

pub(super) const STATEMENTS: Statements = Statements {
    get: "SELECT version, body FROM sutler_doc WHERE key = $1",
    list_by_key: "SELECT key, version, body FROM sutler_doc
    WHERE key >= $1 AND key < $2 ORDER BY key LIMIT $3",
    scan_documents: "SELECT key, version, body, scopes, vals FROM sutler_doc
    WHERE key >= $1 ORDER BY key LIMIT $2",
    list_by_term: "SELECT t.key, d.version, d.body, t.value FROM (
        SELECT value, key FROM sutler_term
        WHERE scope = $1 AND (value, key) >= ($2, $3) AND value <= $4
        ORDER BY value, key LIMIT $5) t
    JOIN sutler_doc d ON d.key = t.key ORDER BY t.value, t.key",
    poll: "SELECT state, verb, detail FROM sutler_op WHERE id = $1 AND lane = $2",
    operation: "SELECT id, lane, verb, queue, state, due, fence, attempt, takeovers, cancel,
            pinned, accepted, finished, detail, request, progress FROM sutler_op WHERE id = $1",
    operations: "SELECT id, lane, verb, queue, state, due, fence, attempt, takeovers, cancel,
            pinned, accepted, finished, detail FROM sutler_op WHERE id < $1 ORDER BY id DESC LIMIT $2",
    operations_of_lane: "SELECT id, lane, verb, queue, state, due, fence, attempt, takeovers, cancel,
            pinned, accepted, finished, detail FROM sutler_op WHERE lane = $1 AND id < $2 ORDER BY id DESC LIMIT $3",
    operations_unfinished: "SELECT o.id, o.lane, o.verb, o.queue, o.state, o.due, o.fence, o.attempt, o.takeovers,
            o.cancel, o.pinned, o.accepted, o.finished, o.detail FROM (
        SELECT * FROM sutler_op WHERE state = 0
        UNION ALL SELECT * FROM sutler_op WHERE state = 1
        UNION ALL SELECT * FROM sutler_op WHERE state = 2) o
    WHERE o.id < $1 ORDER BY o.id DESC LIMIT $2",
    renew: "SELECT lost, op, cancelled FROM sutler_renew_v1($1, $2)",
    claim: "SELECT id, lane, verb, queue, state, due, fence, attempt, takeovers, cancel,
            pinned, accepted, finished, detail, request, progress FROM sutler_claim_v1($1, $2, $3, $4)",
    release: "SELECT sutler_release_v1($1, $2)",
    sweep: "SELECT sutler_sweep_v1($1, $2, $3, $4, $5)",
    trim: "SELECT sutler_trim_v1($1, $2)",
    changes: "SELECT trimmed, seq, id, subjects FROM sutler_changes_v1($1, $2)",
    append_log: "SELECT sutler_append_log_v1($1, $2, $3)",
    read_log: "SELECT number, text FROM sutler_log
    WHERE op = $1 AND number >= $2 ORDER BY number LIMIT $3",
    reseal_log: "UPDATE sutler_log SET text = $1 WHERE op = $2 AND number = $3 AND text = $4",
    now: "SELECT sutler_now()",
    feed_length: "SELECT count(*) FROM sutler_feed",
    info: "SELECT
        (SELECT count(*) FROM sutler_lease l WHERE l.expires > n.micros),
        (SELECT count(*) FROM sutler_lease l WHERE l.expires <= n.micros),
        (SELECT count(*) FROM sutler_op o WHERE o.state = 2 AND NOT EXISTS (
            SELECT 1 FROM sutler_lease l WHERE l.worker = o.worker AND l.expires > n.micros)),
        (SELECT count(*) FROM sutler_feed),
        (SELECT count(DISTINCT g.op) FROM sutler_log g
            WHERE NOT EXISTS (SELECT 1 FROM sutler_op o WHERE o.id = g.op)),
        (SELECT coalesce(sum(pg_total_relation_size(t.name::regclass)), 0)::bigint
            FROM unnest(ARRAY['sutler_doc', 'sutler_term', 'sutler_op', 'sutler_lease',
                              'sutler_feed', 'sutler_log']) AS t (name)),
        (SELECT count(*) FROM sutler_doc)
    FROM (SELECT sutler_now() AS micros OFFSET 0) n",
    // One statement, so one snapshot: live and ended operations are counted at one moment.
    stats: "SELECT t.ended + e.ended, t.cleaned, e.commits, q.queue, q.waiting,
        q.ready, q.running, q.oldest
    FROM sutler_tally t
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(f.ended), 0)::bigint AS ended, count(*) AS commits
        FROM sutler_feed f WHERE f.seq > t.folded) e
    LEFT JOIN (
        SELECT o.queue, count(*) FILTER (WHERE o.state = 0) AS waiting,
               count(*) FILTER (WHERE o.state = 1) AS ready,
               count(*) FILTER (WHERE o.state = 2) AS running, min(o.accepted) AS oldest
        FROM (SELECT queue, state, accepted FROM sutler_op WHERE state = 0
              UNION ALL SELECT queue, state, accepted FROM sutler_op WHERE state = 1
              UNION ALL SELECT queue, state, accepted FROM sutler_op WHERE state = 2) o
        GROUP BY o.queue) q ON true
    ORDER BY q.queue",
};
