-- Layout 1: the feed, and the position up to which it can be read.
--
-- A commit that is about to take its number first takes a shared advisory lock that names a number
-- below it, and holds it until it has ended. A reader reads, in this order, the last number given and
-- the locks that are held. Every number up to the smaller of the two belongs to a commit that has
-- ended, and PostgreSQL shows the changes of a transaction before it releases its locks. So nothing
-- appears before a position that was read, and no commit ever waits for the number of another.
--
-- The upper half of the lock is the sequence, with its highest bit clear and the next one set, which no
-- other lock has; its lower half is the lower half of the number. The horizon is corrected by layout 2.
CREATE FUNCTION sutler_place_v1(p_sequence regclass, p_number bigint)
    RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT (((p_sequence::oid::bigint & 1073741823) | 1073741824) << 32)
        | (coalesce(p_number, 0) & 4294967295) $$;

CREATE FUNCTION sutler_horizon_v1() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    sequence CONSTANT regclass := 'sutler_feed_seq'::regclass;
    given    bigint := coalesce(pg_sequence_last_value(sequence), 0);
    upper    CONSTANT bigint := sutler_place_v1(sequence, 0) >> 32;
    behind   bigint;
BEGIN
    SELECT max((given - l.objid::bigint) & 4294967295) INTO behind
        FROM pg_locks l
        WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
          AND l.classid::bigint = upper
          AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database());
    RETURN given - coalesce(behind, 0);
END
$$;

-- Commits after a position; if there are none, one row with the number up to which the feed is trimmed.
CREATE FUNCTION sutler_changes_v1(p_after bigint, p_limit bigint)
    RETURNS TABLE (trimmed bigint, seq bigint, id uuid, subjects bytea)
    LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    horizon bigint := sutler_horizon_v1();
BEGIN
    RETURN QUERY
        SELECT t.trimmed, f.seq, f.id, f.subjects
        FROM sutler_tally t LEFT JOIN LATERAL (
            SELECT g.seq, g.id, g.subjects FROM sutler_feed g
            WHERE g.seq > greatest(p_after, t.trimmed) AND g.seq <= horizon
            ORDER BY g.seq LIMIT p_limit) f ON true
        ORDER BY f.seq;
END
$$;

-- Adds ended operations of commits up to a number to the totals, so that they are not counted again.
CREATE FUNCTION sutler_fold_v1(p_to bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    from_seq bigint;
BEGIN
    SELECT t.folded INTO from_seq FROM sutler_tally t FOR UPDATE;
    IF p_to > from_seq THEN
        UPDATE sutler_tally t SET folded = p_to, ended = t.ended + (
            SELECT coalesce(sum(f.ended), 0) FROM sutler_feed f
            WHERE f.seq > from_seq AND f.seq <= p_to);
    END IF;
END
$$;

-- Trims commits from before a moment, and deletes leases that expired before it and cover no operation.
CREATE FUNCTION sutler_trim_v1(p_before bigint, p_limit bigint)
    RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    horizon bigint := sutler_horizon_v1();
    last    bigint;
    count   bigint := 0;
BEGIN
    DELETE FROM sutler_lease l WHERE l.expires < p_before
        AND NOT EXISTS (SELECT 1 FROM sutler_op o WHERE o.state = 2 AND o.worker = l.worker);
    PERFORM 1 FROM sutler_tally FOR UPDATE;
    SELECT max(old.seq) INTO last FROM (
        SELECT f.seq, bool_and(f.at < p_before AND f.seq <= horizon) OVER (ORDER BY f.seq) AS goes
        FROM (SELECT g.seq, g.at FROM sutler_feed g ORDER BY g.seq LIMIT p_limit) f) old
        WHERE old.goes;
    IF last IS NOT NULL THEN
        PERFORM sutler_fold_v1(last);
        DELETE FROM sutler_feed f WHERE f.seq <= last;
        GET DIAGNOSTICS count = ROW_COUNT;
        UPDATE sutler_tally SET trimmed = last;
    END IF;
    RETURN count;
END
$$;
