//! Creates and upgrades the tables.
//!
//! A layout is never changed once released: a new one is appended to [`LAYOUTS`] and upgrades the tables
//! from the one before. Functions have the number of their version in their name, and a new layout
//! leaves the old ones: replicas of the version before continue while they are replaced one by one. Only a
//! correction that they need as well replaces a function.

use super::PostgresDialect;
use crate::dialect::Dialect as _;
use crate::settings::SqlOpenError;
use sqlx::Row;
use sqlx::postgres::PgConnection;

/// Each upgrades the tables from the layout before it to its own number, counted from 1.
pub(super) const LAYOUTS: [&[&str]; 3] = [
    &[
        include_str!("layout_1/tables.sql"),
        include_str!("layout_1/feed.sql"),
        include_str!("layout_1/work.sql"),
    ],
    // Its commit was replaced by that of layout 3.
    &[include_str!("layout_2/feed_horizon.sql")],
    // Replaces the commits of layouts 1 and 2: adds lanes to the feed, resets takeovers of an operation that waits
    // again, adds the next state 8 (put back), and keeps takeovers unless progress is written.
    &[
        include_str!("layout_3/commit.sql"),
        include_str!("layout_3/fast_commit.sql"),
    ],
];

/// The oldest server that has everything the layouts use.
const SERVER_MIN: i32 = 120_000;

/// One migration at a time, however many replicas start: the lock ends with the transaction.
const BEGIN: &str = "BEGIN; SELECT pg_advisory_xact_lock(1398101068, 1)";
const MAKE_LAYOUT: &str = "CREATE TABLE IF NOT EXISTS sutler_layout (
    number bigint PRIMARY KEY, made timestamptz NOT NULL DEFAULT now())";
const FIND_LAYOUT: &str = "SELECT coalesce(max(number), 0) FROM sutler_layout";
const SET_LAYOUT: &str = "INSERT INTO sutler_layout (number) VALUES ($1)";
const VERSION: &str = "SELECT current_setting('server_version_num')::integer,
    current_setting('server_version'), current_setting('fsync') = 'off',
    to_regclass('sutler_layout') IS NOT NULL";

/// Creates or upgrades the tables; writes nothing if they are up to date. Returns the layout found.
pub(super) async fn upgrade(db: &mut PgConnection, server: &str) -> Result<i64, SqlOpenError> {
    let failed = |cause| SqlOpenError::Layout {
        server: server.to_owned(),
        said: said(cause),
    };
    let found = match examine(db, server).await? {
        true => layout(db).await.map_err(failed)?,
        false => 0,
    };
    if found < LAYOUTS.len() as i64 {
        add_missing(db).await.map_err(failed)?;
    }
    Ok(found)
}

/// Whether a layout exists; refuses a server that is too old.
async fn examine(db: &mut PgConnection, server: &str) -> Result<bool, SqlOpenError> {
    let read = async {
        let row = sqlx::query(VERSION).fetch_one(&mut *db).await?;
        let number: i32 = row.try_get(0)?;
        let version: String = row.try_get(1)?;
        let careless: bool = row.try_get(2)?;
        let there: bool = row.try_get(3)?;
        Ok((number, version, careless, there))
    };
    let (number, version, careless, there) =
        read.await
            .map_err(|cause: sqlx::Error| SqlOpenError::Unreachable {
                server: server.to_owned(),
                said: said(cause),
            })?;
    if number < SERVER_MIN {
        return Err(SqlOpenError::Unfit {
            server: server.to_owned(),
            found: format!("PostgreSQL {version}"),
            needed: "PostgreSQL 12 or later",
        });
    }
    if careless {
        tracing::warn!(
            server,
            "the server runs with fsync=off: a power cut may lose what was acknowledged; turn it on"
        );
    }
    Ok(there)
}

async fn layout(db: &mut PgConnection) -> Result<i64, sqlx::Error> {
    let row = sqlx::query(FIND_LAYOUT).fetch_one(db).await?;
    row.try_get(0)
}

/// Applies missing layouts. Checks again under the lock: another replica may have been first.
async fn add_missing(db: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(BEGIN).execute(&mut *db).await?;
    sqlx::raw_sql(MAKE_LAYOUT).execute(&mut *db).await?;
    let found = layout(db).await?;
    for (number, parts) in (1..).zip(LAYOUTS).filter(|(number, _)| *number > found) {
        for part in parts {
            sqlx::raw_sql(*part).execute(&mut *db).await?;
        }
        sqlx::query(SET_LAYOUT)
            .bind(number)
            .execute(&mut *db)
            .await?;
    }
    sqlx::raw_sql("COMMIT").execute(db).await?;
    Ok(())
}

/// The server's message without its details.
fn said(cause: sqlx::Error) -> String {
    PostgresDialect::driver_error(cause).said()
}
