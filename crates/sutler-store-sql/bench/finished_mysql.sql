-- Unpinned operations that ended two hours ago, for a sweep. @count is their number.
SET @now = (SELECT micros FROM sutler_clock);
INSERT INTO sutler_op (id, worker, due, fence, accepted, finished, attempt, takeovers, state, cancel, pinned,
    verb, queue, lane, detail, request, progress)
SELECT UNHEX(REPLACE(UUID(), '-', '')), NULL, 1, 1, 1, @now - 7200000000 - seq, 1, 0, 3 + seq MOD 2, 0, 0,
       'provision', 'broker', CONCAT('broker', CHAR(0), 'instance', CHAR(0), UUID()),
       REPEAT(CHAR(7), 100), REPEAT(CHAR(7), 400), ''
FROM (
    WITH RECURSIVE digit (d) AS (SELECT 0 UNION ALL SELECT d + 1 FROM digit WHERE d < 9)
    SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d + 100000 * g.d AS seq
    FROM digit a, digit b, digit c, digit e, digit f, digit g) numbers
WHERE seq < @count;
UPDATE sutler_tally SET ended = ended + @count, accepted = accepted + @count WHERE no = 1;
