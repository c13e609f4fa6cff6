-- Layout 3: the two commits of every request, in as few statements as possible. They replace the functions of layout 1,
-- for older replicas, too.
--
-- They do the same as sutler_commit_v1 with the same writes, and lock in the same order. In all but the
-- common case they decline: then the result is NULL, or the transaction ends by the error SU002, and
-- nothing was written. Return 0 if the commit is applied, 1 if the document is not as expected. Arrays
-- would cost more than the rows do, so each value is a separate parameter.

-- Creates a document and starts an operation. p_shared: the lock of the worker that runs it.
CREATE OR REPLACE FUNCTION sutler_commit_accept_v1(
    p_id uuid, p_lock bigint, p_shared bigint, p_key bytea, p_scopes bytea[], p_vals bytea[],
    p_body bytea, p_op uuid, p_worker uuid, p_state smallint, p_wait bigint, p_verb bytea,
    p_queue bytea, p_lane bytea, p_detail bytea, p_request bytea, p_subjects bytea
) RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    present  bigint;
    sequence CONSTANT regclass := 'sutler_feed_seq'::regclass;
    salt     CONSTANT bigint := sequence::oid::bigint << 29;
BEGIN
    -- In the order of all commits; without a worker there is no second lock.
    IF p_shared < p_lock THEN
        IF pg_advisory_xact_lock_shared(p_shared # salt) IS NULL THEN END IF;
        IF pg_advisory_xact_lock(p_lock # salt) IS NULL THEN END IF;
    ELSE
        IF pg_advisory_xact_lock(p_lock # salt) IS NULL THEN END IF;
        IF pg_advisory_xact_lock_shared(p_shared # salt) IS NULL THEN END IF;
    END IF;
    present := sutler_now();
    IF EXISTS (SELECT 1 FROM sutler_doc WHERE key = p_key) THEN
        RETURN CASE WHEN EXISTS (SELECT 1 FROM sutler_feed WHERE id = p_id) THEN 0 ELSE 1 END;
    END IF;
    IF p_worker IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM sutler_lease WHERE worker = p_worker AND expires > present) THEN
        RETURN NULL;
    END IF;
    INSERT INTO sutler_doc (key, version, scopes, vals, body)
        VALUES (p_key, p_id, p_scopes, p_vals, p_body);
    INSERT INTO sutler_term (scope, value, key)
        SELECT n.s, n.v, p_key FROM unnest(p_scopes, p_vals) AS n (s, v);
    INSERT INTO sutler_op (id, worker, due, fence, accepted, finished, attempt, takeovers, state,
            cancel, pinned, verb, queue, lane, detail, request, progress)
        VALUES (p_op, p_worker, present + p_wait, CASE WHEN p_worker IS NULL THEN 0 ELSE 1 END,
            present, NULL, 1, 0, p_state, false, true, p_verb, p_queue, p_lane, p_detail, p_request, '');
    IF pg_advisory_xact_lock_shared(sutler_place_v1(
            sequence, pg_sequence_last_value(sequence))) IS NULL THEN END IF;
    INSERT INTO sutler_feed (seq, at, id, ended, subjects)
        VALUES (nextval(sequence), present, p_id, 0, p_subjects);
    RETURN 0;
END
$$;

-- Replaces a document and ends an operation that its worker still holds. The row of the operation is
-- locked where it is written: it is the only one, so there is no deadlock. The operation is the last of p_subjects, to
-- which its lane is added.
CREATE OR REPLACE FUNCTION sutler_commit_result_v1(
    p_id uuid, p_lock bigint, p_key bytea, p_version uuid, p_scopes bytea[], p_vals bytea[],
    p_body bytea, p_op uuid, p_fence bigint, p_state smallint, p_detail bytea, p_progress bytea,
    p_subjects bytea
) RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    present    bigint;
    scopes_old bytea[];
    vals_old   bytea[];
    held_until bigint;
    op_lane    bytea;
    sequence   CONSTANT regclass := 'sutler_feed_seq'::regclass;
    salt       CONSTANT bigint := sequence::oid::bigint << 29;
BEGIN
    IF pg_advisory_xact_lock(p_lock # salt) IS NULL THEN END IF;
    present := sutler_now();
    -- Joined with itself to tell what the terms were.
    UPDATE sutler_doc d SET version = p_id, scopes = p_scopes, vals = p_vals, body = p_body
        FROM sutler_doc o WHERE d.key = p_key AND d.version = p_version AND o.key = p_key
        RETURNING o.scopes, o.vals INTO scopes_old, vals_old;
    IF NOT FOUND THEN
        RETURN CASE WHEN EXISTS (SELECT 1 FROM sutler_feed WHERE id = p_id) THEN 0 ELSE 1 END;
    END IF;
    IF scopes_old <> p_scopes OR vals_old <> p_vals THEN
        PERFORM sutler_change_terms_v1(p_key, scopes_old, vals_old, p_scopes, p_vals);
    END IF;
    UPDATE sutler_op o SET state = p_state, finished = present, worker = NULL,
            detail = coalesce(p_detail, o.detail), progress = coalesce(p_progress, o.progress)
        FROM sutler_lease l
        WHERE o.id = p_op AND o.state = 2 AND o.fence = p_fence
          AND l.worker = o.worker AND l.expires > present
        RETURNING l.expires, o.lane INTO held_until, op_lane;
    -- The row may have been waited for.
    IF held_until IS NULL OR held_until <= sutler_now() THEN
        RAISE EXCEPTION 'this is for sutler_commit_v1' USING ERRCODE = 'SU002';
    END IF;
    IF pg_advisory_xact_lock_shared(sutler_place_v1(
            sequence, pg_sequence_last_value(sequence))) IS NULL THEN END IF;
    INSERT INTO sutler_feed (seq, at, id, ended, subjects)
        VALUES (nextval(sequence), present, p_id, 1,
            p_subjects || '\x03'::bytea || int2send(length(op_lane)::smallint) || op_lane);
    RETURN 0;
END
$$;
