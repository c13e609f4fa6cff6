-- Layout 1: leases, claims, sweeps and logs. None of these is a commit; none is in the feed.

-- Creates or extends a lease. The first row tells whether it was lost; the others are the held operations.
DROP PROCEDURE IF EXISTS sutler_renew_v1;
CREATE PROCEDURE sutler_renew_v1(IN p_worker BINARY(16), IN p_ttl BIGINT)
    MODIFIES SQL DATA
BEGIN
    DECLARE v_now, v_expires BIGINT;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
    SELECT expires INTO v_expires FROM sutler_lease WHERE worker = p_worker FOR UPDATE;
    SELECT micros INTO v_now FROM sutler_clock;
    IF v_expires IS NULL THEN
        INSERT INTO sutler_lease (worker, expires) VALUES (p_worker, v_now + p_ttl);
    ELSEIF v_expires > v_now THEN
        UPDATE sutler_lease SET expires = v_now + p_ttl WHERE worker = p_worker;
    END IF;
    COMMIT;
    SELECT IF(v_expires <= v_now, 1, 0) AS lost, NULL AS id, 0 AS cancel
        UNION ALL SELECT 0, o.id, o.cancel FROM sutler_op o
        WHERE o.worker = p_worker AND o.state = 2 AND (v_expires IS NULL OR v_expires > v_now);
END;

-- Claims operations, marked with p_claim; the first row tells whether the worker holds a lease. Claims
-- run one after the other. Candidates are locked one by one, and skipped if another session has locked
-- them, so there is no deadlock.
DROP PROCEDURE IF EXISTS sutler_claim_v1;
CREATE PROCEDURE sutler_claim_v1(
    IN p_worker BINARY(16), IN p_lock INTEGER, IN p_claim BINARY(16), IN p_limits LONGBLOB,
    IN p_queues LONGBLOB)
    MODIFIES SQL DATA
main: BEGIN
    DECLARE v_now, v_seen, v_len, v_limit, v_due_ready, v_due_left BIGINT;
    DECLARE f, n BIGINT DEFAULT 0;
    DECLARE q BIGINT DEFAULT 1;
    DECLARE v_queue VARBINARY(128);
    DECLARE v_ready, v_left, v_owner, v_id BINARY(16);
    DECLARE c_ready CURSOR FOR SELECT id, due FROM sutler_op
        WHERE state = 1 AND queue = v_queue AND due <= v_now ORDER BY due, id LIMIT 1000;
    DECLARE c_left CURSOR FOR SELECT o.id, o.due FROM sutler_lease l
        JOIN sutler_op o ON o.worker = l.worker AND o.state = 2
        WHERE l.expires <= v_now AND o.queue = v_queue ORDER BY o.due, o.id LIMIT 1000;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
    SELECT l.n INTO v_seen FROM sutler_lock l WHERE l.n = p_lock LOCK IN SHARE MODE;
    SELECT l.n INTO v_seen FROM sutler_lock l WHERE l.n = 16384 FOR UPDATE;
    SELECT micros INTO v_now FROM sutler_clock;
    SET v_seen = NULL;
    SELECT 1 INTO v_seen FROM sutler_lease WHERE worker = p_worker AND expires > v_now;
    IF v_seen IS NULL THEN
        ROLLBACK;
        SELECT NULL AS id;
        LEAVE main;
    END IF;
    WHILE f < LENGTH(p_limits) DO
        SET v_limit = CAST(SUBSTRING(p_limits, f + 1, 20) AS SIGNED),
            v_len = CAST(SUBSTRING(p_limits, f + 21, 20) AS SIGNED), f = f + 40;
        SET v_queue = SUBSTRING(p_queues, q, v_len), q = q + v_len, n = 0, v_ready = NULL, v_left = NULL;
        OPEN c_ready;
        OPEN c_left;
        FETCH c_ready INTO v_ready, v_due_ready;
        FETCH c_left INTO v_left, v_due_left;
        WHILE n < v_limit AND (v_ready IS NOT NULL OR v_left IS NOT NULL) DO
            SET v_seen = NULL, v_owner = NULL;
            IF v_left IS NULL OR (v_ready IS NOT NULL AND v_due_ready <= v_due_left) THEN
                SELECT state INTO v_seen FROM sutler_op WHERE id = v_ready FOR UPDATE SKIP LOCKED;
                SET v_id = v_ready, v_seen = IF(v_seen = 1, 0, NULL), v_ready = NULL;
                FETCH c_ready INTO v_ready, v_due_ready;
            ELSE
                SELECT state, worker INTO v_seen, v_owner FROM sutler_op WHERE id = v_left
                    FOR UPDATE SKIP LOCKED;
                SET v_id = v_left, v_left = NULL;
                IF v_seen = 2 THEN
                    SET v_seen = 1;
                    SELECT NULL INTO v_seen FROM sutler_lease WHERE worker = v_owner AND expires > v_now;
                ELSE
                    SET v_seen = NULL;
                END IF;
                FETCH c_left INTO v_left, v_due_left;
            END IF;
            IF v_seen IS NOT NULL THEN
                UPDATE sutler_op SET state = 2, fence = fence + 1, takeovers = takeovers + v_seen,
                    worker = p_worker, claim = p_claim WHERE id = v_id;
                SET n = n + 1;
            END IF;
        END WHILE;
        CLOSE c_ready;
        CLOSE c_left;
    END WHILE;
    COMMIT;
    SELECT id, lane, verb, queue, state, due, fence, attempt, takeovers, cancel, pinned, accepted,
           finished, detail, request, progress
        FROM sutler_op WHERE worker = p_worker AND state = 2 AND claim = p_claim;
END;

-- Ends a lease and releases its operations; returns their number.
DROP PROCEDURE IF EXISTS sutler_release_v1;
CREATE PROCEDURE sutler_release_v1(IN p_worker BINARY(16), IN p_lock INTEGER)
    MODIFIES SQL DATA
BEGIN
    DECLARE v_now, v_seen, v_count BIGINT DEFAULT 0;
    DECLARE v_id BINARY(16);
    DECLARE c_held CURSOR FOR SELECT id FROM sutler_op
        WHERE worker = p_worker AND state = 2 ORDER BY id;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
    -- Nobody may begin to run something under this lease meanwhile.
    SELECT n INTO v_seen FROM sutler_lock WHERE n = p_lock FOR UPDATE;
    SELECT micros INTO v_now FROM sutler_clock;
    -- One that ran out stays: its worker may still be about, and must learn of it.
    DELETE FROM sutler_lease WHERE worker = p_worker AND expires > v_now;
    OPEN c_held;
    FETCH c_held INTO v_id;
    WHILE v_id IS NOT NULL DO
        -- In the order in which commits lock them.
        SET v_seen = NULL;
        SELECT 1 INTO v_seen FROM sutler_op
            WHERE id = v_id AND worker = p_worker AND state = 2 FOR UPDATE;
        IF v_seen = 1 THEN
            UPDATE sutler_op SET state = 1, due = v_now, worker = NULL WHERE id = v_id;
            SET v_count = v_count + 1;
        END IF;
        SET v_id = NULL;
        FETCH c_held INTO v_id;
    END WHILE;
    CLOSE c_held;
    COMMIT;
    SELECT v_count AS count;
END;

-- Deletes ended operations of one state; returns their number. Each scope in the range of lanes is
-- visited separately, so that old operations of other scopes are not visited again and again.
DROP PROCEDURE IF EXISTS sutler_sweep_v1;
CREATE PROCEDURE sutler_sweep_v1(
    IN p_state BIGINT, IN p_from VARBINARY(1700), IN p_after VARBINARY(1700), IN p_before BIGINT,
    IN p_limit BIGINT)
    MODIFIES SQL DATA
BEGIN
    DECLARE v_seen, v_left, v_count BIGINT DEFAULT 0;
    DECLARE v_id BINARY(16);
    DECLARE v_scope, v_next VARBINARY(100);
    DECLARE c_old CURSOR FOR SELECT id FROM sutler_op FORCE INDEX (sutler_op_sweepable)
        WHERE pinned = 0 AND scope = v_scope AND state = p_state AND finished < p_before
          AND lane >= p_from AND lane < p_after
        ORDER BY finished LIMIT v_left;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
    SET v_next = SUBSTRING_INDEX(p_from, 0x00, 2);
    SELECT scope INTO v_scope FROM sutler_op FORCE INDEX (sutler_op_sweepable)
        WHERE pinned = 0 AND scope >= v_next AND scope < p_after ORDER BY pinned, scope LIMIT 1;
    WHILE v_scope IS NOT NULL AND v_count < p_limit DO
        SET v_left = p_limit - v_count;
        OPEN c_old;
        FETCH c_old INTO v_id;
        WHILE v_id IS NOT NULL DO
            SET v_seen = NULL;
            SELECT 1 INTO v_seen FROM sutler_op WHERE id = v_id FOR UPDATE SKIP LOCKED;
            IF v_seen = 1 THEN
                DELETE FROM sutler_log WHERE op = v_id;
                DELETE FROM sutler_op WHERE id = v_id;
                SET v_count = v_count + 1;
            END IF;
            SET v_id = NULL;
            FETCH c_old INTO v_id;
        END WHILE;
        CLOSE c_old;
        SET v_next = NULL;
        SELECT scope INTO v_next FROM sutler_op FORCE INDEX (sutler_op_sweepable)
            WHERE pinned = 0 AND scope > v_scope AND scope < p_after ORDER BY pinned, scope LIMIT 1;
        SET v_scope = v_next;
    END WHILE;
    IF v_count > 0 THEN UPDATE sutler_swept SET cleaned = cleaned + v_count WHERE no = 1; END IF;
    COMMIT;
    SELECT v_count AS count;
END;

-- Trims commits from before a moment, and deletes leases that expired before it and cover no operation.
DROP PROCEDURE IF EXISTS sutler_trim_v1;
CREATE PROCEDURE sutler_trim_v1(IN p_before BIGINT, IN p_limit BIGINT)
    MODIFIES SQL DATA
BEGIN
    DECLARE v_first, v_last, v_count BIGINT DEFAULT 0;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
    DELETE FROM sutler_lease WHERE expires < p_before
        AND NOT EXISTS (SELECT 1 FROM sutler_op o WHERE o.worker = sutler_lease.worker AND o.state = 2);
    SELECT trimmed INTO v_first FROM sutler_swept WHERE no = 1 FOR UPDATE;
    -- The last of the oldest before the first that is too young.
    SELECT MIN(y.seq) - 1 INTO v_last FROM (
        SELECT seq, at FROM sutler_feed WHERE seq > v_first ORDER BY seq LIMIT p_limit) y
        WHERE y.at >= p_before;
    IF v_last IS NULL THEN
        SELECT MAX(y.seq) INTO v_last FROM (
            SELECT seq FROM sutler_feed WHERE seq > v_first ORDER BY seq LIMIT p_limit) y;
    END IF;
    IF v_last > v_first THEN
        SELECT COUNT(*) INTO v_count FROM sutler_feed WHERE seq > v_first AND seq <= v_last;
        DELETE FROM sutler_feed WHERE seq <= v_last;
        UPDATE sutler_swept SET trimmed = v_last WHERE no = 1;
    END IF;
    COMMIT;
    SELECT v_count AS count;
END;

-- Appends a chunk to a log, unless the operation does not exist or the log is full.
DROP PROCEDURE IF EXISTS sutler_append_log_v1;
CREATE PROCEDURE sutler_append_log_v1(IN p_op BINARY(16), IN p_text LONGBLOB, IN p_most BIGINT)
    MODIFIES SQL DATA
BEGIN
    DECLARE v_seen BIGINT;
    DECLARE v_number BIGINT DEFAULT -1;
    DECLARE v_total BIGINT DEFAULT 0;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
    -- The row stands until the chunk does: what is swept takes its whole log along.
    SELECT 1 INTO v_seen FROM sutler_op WHERE id = p_op FOR UPDATE;
    IF v_seen = 1 THEN
        SELECT number, total INTO v_number, v_total FROM sutler_log
            WHERE op = p_op ORDER BY number DESC LIMIT 1;
        IF v_total + LENGTH(p_text) <= p_most THEN
            INSERT INTO sutler_log (op, number, total, text)
                VALUES (p_op, v_number + 1, v_total + LENGTH(p_text), p_text);
        END IF;
    END IF;
    COMMIT;
    SELECT 0 AS done;
END;
