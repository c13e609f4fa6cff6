-- Layout 2: the position up to which the feed can be read, corrected. The tables are those of layout 1, and the
-- function replaces its predecessor, so that replicas of the version before are corrected, too.
--
-- A commit that takes its lock after a reader has read the last number given names a number above that
-- one. Its own number is higher still, so it holds nothing back. Only the lower halves of numbers are
-- compared: a lock is above the number if the difference, modulo 2^32, is in the upper half.
CREATE OR REPLACE FUNCTION sutler_horizon_v1() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    sequence CONSTANT regclass := 'sutler_feed_seq'::regclass;
    given    bigint := coalesce(pg_sequence_last_value(sequence), 0);
    upper    CONSTANT bigint := sutler_place_v1(sequence, 0) >> 32;
    behind   bigint;
BEGIN
    SELECT max(d.difference) INTO behind FROM (
        SELECT (given - l.objid::bigint) & 4294967295 AS difference
            FROM pg_locks l
            WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
              AND l.classid::bigint = upper
              AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())) d
        WHERE d.difference < 2147483648;
    RETURN given - coalesce(behind, 0);
END
$$;
