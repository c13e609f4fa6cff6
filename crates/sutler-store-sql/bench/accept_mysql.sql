-- Baseline of an accepting commit: the same rows from a procedure without checks and locks.
DROP PROCEDURE IF EXISTS bare_accept;
DELIMITER //
CREATE PROCEDURE bare_accept(IN p_id BINARY(16)) MODIFIES SQL DATA
BEGIN
    DECLARE v_key VARBINARY(1700) DEFAULT CONCAT('broker', CHAR(0), 'instance', CHAR(0), LOWER(HEX(p_id)));
    START TRANSACTION;
    INSERT INTO sutler_doc (`key`, version, terms, body)
        VALUES (v_key, p_id, REPEAT('t', 300), REPEAT(CHAR(7), 400));
    INSERT INTO sutler_term (scope, value, `key`)
        VALUES ('broker.instance.service', 'service-1', v_key), ('broker.instance.plan', 'plan-1', v_key),
               ('broker.instance.created', p_id, v_key);
    INSERT INTO sutler_op (id, worker, due, fence, accepted, finished, attempt, takeovers, state, cancel,
            pinned, verb, queue, lane, detail, request, progress)
        VALUES (p_id, p_id, 1, 1, 1, NULL, 1, 0, 2, 0, 1, 'provision', 'broker', v_key,
            REPEAT(CHAR(7), 100), REPEAT(CHAR(7), 400), '');
    UPDATE sutler_tally SET seq = seq + 1, accepted = accepted + 1 WHERE no = 1;
    INSERT INTO sutler_feed (seq, at, id, subjects)
        SELECT seq, 1, p_id, CONCAT(v_key, v_key) FROM sutler_tally WHERE no = 1;
    COMMIT;
END //
DELIMITER ;
