-- Layout 1: the tables, for MySQL 8 and MariaDB 10.6. Never changed once released; a later layout begins
-- where this one ends. Definitions here do not roll back, so each may be executed twice.
-- Used by work.sql in this directory, by layout_3/commit.sql, and by sql.rs above it.

-- Documents. `terms`: the entries of the document in `sutler_term`, encoded as in layout_3/commit.sql.
CREATE TABLE IF NOT EXISTS sutler_doc (
    `key`   VARBINARY(1700) NOT NULL PRIMARY KEY,
    version BINARY(16)      NOT NULL,
    terms   LONGBLOB        NOT NULL,
    body    LONGBLOB        NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- Index of documents by term; `scope` is realm, kind and the name of the term.
CREATE TABLE IF NOT EXISTS sutler_term (
    scope VARBINARY(140)  NOT NULL,
    value VARBINARY(512)  NOT NULL,
    `key` VARBINARY(1700) NOT NULL,
    PRIMARY KEY (scope, value, `key`)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- state: 0 waiting, 1 ready, 2 running, 3 succeeded, 4 failed, 5 cancelled. claim: the call of
-- sutler_claim_v1 that claimed it last. scope: the realm and the kind of the lane.
CREATE TABLE IF NOT EXISTS sutler_op (
    id        BINARY(16)      NOT NULL PRIMARY KEY,
    worker    BINARY(16),
    claim     BINARY(16),
    due       BIGINT          NOT NULL,
    fence     BIGINT          NOT NULL,
    accepted  BIGINT          NOT NULL,
    finished  BIGINT,
    attempt   BIGINT          NOT NULL,
    takeovers BIGINT          NOT NULL,
    state     BIGINT          NOT NULL,
    cancel    BIGINT          NOT NULL,
    pinned    BIGINT          NOT NULL,
    verb      VARBINARY(255)  NOT NULL,
    queue     VARBINARY(128)  NOT NULL,
    lane      VARBINARY(1700) NOT NULL,
    detail    LONGBLOB        NOT NULL,
    request   LONGBLOB        NOT NULL,
    progress  LONGBLOB        NOT NULL,
    scope     VARBINARY(100)  GENERATED ALWAYS AS (SUBSTRING_INDEX(lane, 0x00, 2)) STORED,
    KEY sutler_op_lane (lane, id),
    KEY sutler_op_due (state, queue, due, id),
    KEY sutler_op_worker (worker, state),
    KEY sutler_op_sweepable (pinned, scope, state, finished)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- Workers and the expiry of their leases. An expired one is kept, so that its worker gets Lost.
CREATE TABLE IF NOT EXISTS sutler_lease (
    worker  BINARY(16) NOT NULL PRIMARY KEY,
    expires BIGINT     NOT NULL,
    KEY sutler_lease_expires (expires)
) ENGINE = InnoDB;

-- One row per commit: the feed with its commit ids.
CREATE TABLE IF NOT EXISTS sutler_feed (
    seq      BIGINT     NOT NULL PRIMARY KEY,
    at       BIGINT     NOT NULL,
    id       BINARY(16) NOT NULL UNIQUE,
    subjects LONGBLOB   NOT NULL
) ENGINE = InnoDB;

-- `total` counts the bytes of the log up to and including this chunk.
CREATE TABLE IF NOT EXISTS sutler_log (
    op     BINARY(16) NOT NULL,
    number BIGINT     NOT NULL,
    total  BIGINT     NOT NULL,
    text   LONGBLOB   NOT NULL,
    PRIMARY KEY (op, number)
) ENGINE = InnoDB;

-- One row. seq: the last number in the feed; accepted and ended count operations. Commits lock this row
-- last, and in its order.
CREATE TABLE IF NOT EXISTS sutler_tally (
    no       INTEGER NOT NULL PRIMARY KEY,
    seq      BIGINT  NOT NULL,
    accepted BIGINT  NOT NULL,
    ended    BIGINT  NOT NULL
) ENGINE = InnoDB;
INSERT IGNORE INTO sutler_tally VALUES (1, 0, 0, 0);

-- One row, separate from the other so that no commit waits for a sweep. trimmed: the feed is trimmed up
-- to this number. cleaned: number of swept operations.
CREATE TABLE IF NOT EXISTS sutler_swept (
    no       INTEGER NOT NULL PRIMARY KEY,
    trimmed  BIGINT  NOT NULL,
    cleaned  BIGINT  NOT NULL
) ENGINE = InnoDB;
INSERT IGNORE INTO sutler_swept VALUES (1, 0, 0);

-- Rows that are locked in place of documents and workers, existing or not: 16,384 for names by their
-- hash, and the last for claims. Never written.
CREATE TABLE IF NOT EXISTS sutler_lock (
    n INTEGER NOT NULL PRIMARY KEY
) ENGINE = InnoDB;
INSERT IGNORE INTO sutler_lock
    WITH RECURSIVE digit (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM digit WHERE n < 15)
    SELECT a.n + 16 * b.n + 256 * c.n + 4096 * d.n FROM digit a, digit b, digit c, digit d WHERE d.n < 4;
INSERT IGNORE INTO sutler_lock VALUES (16384);

-- The store's clock: microseconds since 1970. Sessions are set to UTC.
CREATE OR REPLACE VIEW sutler_clock AS
    SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED) AS micros;
