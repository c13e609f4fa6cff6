-- Baseline of a poll: a row by its primary key.
\set n random(0, 9999)
SELECT state, verb, detail FROM sutler_op
WHERE id = ('00000010-0000-0000-0000-' || lpad(to_hex(:n::integer), 12, '0'))::uuid;
