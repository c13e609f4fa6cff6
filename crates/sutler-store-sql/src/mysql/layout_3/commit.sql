-- Layout 3: a commit, all or nothing, in one call. The procedures of layouts 1 and 2 stay for replicas that still
-- use them.
--
-- p_head holds numbers of twenty characters each, p_data bytes; both are read once from left to right.
-- p_head begins with the number of locks, and for each twice its number, plus one if it is shared; the
-- number of operations to lock; the number of expectations; the number of writes. Then each expectation:
-- its kind, the length of its key, the length of its id, its fence. Then each write: its kind, its state,
-- its wait, and the lengths of key, id, worker, verb, queue, a, b, c, d, e, subject and terms (-1: none);
-- an import has eight more numbers. Operations to lock come first in p_data. Kinds and states are those of
-- postgres/layout_3/commit.sql (8 as the next state: that it is put back). Terms are numbers (their count; the
-- lengths of each scope and value) and then bytes, in one piece. Lanes are added to the subjects as there.
--
-- Locks are taken in one order that all commits share, then operations in theirs, then the one row that
-- gives the number in the feed: the order of numbers is the order of commits.
--
-- Returns one row: 0 if the commit is applied, n if its n-th expectation does not hold, -n if its n-th
-- write cannot be applied.
DROP PROCEDURE IF EXISTS sutler_commit_v3;
CREATE PROCEDURE sutler_commit_v3(IN p_id BINARY(16), IN p_head LONGBLOB, IN p_data LONGBLOB)
    MODIFIES SQL DATA
main: BEGIN
    DECLARE f, q, i, n_locks, n_ops, n_expects, n_writes, v_len BIGINT DEFAULT 0;
    DECLARE v_now, v_kind, v_state, v_wait, v_seen, v_verdict, v_ended, v_begun BIGINT DEFAULT 0;
    DECLARE v_due, v_fence, v_accepted, v_finished, v_attempt, v_takeovers, v_cancel, v_pinned BIGINT;
    DECLARE v_key, v_verb, v_queue, v_lane LONGBLOB;
    DECLARE v_a, v_b, v_c, v_d, v_e, v_subject, v_terms, v_old LONGBLOB;
    DECLARE v_id, v_worker BINARY(16);
    DECLARE v_subjects LONGBLOB DEFAULT '';
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
    SET n_locks = CAST(SUBSTRING(p_head, 1, 20) AS SIGNED), f = 20, q = 1;
    WHILE i < n_locks DO
        SET v_len = CAST(SUBSTRING(p_head, f + 1, 20) AS SIGNED), f = f + 20, i = i + 1;
        IF v_len MOD 2 = 1 THEN
            SELECT n INTO v_seen FROM sutler_lock WHERE n = v_len DIV 2 LOCK IN SHARE MODE;
        ELSE
            SELECT n INTO v_seen FROM sutler_lock WHERE n = v_len DIV 2 FOR UPDATE;
        END IF;
    END WHILE;
    SET n_ops = CAST(SUBSTRING(p_head, f + 1, 20) AS SIGNED),
        n_expects = CAST(SUBSTRING(p_head, f + 21, 20) AS SIGNED),
        n_writes = CAST(SUBSTRING(p_head, f + 41, 20) AS SIGNED), f = f + 60, i = 0;
    WHILE i < n_ops DO
        SELECT state INTO v_seen FROM sutler_op WHERE id = SUBSTRING(p_data, q, 16) FOR UPDATE;
        SET q = q + 16, i = i + 1;
    END WHILE;
    SELECT micros INTO v_now FROM sutler_clock;

    SET i = 0;
    WHILE i < n_expects AND v_verdict = 0 DO
        SET i = i + 1, v_kind = CAST(SUBSTRING(p_head, f + 1, 20) AS SIGNED);
        SET v_len = CAST(SUBSTRING(p_head, f + 21, 20) AS SIGNED),
            v_key = IF(v_len < 0, NULL, SUBSTRING(p_data, q, v_len)), q = q + GREATEST(v_len, 0);
        SET v_len = CAST(SUBSTRING(p_head, f + 41, 20) AS SIGNED),
            v_id = IF(v_len < 0, NULL, SUBSTRING(p_data, q, v_len)), q = q + GREATEST(v_len, 0);
        SET v_fence = CAST(SUBSTRING(p_head, f + 61, 20) AS SIGNED), f = f + 80, v_seen = NULL;
        IF v_kind = 0 THEN
            SELECT 0 INTO v_seen FROM sutler_doc WHERE `key` = v_key;
            SET v_seen = IFNULL(v_seen, 1);
        ELSEIF v_kind = 1 THEN
            SELECT 1 INTO v_seen FROM sutler_doc WHERE `key` = v_key AND version = v_id;
        ELSE
            SELECT 1 INTO v_seen FROM sutler_op o JOIN sutler_lease l ON l.worker = o.worker
                WHERE o.id = v_id AND o.state = 2 AND o.fence = v_fence AND l.expires > v_now;
        END IF;
        IF IFNULL(v_seen, 0) = 0 THEN SET v_verdict = i; END IF;
    END WHILE;

    SET i = 0;
    WHILE i < n_writes AND v_verdict = 0 DO
        SET i = i + 1,
            v_kind = CAST(SUBSTRING(p_head, f + 1, 20) AS SIGNED),
            v_state = CAST(SUBSTRING(p_head, f + 21, 20) AS SIGNED),
            v_wait = CAST(SUBSTRING(p_head, f + 41, 20) AS SIGNED);
        SET v_len = CAST(SUBSTRING(p_head, f + 61, 20) AS SIGNED),
            v_key = IF(v_len < 0, NULL, SUBSTRING(p_data, q, v_len)), q = q + GREATEST(v_len, 0);
        SET v_len = CAST(SUBSTRING(p_head, f + 81, 20) AS SIGNED),
            v_id = IF(v_len < 0, NULL, SUBSTRING(p_data, q, v_len)), q = q + GREATEST(v_len, 0);
        SET v_len = CAST(SUBSTRING(p_head, f + 101, 20) AS SIGNED),
            v_worker = IF(v_len < 0, NULL, SUBSTRING(p_data, q, v_len)), q = q + GREATEST(v_len, 0);
        SET v_len = CAST(SUBSTRING(p_head, f + 121, 20) AS SIGNED),
            v_verb = IF(v_len < 0, NULL, SUBSTRING(p_data, q, v_len)), q = q + GREATEST(v_len, 0);
        SET v_len = CAST(SUBSTRING(p_head, f + 141, 20) AS SIGNED),
            v_queue = IF(v_len < 0, NULL, SUBSTRING(p_data, q, v_len)), q = q + GREATEST(v_len, 0);
        SET v_len = CAST(SUBSTRING(p_head, f + 161, 20) AS SIGNED),
            v_a = IF(v_len < 0, NULL, SUBSTRING(p_data, q, v_len)), q = q + GREATEST(v_len, 0);
        SET v_len = CAST(SUBSTRING(p_head, f + 181, 20) AS SIGNED),
            v_b = IF(v_len < 0, NULL, SUBSTRING(p_data, q, v_len)), q = q + GREATEST(v_len, 0);
        SET v_len = CAST(SUBSTRING(p_head, f + 201, 20) AS SIGNED),
            v_c = IF(v_len < 0, NULL, SUBSTRING(p_data, q, v_len)), q = q + GREATEST(v_len, 0);
        SET v_len = CAST(SUBSTRING(p_head, f + 221, 20) AS SIGNED),
            v_d = IF(v_len < 0, NULL, SUBSTRING(p_data, q, v_len)), q = q + GREATEST(v_len, 0);
        SET v_len = CAST(SUBSTRING(p_head, f + 241, 20) AS SIGNED),
            v_e = IF(v_len < 0, NULL, SUBSTRING(p_data, q, v_len)), q = q + GREATEST(v_len, 0);
        SET v_len = CAST(SUBSTRING(p_head, f + 261, 20) AS SIGNED),
            v_subject = SUBSTRING(p_data, q, v_len), q = q + v_len;
        SET v_len = CAST(SUBSTRING(p_head, f + 281, 20) AS SIGNED),
            v_terms = IF(v_len < 0, NULL, SUBSTRING(p_data, q, v_len)), q = q + GREATEST(v_len, 0),
            f = f + 300, v_seen = NULL, v_lane = NULL;
        IF v_kind <= 2 THEN
            SET v_old = NULL;
            IF v_kind > 0 THEN SELECT terms INTO v_old FROM sutler_doc WHERE `key` = v_key; END IF;
            IF v_kind = 2 THEN
                IF v_old IS NULL THEN
                    SET v_subject = '';
                ELSE
                    CALL sutler_take_terms_v3(v_key, v_old);
                    DELETE FROM sutler_doc WHERE `key` = v_key;
                END IF;
            ELSE
                IF v_old IS NULL THEN
                    INSERT INTO sutler_doc (`key`, version, terms, body)
                        VALUES (v_key, p_id, v_terms, v_a);
                ELSE
                    UPDATE sutler_doc SET version = p_id, terms = v_terms, body = v_a
                        WHERE `key` = v_key;
                END IF;
                IF v_old IS NULL OR v_old <> v_terms THEN
                    IF v_old IS NOT NULL THEN CALL sutler_take_terms_v3(v_key, v_old); END IF;
                    CALL sutler_give_terms_v3(v_key, v_terms);
                END IF;
            END IF;
        ELSEIF v_kind IN (3, 9) THEN
            SELECT 1 INTO v_seen FROM sutler_op WHERE id = v_id;
            IF v_seen IS NULL AND v_worker IS NOT NULL THEN
                SET v_seen = 1;
                SELECT NULL INTO v_seen FROM sutler_lease
                    WHERE worker = v_worker AND expires > v_now;
            END IF;
            IF v_seen IS NOT NULL THEN
                SET v_verdict = -i;
            ELSE
                IF v_kind = 3 THEN
                    SET v_due = v_now + v_wait, v_fence = IF(v_worker IS NULL, 0, 1),
                        v_accepted = v_now, v_finished = NULL, v_attempt = 1, v_takeovers = 0,
                        v_cancel = 0, v_pinned = 1, v_c = '';
                ELSE
                    SET v_due = CAST(SUBSTRING(p_head, f + 1, 20) AS SIGNED),
                        v_fence = CAST(SUBSTRING(p_head, f + 21, 20) AS SIGNED),
                        v_accepted = CAST(SUBSTRING(p_head, f + 41, 20) AS SIGNED),
                        v_finished = CAST(SUBSTRING(p_head, f + 61, 20) AS SIGNED),
                        v_attempt = CAST(SUBSTRING(p_head, f + 81, 20) AS SIGNED),
                        v_takeovers = CAST(SUBSTRING(p_head, f + 101, 20) AS SIGNED),
                        v_cancel = CAST(SUBSTRING(p_head, f + 121, 20) AS SIGNED),
                        v_pinned = CAST(SUBSTRING(p_head, f + 141, 20) AS SIGNED), f = f + 160;
                    -- An end that is not known is now; what has not ended has none.
                    SET v_finished = IF(v_state > 2, IF(v_finished < 0, v_now, v_finished), NULL),
                        v_due = IF(v_state = 2, v_now, v_due), v_state = IF(v_state = 2, 1, v_state);
                END IF;
                INSERT INTO sutler_op (id, worker, due, fence, accepted, finished, attempt, takeovers,
                        state, cancel, pinned, verb, queue, lane, detail, request, progress)
                    VALUES (v_id, v_worker, v_due, v_fence, v_accepted, v_finished, v_attempt,
                        v_takeovers, v_state, v_cancel, v_pinned, v_verb, v_queue, v_key, v_a, v_b, v_c);
                SET v_begun = v_begun + 1, v_ended = v_ended + IF(v_state > 2, 1, 0);
            END IF;
        ELSEIF v_kind = 4 THEN
            SELECT state, lane INTO v_seen, v_lane FROM sutler_op WHERE id = v_id;
            IF v_seen IS NULL OR v_seen > 2 THEN
                SET v_verdict = -i;
            ELSE
                UPDATE sutler_op SET
                        due = IF(v_state IN (1, 7, 8), v_now + v_wait, due),
                        attempt = attempt + IF(v_state = 7, 1, 0),
                        takeovers = IF(v_state IN (0, 1) OR (v_state = 6 AND v_b IS NOT NULL), 0, takeovers),
                        finished = IF(v_state IN (3, 4, 5), v_now, finished),
                        worker = IF(v_state = 6, worker, NULL),
                        detail = IFNULL(v_a, detail), progress = IFNULL(v_b, progress),
                        state = CASE v_state WHEN 6 THEN state WHEN 7 THEN 1 WHEN 8 THEN 1 ELSE v_state END
                    WHERE id = v_id;
                SET v_ended = v_ended + IF(v_state IN (3, 4, 5), 1, 0);
            END IF;
        ELSEIF v_kind = 8 THEN
            SELECT 1, lane INTO v_seen, v_lane FROM sutler_op
                WHERE id = v_id AND detail = v_d AND progress = v_e;
            IF v_seen IS NULL THEN
                SET v_verdict = -i;
            ELSE
                UPDATE sutler_op SET detail = v_a, request = v_b, progress = v_c WHERE id = v_id;
            END IF;
        ELSE
            SELECT state, lane INTO v_seen, v_lane FROM sutler_op WHERE id = v_id;
            IF v_seen IS NULL OR v_seen > CASE v_kind WHEN 5 THEN 2 WHEN 6 THEN 1 ELSE 5 END THEN
                SET v_subject = '';
            ELSEIF v_kind = 5 THEN
                UPDATE sutler_op SET cancel = 1 WHERE id = v_id;
            ELSEIF v_kind = 6 THEN
                UPDATE sutler_op SET due = IF(state = 0, v_now, LEAST(due, v_now)), state = 1
                    WHERE id = v_id;
            ELSE
                UPDATE sutler_op SET pinned = 0 WHERE id = v_id;
            END IF;
        END IF;
        SET v_subjects = CONCAT(v_subjects, v_subject);
        IF v_lane IS NOT NULL AND v_subject <> '' THEN
            SET v_subjects = CONCAT(v_subjects, 0x03, UNHEX(LPAD(HEX(LENGTH(v_lane)), 4, '0')), v_lane);
        END IF;
    END WHILE;

    IF v_verdict = 0 THEN
        UPDATE sutler_tally SET seq = seq + 1, accepted = accepted + v_begun,
            ended = ended + v_ended WHERE no = 1;
        SET v_seen = NULL;
        SELECT 1 INTO v_seen FROM sutler_feed WHERE id = p_id;
        IF v_seen IS NULL THEN
            INSERT INTO sutler_feed (seq, at, id, subjects)
                SELECT seq, v_now, p_id, v_subjects FROM sutler_tally WHERE no = 1;
            COMMIT;
            SELECT 0 AS verdict;
            LEAVE main;
        END IF;
    END IF;
    -- Nothing of it stays. If this very commit stands from an earlier time, that is why.
    ROLLBACK;
    SELECT 0 INTO v_verdict FROM sutler_feed WHERE id = p_id;
    SELECT v_verdict AS verdict;
END;

-- Adds a document to the index of terms.
DROP PROCEDURE IF EXISTS sutler_give_terms_v3;
CREATE PROCEDURE sutler_give_terms_v3(IN p_key VARBINARY(1700), IN p_terms LONGBLOB)
    MODIFIES SQL DATA
BEGIN
    DECLARE n BIGINT DEFAULT CAST(SUBSTRING(p_terms, 1, 20) AS SIGNED);
    DECLARE i, v_scope, v_value BIGINT DEFAULT 0;
    DECLARE q BIGINT DEFAULT 21 + n * 40;
    WHILE i < n DO
        SET v_scope = CAST(SUBSTRING(p_terms, 21 + i * 40, 20) AS SIGNED),
            v_value = CAST(SUBSTRING(p_terms, 41 + i * 40, 20) AS SIGNED), i = i + 1;
        INSERT IGNORE INTO sutler_term (scope, value, `key`)
            VALUES (SUBSTRING(p_terms, q, v_scope), SUBSTRING(p_terms, q + v_scope, v_value), p_key);
        SET q = q + v_scope + v_value;
    END WHILE;
END;

-- Removes a document from the index of terms.
DROP PROCEDURE IF EXISTS sutler_take_terms_v3;
CREATE PROCEDURE sutler_take_terms_v3(IN p_key VARBINARY(1700), IN p_terms LONGBLOB)
    MODIFIES SQL DATA
BEGIN
    DECLARE n BIGINT DEFAULT CAST(SUBSTRING(p_terms, 1, 20) AS SIGNED);
    DECLARE i, v_scope, v_value BIGINT DEFAULT 0;
    DECLARE q BIGINT DEFAULT 21 + n * 40;
    WHILE i < n DO
        SET v_scope = CAST(SUBSTRING(p_terms, 21 + i * 40, 20) AS SIGNED),
            v_value = CAST(SUBSTRING(p_terms, 41 + i * 40, 20) AS SIGNED), i = i + 1;
        DELETE FROM sutler_term WHERE scope = SUBSTRING(p_terms, q, v_scope)
            AND value = SUBSTRING(p_terms, q + v_scope, v_value) AND `key` = p_key;
        SET q = q + v_scope + v_value;
    END WHILE;
END;
