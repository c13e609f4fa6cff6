-- Layout 1: the tables. Never changed once released; a later layout begins where this one ends.
-- Used by work.sql and feed.sql in this directory, by layout_3/commit.sql, and by sql.rs above it.
-- Bodies are sealed, so compressing them is useless: their storage is EXTERNAL.

-- Documents. `scopes` and `vals` are the terms of the document in `sutler_term`.
CREATE TABLE sutler_doc (
    key     bytea   PRIMARY KEY,
    version uuid    NOT NULL,
    scopes  bytea[] NOT NULL,
    vals    bytea[] NOT NULL,
    body    bytea   NOT NULL
) WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE sutler_doc ALTER COLUMN body SET STORAGE EXTERNAL;

-- Index of documents by term; `scope` is realm, kind and the name of the term.
CREATE TABLE sutler_term (
    scope bytea NOT NULL,
    value bytea NOT NULL,
    key   bytea NOT NULL,
    PRIMARY KEY (scope, value, key)
) WITH (autovacuum_vacuum_scale_factor = 0.05);

-- The realm and the kind of a lane or of a prefix of one: everything before its second zero byte.
CREATE FUNCTION sutler_scope(p_lane bytea) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN first = 0 OR second = 0 THEN p_lane
                ELSE substring(p_lane FROM 1 FOR first + second - 1) END
    FROM (SELECT position('\x00'::bytea IN p_lane) AS first) f,
         LATERAL (SELECT position('\x00'::bytea IN substring(p_lane FROM first + 1)) AS second) s
$$;

-- state: 0 waiting, 1 ready, 2 running, 3 succeeded, 4 failed, 5 cancelled. An unfinished operation
-- is in exactly one of the partial indexes: a change of state moves it from one to the next.
CREATE TABLE sutler_op (
    id        uuid     PRIMARY KEY,
    worker    uuid,
    due       bigint   NOT NULL,
    fence     bigint   NOT NULL,
    accepted  bigint   NOT NULL,
    finished  bigint,
    attempt   integer  NOT NULL,
    takeovers integer  NOT NULL,
    state     smallint NOT NULL,
    cancel    boolean  NOT NULL,
    pinned    boolean  NOT NULL,
    verb      bytea    NOT NULL,
    queue     bytea    NOT NULL,
    lane      bytea    NOT NULL,
    detail    bytea    NOT NULL,
    request   bytea    NOT NULL,
    progress  bytea    NOT NULL
) WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE sutler_op ALTER COLUMN detail SET STORAGE EXTERNAL;
ALTER TABLE sutler_op ALTER COLUMN request SET STORAGE EXTERNAL;
ALTER TABLE sutler_op ALTER COLUMN progress SET STORAGE EXTERNAL;
CREATE INDEX sutler_op_lane ON sutler_op (lane, id);
CREATE INDEX sutler_op_waiting ON sutler_op (id) WHERE state = 0;
CREATE INDEX sutler_op_ready ON sutler_op (queue, due, id) WHERE state = 1;
CREATE INDEX sutler_op_running ON sutler_op (worker, id) WHERE state = 2;
CREATE INDEX sutler_op_sweepable ON sutler_op (sutler_scope(lane), state, finished)
    WHERE state > 2 AND NOT pinned;

-- Workers and the expiry of their leases. An expired one is kept, so that its worker gets Lost.
CREATE TABLE sutler_lease (
    worker  uuid   PRIMARY KEY,
    expires bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- One row per commit: the feed with its commit ids. `ended`: number of operations it ended.
CREATE SEQUENCE sutler_feed_seq;
SELECT nextval('sutler_feed_seq');
CREATE TABLE sutler_feed (
    seq      bigint  PRIMARY KEY,
    at       bigint  NOT NULL,
    id       uuid    NOT NULL CONSTRAINT sutler_feed_id UNIQUE,
    ended    integer NOT NULL,
    subjects bytea   NOT NULL
);

-- `total` counts the bytes of the log up to and including this chunk.
CREATE TABLE sutler_log (
    op     uuid    NOT NULL,
    number integer NOT NULL,
    total  bigint  NOT NULL,
    text   bytea   NOT NULL,
    PRIMARY KEY (op, number)
);
ALTER TABLE sutler_log ALTER COLUMN text SET STORAGE EXTERNAL;

-- One row. ended: operations that ended in commits up to `folded`; those of later commits are still
-- counted in the feed, so that commits share no row. cleaned: swept operations. trimmed: the feed is
-- trimmed up to this number.
CREATE TABLE sutler_tally (
    no      integer PRIMARY KEY CHECK (no = 1),
    folded  bigint  NOT NULL,
    ended   bigint  NOT NULL,
    cleaned bigint  NOT NULL,
    trimmed bigint  NOT NULL
);
INSERT INTO sutler_tally VALUES (1, 0, 0, 0, 0);

-- The store's clock: microseconds since 1970 in UTC.
CREATE FUNCTION sutler_now() RETURNS bigint LANGUAGE sql VOLATILE
    AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;
