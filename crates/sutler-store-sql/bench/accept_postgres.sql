-- Baseline of an accepting commit: the same rows in one statement, without checks and locks.
WITH fresh AS (
    SELECT gen_random_uuid() AS id,
           convert_to('broker', 'UTF8') || '\x00'::bytea || convert_to('instance', 'UTF8') || '\x00'::bytea
               || convert_to(gen_random_uuid()::text, 'UTF8') AS key
), doc AS (
    INSERT INTO sutler_doc (key, version, scopes, vals, body)
    SELECT key, id, ARRAY['\x73'::bytea, '\x70'::bytea, '\x63'::bytea],
           ARRAY['\x73'::bytea, '\x70'::bytea, uuid_send(id)], decode(repeat('07', 400), 'hex') FROM fresh
), term AS (
    INSERT INTO sutler_term (scope, value, key)
    SELECT s, v, key FROM fresh, unnest(ARRAY['\x73'::bytea, '\x70'::bytea, '\x63'::bytea],
        ARRAY['\x73'::bytea, '\x70'::bytea, uuid_send(id)]) AS t (s, v)
), op AS (
    INSERT INTO sutler_op (id, worker, due, fence, accepted, finished, attempt, takeovers, state, cancel,
        pinned, verb, queue, lane, detail, request, progress)
    SELECT id, id, 1, 1, 1, NULL, 1, 0, 2, false, true, '\x70', '\x62', key, decode(repeat('07', 100), 'hex'),
        decode(repeat('07', 400), 'hex'), '' FROM fresh
)
INSERT INTO sutler_feed (seq, at, id, ended, subjects)
SELECT nextval('sutler_feed_seq'), 1, id, 0, key || key FROM fresh;
