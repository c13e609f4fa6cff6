//! Creates and upgrades the tables.
//!
//! A layout is never changed once released: a new one is appended to [`LAYOUTS`] and upgrades the tables
//! from the one before. Definitions do not roll back here, so every part of a layout may be executed twice,
//! and the layout's number is written last. Procedures have the number of their version in their name,
//! and a new layout leaves the old ones for replicas that have not been replaced yet: a procedure cannot be replaced
//! without a moment in which there is none.

use super::MySqlDialect;
use crate::dialect::Dialect as _;
use crate::settings::SqlOpenError;
use sqlx::mysql::MySqlConnection;
use sqlx::{Executor, Row};
use std::sync::atomic::Ordering;

/// Each upgrades the tables from the layout before it to its own number, counted from 1.
pub(super) const LAYOUTS: [&[&str]; 3] = [
    &[
        include_str!("layout_1/tables.sql"),
        include_str!("layout_1/work.sql"),
    ],
    // Was a second version of the commit: the next state 8 (put back), and takeovers that stay unless progress is
    // written. Databases that had it keep it, for replicas that still use it.
    &[],
    // A third version of the commit: adds lanes to the feed, and resets takeovers of an operation that waits again.
    // Replicas of layouts 1 and 2 go on with theirs.
    &[include_str!("layout_3/commit.sql")],
];

/// Lock by which replicas upgrade one at a time; released with the session.
const LOCK: &str =
    "SELECT CAST(GET_LOCK(CONCAT('sutler.layout.', MD5(DATABASE())), 120) AS SIGNED)";
const MAKE_LAYOUT: &str = "CREATE TABLE IF NOT EXISTS sutler_layout (
    number BIGINT NOT NULL PRIMARY KEY,
    made TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP) ENGINE = InnoDB";
const FIND_LAYOUT: &str = "SELECT CAST(COALESCE(MAX(number), 0) AS SIGNED) FROM sutler_layout";
const SET_LAYOUT: &str = "INSERT IGNORE INTO sutler_layout (number) VALUES (?)";
const VERSION: &str = "SELECT CAST(VERSION() AS CHAR),
    CAST(@@innodb_flush_log_at_trx_commit AS SIGNED)";
/// The oldest servers that can skip locked rows.
const NEEDED: &str = "MySQL 8 or later, or MariaDB 10.6 or later";

/// Creates or upgrades the tables. Returns the layout found.
pub(super) async fn upgrade(
    db: &mut MySqlConnection,
    dialect: &MySqlDialect,
) -> Result<i64, SqlOpenError> {
    examine(db, dialect).await?;
    let failed = |cause| SqlOpenError::Layout {
        server: dialect.name(),
        said: said(cause),
    };
    add_missing(db).await.map_err(failed)
}

/// Refuses a server that is too old.
async fn examine(db: &mut MySqlConnection, dialect: &MySqlDialect) -> Result<(), SqlOpenError> {
    let read = async {
        let row = sqlx::query(VERSION).fetch_one(&mut *db).await?;
        let version: String = row.try_get_unchecked(0)?;
        let flush: i64 = row.try_get_unchecked(1)?;
        Ok((version, flush))
    };
    let (version, flush) = read
        .await
        .map_err(|cause: sqlx::Error| SqlOpenError::Unreachable {
            server: dialect.name(),
            said: said(cause),
        })?;
    if !is_fit(&version) {
        return Err(SqlOpenError::Unfit {
            server: dialect.name(),
            found: version,
            needed: NEEDED,
        });
    }
    dialect
        .mariadb
        .store(version.contains("MariaDB"), Ordering::Relaxed);
    if flush != 1 {
        tracing::warn!(
            server = dialect.name(),
            "innodb_flush_log_at_trx_commit is not 1: a power cut may lose what was acknowledged; set it"
        );
    }
    Ok(())
}

/// Whether a server of this version can be used.
fn is_fit(version: &str) -> bool {
    let mut parts = version
        .split(['.', '-'])
        .map_while(|part| part.parse::<u32>().ok());
    let found = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    match version.contains("MariaDB") {
        true => found >= (10, 6),
        false => found >= (8, 0),
    }
}

/// Applies missing layouts, under the lock; returns the layout found.
async fn add_missing(db: &mut MySqlConnection) -> Result<i64, sqlx::Error> {
    let locked: Option<i64> = db.fetch_one(LOCK).await?.try_get_unchecked(0)?;
    if locked != Some(1) {
        let sentence = "another replica upgrades the tables; start again when it has finished";
        return Err(sqlx::Error::Protocol(sentence.to_owned()));
    }
    db.execute(MAKE_LAYOUT).await?;
    let found: i64 = db.fetch_one(FIND_LAYOUT).await?.try_get_unchecked(0)?;
    for (number, parts) in (1..).zip(LAYOUTS).filter(|(number, _)| *number > found) {
        for part in parts {
            db.execute(sqlx::raw_sql(*part)).await?;
        }
        sqlx::query(SET_LAYOUT)
            .bind(number)
            .execute(&mut *db)
            .await?;
    }
    Ok(found)
}

/// The server's message.
fn said(cause: sqlx::Error) -> String {
    MySqlDialect::driver_error(cause).said()
}

#[cfg(test)]
mod tests {
    use super::is_fit;

    #[test]
    fn servers_that_cannot_pass_over_locked_rows_are_too_old() {
        for (version, fit) in [
            ("8.0.36", true),
            ("8.4.0-log", true),
            ("5.7.44-log", false),
            ("10.11.19-MariaDB-0+deb12u1", true),
            ("10.5.2-MariaDB", false),
            ("11.4.2-MariaDB", true),
            ("what?", false),
        ] {
            assert_eq!(is_fit(version), fit, "{version}");
        }
    }
}
