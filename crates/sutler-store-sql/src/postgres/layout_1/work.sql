-- Layout 1: leases, claims, sweeps and logs. None of these is a commit; none is in the feed.

-- Creates or extends a lease. The first row tells whether it was lost; the others are the held operations.
CREATE FUNCTION sutler_renew_v1(p_worker uuid, p_ttl bigint)
    RETURNS TABLE (lost boolean, op uuid, cancelled boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    present bigint := sutler_now();
BEGIN
    INSERT INTO sutler_lease AS l (worker, expires) VALUES (p_worker, present + p_ttl)
        ON CONFLICT (worker) DO UPDATE SET expires = excluded.expires WHERE l.expires > present;
    IF NOT FOUND THEN
        RETURN QUERY SELECT true, NULL::uuid, false;
        RETURN;
    END IF;
    RETURN QUERY SELECT false, NULL::uuid, false;
    RETURN QUERY SELECT false, o.id, o.cancel FROM sutler_op o
        WHERE o.state = 2 AND o.worker = p_worker;
END
$$;

-- Claims operations; one row without an id if the worker holds no lease. Rows that another session has
-- locked are skipped, so claims never wait.
CREATE FUNCTION sutler_claim_v1(
    p_worker uuid, p_lock bigint, p_queues bytea[], p_limits bigint[]
) RETURNS SETOF sutler_op LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    present bigint;
    nobody  sutler_op;
BEGIN
    IF pg_advisory_xact_lock_shared(p_lock # ('sutler_feed_seq'::regclass::oid::bigint << 29)) IS NULL THEN END IF;
    present := sutler_now();
    IF NOT EXISTS (SELECT 1 FROM sutler_lease WHERE worker = p_worker AND expires > present) THEN
        RETURN NEXT nobody;
        RETURN;
    END IF;
    FOR i IN 1 .. cardinality(p_queues) LOOP
        RETURN QUERY
            WITH ready AS (
                SELECT o.id, o.due FROM sutler_op o
                WHERE o.state = 1 AND o.queue = p_queues[i] AND o.due <= present
                ORDER BY o.due, o.id LIMIT p_limits[i]
                FOR NO KEY UPDATE SKIP LOCKED
            ), left_behind AS (
                SELECT o.id, o.due FROM sutler_lease l JOIN sutler_op o ON o.worker = l.worker
                WHERE l.expires <= present AND o.state = 2 AND o.queue = p_queues[i]
                ORDER BY o.due, o.id LIMIT p_limits[i]
                FOR NO KEY UPDATE OF o SKIP LOCKED
            ), chosen AS (
                SELECT c.id FROM (SELECT * FROM ready UNION ALL SELECT * FROM left_behind) c
                ORDER BY c.due, c.id LIMIT p_limits[i]
            )
            UPDATE sutler_op o SET state = 2, fence = o.fence + 1, worker = p_worker,
                    takeovers = o.takeovers + CASE WHEN o.state = 2 THEN 1 ELSE 0 END
                FROM chosen WHERE o.id = chosen.id
                RETURNING o.*;
    END LOOP;
END
$$;

-- Ends a lease and releases its operations; returns their number.
CREATE FUNCTION sutler_release_v1(p_worker uuid, p_lock bigint)
    RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    present bigint;
    count   bigint;
BEGIN
    -- Nobody may begin to run something under this lease meanwhile.
    IF pg_advisory_xact_lock(p_lock # ('sutler_feed_seq'::regclass::oid::bigint << 29)) IS NULL THEN END IF;
    present := sutler_now();
    -- One that ran out stays: its worker may still be about, and must learn of it.
    DELETE FROM sutler_lease WHERE worker = p_worker AND expires > present;
    -- In the order in which commits lock them.
    PERFORM 1 FROM sutler_op WHERE state = 2 AND worker = p_worker ORDER BY id FOR NO KEY UPDATE;
    UPDATE sutler_op SET state = 1, due = present, worker = NULL
        WHERE state = 2 AND worker = p_worker;
    GET DIAGNOSTICS count = ROW_COUNT;
    RETURN count;
END
$$;

-- Deletes ended operations; returns their number. `p_after` is the end of the range of lanes. Each scope
-- in it is visited separately, so that old operations of other scopes are not visited again and again.
CREATE FUNCTION sutler_sweep_v1(
    p_states smallint[], p_from bytea, p_after bytea, p_before bigint, p_limit bigint
) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    scope bytea := sutler_scope(p_from);
    gone  uuid[];
    total bigint := 0;
BEGIN
    WHILE total < p_limit LOOP
        SELECT sutler_scope(o.lane) INTO scope FROM sutler_op o
            WHERE o.state > 2 AND NOT o.pinned
              AND sutler_scope(o.lane) >= scope AND sutler_scope(o.lane) < p_after
            ORDER BY sutler_scope(o.lane) LIMIT 1;
        EXIT WHEN NOT FOUND;
        FOR i IN 1 .. cardinality(p_states) LOOP
            WITH old AS (
                SELECT o.id FROM sutler_op o
                WHERE sutler_scope(o.lane) = scope AND o.state = p_states[i] AND o.state > 2
                  AND NOT o.pinned AND o.finished < p_before
                  AND o.lane >= p_from AND o.lane < p_after
                ORDER BY o.finished LIMIT p_limit - total
                FOR UPDATE SKIP LOCKED
            ), deleted AS (
                DELETE FROM sutler_op o USING old WHERE o.id = old.id RETURNING o.id
            )
            SELECT array_agg(d.id) INTO gone FROM deleted d;
            IF gone IS NOT NULL THEN
                DELETE FROM sutler_log WHERE op = ANY (gone);
                total := total + cardinality(gone);
            END IF;
        END LOOP;
        scope := scope || '\x00'::bytea;
    END LOOP;
    IF total > 0 THEN UPDATE sutler_tally SET cleaned = cleaned + total; END IF;
    RETURN total;
END
$$;

-- Appends a chunk to a log, unless the operation does not exist or the log is full.
CREATE FUNCTION sutler_append_log_v1(p_op uuid, p_text bytea, p_most bigint)
    RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    last record;
BEGIN
    -- The row stands until the chunk does: what is swept takes its whole log along.
    PERFORM 1 FROM sutler_op WHERE id = p_op FOR NO KEY UPDATE;
    IF NOT FOUND THEN RETURN; END IF;
    SELECT number, total INTO last FROM sutler_log WHERE op = p_op ORDER BY number DESC LIMIT 1;
    IF coalesce(last.total, 0) + length(p_text) <= p_most THEN
        INSERT INTO sutler_log (op, number, total, text) VALUES (p_op, coalesce(last.number + 1, 0),
            coalesce(last.total, 0) + length(p_text), p_text);
    END IF;
END
$$;
