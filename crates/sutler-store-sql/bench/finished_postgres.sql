-- Unpinned operations that ended two hours ago, for a sweep. `count` is their number.
INSERT INTO sutler_op (id, worker, due, fence, accepted, finished, attempt, takeovers, state, cancel, pinned,
    verb, queue, lane, detail, request, progress)
SELECT gen_random_uuid(), NULL, 1, 1, 1, sutler_now() - 7200000000 - n, 1, 0, 3 + n % 2, false, false,
       'provision', 'broker', convert_to('broker', 'UTF8') || '\x00'::bytea || convert_to('instance', 'UTF8')
           || '\x00'::bytea || convert_to(gen_random_uuid()::text, 'UTF8'),
       decode(repeat('07', 100), 'hex'), decode(repeat('07', 400), 'hex'), ''
FROM generate_series(1, :count) AS n;
UPDATE sutler_tally SET ended = ended + :count;
VACUUM ANALYZE;
CHECKPOINT;
