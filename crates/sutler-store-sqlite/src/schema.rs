//! Layout of the file, and setup of connections to it.
//!
//! A layout is never changed once released: a new one is appended to [`LAYOUTS`] and upgrades the file
//! from the one before. Not here: queries of the tables (`sql.rs`).

use crate::settings::SqliteOpenError;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use sutler_journal::Layout;

/// `SUTL`: identifies the file as a store.
const APPLICATION_ID: i64 = 0x5355_544C;

/// Each upgrades the file from the layout before it to its own number, counted from 1.
const LAYOUTS: &[&str] = &[FIRST];

/// Small columns come first and blobs last, so that a read of the small ones never reads an
/// overflow page. Indexes are partial where they exclude most rows.
const FIRST: &str = "
-- Strings that repeat: the scopes of terms, the queues, the verbs.
CREATE TABLE word (
    no   INTEGER PRIMARY KEY,
    text BLOB NOT NULL UNIQUE
) STRICT;

-- Documents. The number is given in order of appearance and is never given again, so what is
-- indexed by it grows at its end. It is also the number of the document's lane.
CREATE TABLE doc (
    no      INTEGER PRIMARY KEY,
    version BLOB NOT NULL,
    key     BLOB NOT NULL,
    terms   BLOB NOT NULL,
    body    BLOB NOT NULL
) STRICT;

-- Filed documents by key. Those behind `tally.filed` may still be missing here and in `term`: the
-- store then finds them through its memory.
CREATE TABLE doc_key (
    key BLOB PRIMARY KEY,
    no  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Lanes with operations, of documents that are gone or were never there.
CREATE TABLE lane_key (
    key BLOB PRIMARY KEY,
    no  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What documents are listed by. `key` is the document's without realm and kind, which `scope` has.
CREATE TABLE term (
    scope INTEGER NOT NULL,
    value BLOB NOT NULL,
    key   BLOB NOT NULL,
    doc   INTEGER NOT NULL,
    PRIMARY KEY (scope, value, key)
) STRICT, WITHOUT ROWID;

-- state: 0 waiting, 1 ready, 2 running, 3 succeeded, 4 failed, 5 cancelled.
-- boot: which opening of the file claimed it; leases of earlier ones are void.
CREATE TABLE op (
    no        INTEGER PRIMARY KEY,
    id        BLOB NOT NULL,
    lane      INTEGER NOT NULL,
    state     INTEGER NOT NULL,
    boot      INTEGER NOT NULL,
    queue     INTEGER NOT NULL,
    verb      INTEGER NOT NULL,
    due       INTEGER NOT NULL,
    fence     INTEGER NOT NULL,
    attempt   INTEGER NOT NULL,
    takeovers INTEGER NOT NULL,
    cancel    INTEGER NOT NULL,
    pinned    INTEGER NOT NULL,
    accepted  INTEGER NOT NULL,
    finished  INTEGER,
    worker    BLOB,
    lane_key  BLOB NOT NULL,
    detail    BLOB NOT NULL,
    request   BLOB NOT NULL,
    progress  BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX op_by_id ON op (id);
CREATE INDEX op_by_lane ON op (lane, id);
CREATE INDEX op_unfinished ON op (queue, state, boot, due) WHERE state < 3;
CREATE INDEX op_sweepable ON op (state, finished) WHERE state > 2 AND pinned = 0;

-- One row a commit: the feed, and the memory of commit ids.
CREATE TABLE feed (
    seq      INTEGER PRIMARY KEY,
    at       INTEGER NOT NULL,
    id       BLOB NOT NULL,
    subjects BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX feed_by_id ON feed (id);

-- `total` counts the bytes of the log up to and with this chunk.
CREATE TABLE log (
    op     INTEGER NOT NULL,
    number INTEGER NOT NULL,
    total  INTEGER NOT NULL,
    text   BLOB NOT NULL,
    PRIMARY KEY (op, number)
) STRICT, WITHOUT ROWID;

-- One row. accepted = unfinished + terminal + cleaned. trimmed: the feed is gone up to here. filed: all
-- documents up to here are indexed. last: the largest number of a lane without a document, lanes:
-- how many of these there are.
CREATE TABLE tally (
    no       INTEGER PRIMARY KEY CHECK (no = 1),
    boot     INTEGER NOT NULL,
    accepted INTEGER NOT NULL,
    terminal INTEGER NOT NULL,
    cleaned  INTEGER NOT NULL,
    trimmed  INTEGER NOT NULL,
    filed    INTEGER NOT NULL,
    last     INTEGER NOT NULL,
    lanes    INTEGER NOT NULL
) STRICT;
INSERT INTO tally VALUES (1, 0, 0, 0, 0, 0, 0, 0, 0);
";

/// Opens the file for the writer: creates it if it is new, upgrades it if it is old. Returns the layout
/// found.
pub(crate) fn open_writer(
    path: &Path,
    cache_kib: u32,
) -> Result<(Connection, Layout), SqliteOpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut db = Connection::open_with_flags(path, flags)
        .map_err(|cause| SqliteOpenError::failed(path, "opening", cause))?;
    claim_file(&db, path)?;
    set_up(&db, cache_kib).map_err(|cause| SqliteOpenError::failed(path, "its settings", cause))?;
    let layout = migrate(&mut db, path)?;
    Ok((db, layout))
}

/// Opens the file for reading.
pub(crate) fn open_reader(path: &Path, cache_kib: u32) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    db.set_prepared_statement_cache_capacity(32);
    db.execute_batch(&format!(
        "PRAGMA busy_timeout = 5000; PRAGMA query_only = 1; PRAGMA cache_size = -{cache_kib};"
    ))?;
    Ok(db)
}

/// Whether a file is a store, or an empty file that can become one.
pub(crate) fn is_store(path: &Path) -> bool {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags);
    db.is_ok_and(|db| claim_file(&db, path).is_ok())
}

/// Refuses a file with other contents, before a byte of it is changed.
fn claim_file(db: &Connection, path: &Path) -> Result<(), SqliteOpenError> {
    let number = |pragma: &str| db.query_row(pragma, [], |row| row.get::<_, i64>(0));
    let foreign = || SqliteOpenError::Foreign {
        path: path.to_owned(),
    };
    let application = match number("PRAGMA application_id") {
        Ok(application) => application,
        Err(cause) if cause.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) => {
            return Err(foreign());
        }
        Err(cause) => return Err(SqliteOpenError::failed(path, "reading it", cause)),
    };
    if application == APPLICATION_ID {
        return Ok(());
    }
    let tables = number("SELECT count(*) FROM sqlite_schema")
        .map_err(|cause| SqliteOpenError::failed(path, "reading it", cause))?;
    match (application, tables) {
        (0, 0) => Ok(()),
        _ => Err(foreign()),
    }
}

/// `synchronous = FULL`: COMMIT returns after the log is on the disk. A separate thread makes
/// checkpoints (`checkpoint.rs`), so that no commit waits for one.
fn set_up(db: &Connection, cache_kib: u32) -> rusqlite::Result<()> {
    db.execute_batch("PRAGMA busy_timeout = 5000; PRAGMA page_size = 4096;")?;
    db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    db.execute_batch(
        "PRAGMA synchronous = FULL;
         PRAGMA foreign_keys = 0;
         PRAGMA journal_size_limit = 67108864;",
    )?;
    keep_pages(db, cache_kib)
}

/// Sets the page cache of a connection.
pub(crate) fn keep_pages(db: &Connection, cache_kib: u32) -> rusqlite::Result<()> {
    db.execute_batch(&format!("PRAGMA cache_size = -{cache_kib};"))
}

fn migrate(db: &mut Connection, path: &Path) -> Result<Layout, SqliteOpenError> {
    let failed = |cause| SqliteOpenError::failed(path, "bringing its layout up to date", cause);
    let found: i64 = db
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .map_err(failed)?;
    let known = LAYOUTS.len() as i64;
    if found > known {
        return Err(SqliteOpenError::Newer {
            path: path.to_owned(),
            found,
            known,
        });
    }
    for (number, layout) in (1..).zip(LAYOUTS).filter(|(number, _)| *number > found) {
        let change = db.transaction().map_err(failed)?;
        change.execute_batch(layout).map_err(failed)?;
        change
            .execute_batch(&format!(
                "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {number};"
            ))
            .map_err(failed)?;
        change.commit().map_err(failed)?;
    }
    Ok(Layout {
        found: u64::try_from(found).unwrap_or_default(),
        now: LAYOUTS.len() as u64,
    })
}
