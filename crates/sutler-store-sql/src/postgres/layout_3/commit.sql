-- Layout 3: a commit, all or nothing, in one call. It replaces the function of layouts 1 and 2, for older replicas,
-- too.
--
-- Everything that a commit reads or writes is locked first, in one order that all commits share:
-- documents and workers by advisory locks (which also work for absent ones), then operations by
-- their rows. So there is no deadlock between commits, and everything read afterwards stays true
-- until the end. The numbers of locks are salted with the store they belong to, so that two stores in
-- one database do not wait for each other. The position in the feed is taken last (see layout_1/feed.sql).
--
-- Returns 0 if the commit is applied, n if its n-th expectation does not hold, -n if its n-th write
-- cannot be applied. Once something was written, a failing write ends the transaction by an error:
-- SU001 with its number as the message; SU000 if this commit was applied before. The feed detects
-- the latter too, because an id occurs once: sutler_feed_id is violated.
--
-- Kinds of expectations: 0 absent, 1 version, 2 fence. Kinds of writes: 0 put of a document that is
-- expected to be absent, 1 put, 2 remove, 3 start, 4 advance, 5 cancel, 6 wake, 7 unpin, 8 reseal, 9 import.
-- w_state: the initial state of a start or an import, or the next state of an advance, where 6 means
-- that it stays, 7 that it is retried and 8 that it is put back. w_terms: number of terms of the writes before.
-- w_subject: what a write changes, as the feed names it. Those of a start and an import have their lane; to an operation
-- that was there before, the lane is added here: the byte 3, the length in two bytes, the key.
CREATE OR REPLACE FUNCTION sutler_commit_v1(
    p_id uuid, p_locks bigint[], p_shared boolean[], p_ops uuid[],
    e_kind smallint[], e_key bytea[], e_id uuid[], e_fence bigint[],
    w_kind smallint[], w_key bytea[], w_id uuid[], w_worker uuid[], w_state smallint[],
    w_number bigint[], w_verb bytea[], w_queue bytea[],
    w_a bytea[], w_b bytea[], w_c bytea[], w_d bytea[], w_e bytea[],
    w_subject bytea[], w_terms integer[], t_scope bytea[], t_value bytea[], i_numbers bigint[]
) RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    present    bigint;
    holds      boolean;
    fits       boolean := true;
    did        boolean;
    wrote      boolean := false;
    ended      integer := 0;
    subjects   bytea := '';
    scopes_new bytea[];
    vals_new   bytea[];
    scopes_old bytea[];
    vals_old   bytea[];
    code       smallint;
    held_state smallint;
    held_fence bigint;
    held_by    uuid;
    imported   integer := 0;
    op_lane    bytea;
    sequence   CONSTANT regclass := 'sutler_feed_seq'::regclass;
    salt       CONSTANT bigint := sequence::oid::bigint << 29;
BEGIN
    FOR i IN 1 .. cardinality(p_locks) LOOP
        -- An IF is evaluated without a query of its own.
        IF p_shared[i] THEN
            IF pg_advisory_xact_lock_shared(p_locks[i] # salt) IS NULL THEN END IF;
        ELSE
            IF pg_advisory_xact_lock(p_locks[i] # salt) IS NULL THEN END IF;
        END IF;
    END LOOP;
    IF cardinality(p_ops) = 1 THEN
        -- The common case: what a fence is held to is read with the lock.
        SELECT o.state, o.fence, o.worker INTO held_state, held_fence, held_by
            FROM sutler_op o WHERE o.id = p_ops[1] FOR NO KEY UPDATE;
    ELSIF cardinality(p_ops) > 1 THEN
        PERFORM 1 FROM sutler_op WHERE id = ANY (p_ops) ORDER BY id FOR NO KEY UPDATE;
    END IF;
    present := sutler_now();

    FOR i IN 1 .. cardinality(e_kind) LOOP
        IF e_kind[i] = 0 THEN
            holds := NOT EXISTS (SELECT 1 FROM sutler_doc WHERE key = e_key[i]);
        ELSIF e_kind[i] = 1 THEN
            holds := EXISTS (SELECT 1 FROM sutler_doc WHERE key = e_key[i] AND version = e_id[i]);
        ELSIF cardinality(p_ops) = 1 THEN
            holds := coalesce(held_state = 2 AND held_fence = e_fence[i], false)
                AND EXISTS (SELECT 1 FROM sutler_lease
                            WHERE worker = held_by AND expires > present);
        ELSE
            holds := EXISTS (
                SELECT 1 FROM sutler_op o JOIN sutler_lease l ON l.worker = o.worker
                WHERE o.id = e_id[i] AND o.state = 2 AND o.fence = e_fence[i]
                  AND l.expires > present);
        END IF;
        IF NOT holds THEN
            IF EXISTS (SELECT 1 FROM sutler_feed WHERE id = p_id) THEN RETURN 0; END IF;
            RETURN i;
        END IF;
    END LOOP;

    FOR i IN 1 .. cardinality(w_kind) LOOP
        did := true;
        op_lane := NULL;
        IF w_kind[i] <= 1 THEN
            scopes_new := t_scope[w_terms[i] + 1 : w_terms[i + 1]];
            vals_new := t_value[w_terms[i] + 1 : w_terms[i + 1]];
            IF w_kind[i] = 0 THEN
                INSERT INTO sutler_doc (key, version, scopes, vals, body)
                    VALUES (w_key[i], p_id, scopes_new, vals_new, w_a[i]);
                INSERT INTO sutler_term (scope, value, key)
                    SELECT n.s, n.v, w_key[i] FROM unnest(scopes_new, vals_new) AS n (s, v);
            ELSE
                -- Joined with itself to tell what the terms were.
                UPDATE sutler_doc d SET version = p_id, scopes = scopes_new, vals = vals_new,
                        body = w_a[i]
                    FROM sutler_doc o WHERE d.key = w_key[i] AND o.key = w_key[i]
                    RETURNING o.scopes, o.vals INTO scopes_old, vals_old;
                IF NOT FOUND THEN
                    INSERT INTO sutler_doc (key, version, scopes, vals, body)
                        VALUES (w_key[i], p_id, scopes_new, vals_new, w_a[i]);
                    scopes_old := '{}';
                    vals_old := '{}';
                END IF;
                IF scopes_old <> scopes_new OR vals_old <> vals_new THEN
                    PERFORM sutler_change_terms_v1(
                        w_key[i], scopes_old, vals_old, scopes_new, vals_new);
                END IF;
            END IF;
        ELSIF w_kind[i] = 3 THEN
            IF w_worker[i] IS NOT NULL THEN
                fits := EXISTS (SELECT 1 FROM sutler_lease
                                WHERE worker = w_worker[i] AND expires > present);
            END IF;
            IF fits THEN
                INSERT INTO sutler_op (id, worker, due, fence, accepted, finished, attempt, takeovers,
                        state, cancel, pinned, verb, queue, lane, detail, request, progress)
                    VALUES (w_id[i], w_worker[i], present + w_number[i],
                        CASE WHEN w_worker[i] IS NULL THEN 0 ELSE 1 END, present, NULL, 1, 0,
                        w_state[i], false, true, w_verb[i], w_queue[i], w_key[i], w_a[i], w_b[i], '')
                    ON CONFLICT (id) DO NOTHING;
                fits := FOUND;
            END IF;
        ELSIF w_kind[i] = 4 THEN
            code := w_state[i];
            UPDATE sutler_op SET
                    state = CASE code WHEN 6 THEN state WHEN 7 THEN 1 WHEN 8 THEN 1 ELSE code END,
                    due = CASE WHEN code IN (1, 7, 8) THEN present + w_number[i] ELSE due END,
                    attempt = CASE WHEN code = 7 THEN attempt + 1 ELSE attempt END,
                    takeovers = CASE WHEN code IN (0, 1) OR (code = 6 AND w_b[i] IS NOT NULL) THEN 0
                        ELSE takeovers END,
                    finished = CASE WHEN code IN (3, 4, 5) THEN present ELSE finished END,
                    worker = CASE WHEN code = 6 THEN worker END,
                    detail = coalesce(w_a[i], detail), progress = coalesce(w_b[i], progress)
                WHERE id = w_id[i] AND state < 3 RETURNING lane INTO op_lane;
            fits := FOUND;
            IF code IN (3, 4, 5) THEN ended := ended + 1; END IF;
        ELSIF w_kind[i] = 2 THEN
            DELETE FROM sutler_doc WHERE key = w_key[i] RETURNING scopes, vals
                INTO scopes_old, vals_old;
            did := FOUND;
            IF did THEN
                PERFORM sutler_change_terms_v1(w_key[i], scopes_old, vals_old, '{}', '{}');
            END IF;
        ELSIF w_kind[i] = 5 THEN
            UPDATE sutler_op SET cancel = true WHERE id = w_id[i] AND state < 3
                RETURNING lane INTO op_lane;
            did := FOUND;
        ELSIF w_kind[i] = 6 THEN
            UPDATE sutler_op SET state = 1,
                    due = CASE WHEN state = 0 THEN present ELSE least(due, present) END
                WHERE id = w_id[i] AND state < 2 RETURNING lane INTO op_lane;
            did := FOUND;
        ELSIF w_kind[i] = 7 THEN
            UPDATE sutler_op SET pinned = false WHERE id = w_id[i] RETURNING lane INTO op_lane;
            did := FOUND;
        ELSIF w_kind[i] = 8 THEN
            UPDATE sutler_op SET detail = w_a[i], request = w_b[i], progress = w_c[i]
                WHERE id = w_id[i] AND detail = w_d[i] AND progress = w_e[i]
                RETURNING lane INTO op_lane;
            fits := FOUND;
        ELSE
            code := w_state[i];
            INSERT INTO sutler_op (id, worker, due, fence, accepted, finished, attempt, takeovers,
                    state, cancel, pinned, verb, queue, lane, detail, request, progress)
                VALUES (w_id[i], NULL, CASE WHEN code = 2 THEN present ELSE i_numbers[imported + 1] END,
                    i_numbers[imported + 2], i_numbers[imported + 3],
                    CASE WHEN code > 2 THEN coalesce(i_numbers[imported + 4], present) END,
                    i_numbers[imported + 5], i_numbers[imported + 6],
                    CASE WHEN code = 2 THEN 1 ELSE code END, i_numbers[imported + 7] = 1,
                    i_numbers[imported + 8] = 1, w_verb[i], w_queue[i], w_key[i], w_a[i], w_b[i], w_c[i])
                ON CONFLICT (id) DO NOTHING;
            fits := FOUND;
            imported := imported + 8;
            IF code > 2 THEN ended := ended + 1; END IF;
        END IF;
        IF NOT fits THEN
            holds := EXISTS (SELECT 1 FROM sutler_feed WHERE id = p_id);
            IF NOT wrote THEN RETURN CASE WHEN holds THEN 0 ELSE -i END; END IF;
            IF holds THEN
                RAISE EXCEPTION 'this commit stands from an earlier time' USING ERRCODE = 'SU000';
            END IF;
            RAISE EXCEPTION '%', i USING ERRCODE = 'SU001';
        END IF;
        wrote := true;
        IF did THEN subjects := subjects || w_subject[i]; END IF;
        IF op_lane IS NOT NULL THEN
            subjects := subjects || '\x03'::bytea || int2send(length(op_lane)::smallint) || op_lane;
        END IF;
    END LOOP;

    IF pg_advisory_xact_lock_shared(sutler_place_v1(
            sequence, pg_sequence_last_value(sequence))) IS NULL THEN END IF;
    INSERT INTO sutler_feed (seq, at, id, ended, subjects)
        VALUES (nextval(sequence), present, p_id, ended, subjects);
    RETURN 0;
END
$$;

-- Replaces the index entries of a document's terms, and touches only those that differ.
CREATE OR REPLACE FUNCTION sutler_change_terms_v1(
    p_key bytea, scopes_old bytea[], vals_old bytea[], scopes_new bytea[], vals_new bytea[]
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    DELETE FROM sutler_term t
        USING (SELECT s, v FROM unnest(scopes_old, vals_old) AS o (s, v)
               EXCEPT SELECT s, v FROM unnest(scopes_new, vals_new) AS n (s, v)) gone
        WHERE t.scope = gone.s AND t.value = gone.v AND t.key = p_key;
    INSERT INTO sutler_term (scope, value, key)
        SELECT s, v, p_key FROM (
            SELECT s, v FROM unnest(scopes_new, vals_new) AS n (s, v)
            EXCEPT SELECT s, v FROM unnest(scopes_old, vals_old) AS o (s, v)) added;
END
$$;
