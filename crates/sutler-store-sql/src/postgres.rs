//! PostgreSQL as a [`Dialect`]. A commit is one call of a function that the migrations created
//! (`layout_3/commit.sql`).
//!
//! Read `connect.rs` for sessions, `commit.rs` for commits, `notify.rs` for wakeups of other replicas.

mod commit;
mod connect;
mod fast_commit;
mod ids;
mod notify;
mod rows;
mod schema;
mod sql;

#[cfg(feature = "testing")]
pub mod faults;

use crate::codec::{self, Lock};
use crate::commit_retry::CommitAttempt;
use crate::commit_rows::CommitRows;
use crate::dialect::{Dialect, SessionConnection, Statements, Value};
use crate::error::{SqlError, odd};
use crate::pool::PooledConnection;
use crate::rows::number;
use crate::settings::{SqlOpenError, SqlSettings};
use crate::store::{SqlShared, SqlStore};
use connect::Session;
use ids::Id;
use secrecy::SecretString;
use sqlx::error::{BoxDynError, DatabaseError};
use sqlx::postgres::{
    PgArguments, PgConnectOptions, PgConnection, PgDatabaseError, PgRow, PgSeverity,
};
use sqlx::{Arguments, Row as _};
use std::sync::Arc;
use sutler_journal::{Queue, Stats, Term, WorkerId};
use tokio::task::JoinHandle;
use uuid::Uuid;

/// The journal in a PostgreSQL database.
pub type PostgresStore = SqlStore<PostgresDialect>;

/// Number of unfolded commits above which the counts are folded.
const FOLD_AFTER: i64 = 5000;

/// A PostgreSQL server.
pub struct PostgresDialect {
    options: PgConnectOptions,
}

impl Dialect for PostgresDialect {
    type Driver = PgConnection;
    type Row = PgRow;
    type Arguments = PgArguments;
    type Session = Session;

    const STORE_NAME: &'static str = "PostgresStore";
    const SQL: Statements = sql::STATEMENTS;
    const FOLD: Option<&'static str> = Some(sql::FOLD);
    const LIST_BY_TERM_ORDER: &'static [usize] = &[0, 1, 2, 3, 4];
    const SWEPT_STATES: usize = usize::MAX;
    const SWEEP_REPEATS: bool = true;
    const DENSE_FEED: bool = false;
    const NAME_END: char = '$';
    const LAYOUTS: usize = schema::LAYOUTS.len();

    fn at(url: &SecretString, settings: &SqlSettings) -> Result<Self, SqlOpenError> {
        connect::options(url, settings).map(|options| Self { options })
    }

    fn name(&self) -> String {
        format!(
            "PostgreSQL at {}:{}/{}",
            self.options.get_host(),
            self.options.get_port(),
            self.options.get_database().unwrap_or_default()
        )
    }

    async fn connect_for_migration(&self) -> Result<PgConnection, sqlx::Error> {
        connect::connect_for_migration(&self.options).await
    }

    async fn upgrade(&self, db: &mut PgConnection) -> Result<i64, SqlOpenError> {
        schema::upgrade(db, &self.name()).await
    }

    async fn connect_session(&self) -> Result<SessionConnection<Self>, SqlError> {
        connect::connect(&self.options).await
    }

    fn start_tasks(shared: &Arc<SqlShared<Self>>) -> Vec<JoinHandle<()>> {
        notify::start(shared)
    }

    fn add(to: &mut PgArguments, value: Value<'_>) -> Result<(), BoxDynError> {
        match value {
            Value::Bytes(bytes) => to.add(bytes),
            Value::Number(number) => to.add(number),
            Value::Index(index) => to.add(i32::try_from(index).unwrap_or(i32::MAX)),
            Value::Id(id) => to.add(Id(id)),
            Value::States(states) => to.add(states),
        }
    }

    fn add_claim(
        to: &mut PgArguments,
        worker: WorkerId,
        _: Uuid,
        queues: &[(Queue, usize)],
    ) -> Result<(), BoxDynError> {
        let names: Vec<&[u8]> = queues.iter().map(|(q, _)| q.as_str().as_bytes()).collect();
        let limits: Vec<i64> = queues.iter().map(|(_, n)| codec::limit(*n)).collect();
        to.add(Id(worker.0))?;
        to.add(Self::worker_lock(worker))?;
        to.add(names)?;
        to.add(limits)
    }

    fn worker_lock(worker: WorkerId) -> i64 {
        codec::lock_number(Lock::Worker, worker.0.as_bytes())
    }

    async fn run(
        driver: &mut PgConnection,
        statement: &'static str,
        arguments: PgArguments,
    ) -> Result<Vec<PgRow>, SqlError> {
        let query = sqlx::query_with(statement, arguments);
        query.fetch_all(driver).await.map_err(Self::driver_error)
    }

    /// An ERROR leaves nothing behind; after a FATAL the session is gone, and its progress is unknown.
    fn server_error(error: &dyn DatabaseError) -> Option<SqlError> {
        let error = error.try_downcast_ref::<PgDatabaseError>()?;
        Some(match error.severity() {
            PgSeverity::Panic | PgSeverity::Fatal => {
                SqlError::Lost(format!("{}: {}", error.code(), error.message()))
            }
            _ => SqlError::Refused {
                code: match error.constraint() {
                    // Our own code for a commit that is already applied.
                    Some("sutler_feed_id") => "SU000".to_owned(),
                    _ => error.code().to_owned(),
                },
                said: error.message().to_owned(),
            },
        })
    }

    /// Functions here take their locks in one order, so no deadlock is expected.
    fn is_deadlock(_: &str) -> bool {
        false
    }

    fn totals(row: &PgRow, stats: &mut Stats) -> Result<bool, SqlError> {
        let ended: u64 = number(row, 0)?;
        stats.cleaned = number(row, 1)?;
        stats.terminal = ended.saturating_sub(stats.cleaned);
        stats.accepted = stats.live + ended;
        Ok(number::<i64>(row, 2)? > FOLD_AFTER)
    }

    fn terms(row: &PgRow) -> Result<Vec<Term>, SqlError> {
        let scopes: Vec<Vec<u8>> = row.try_get(3).map_err(odd)?;
        let values: Vec<Vec<u8>> = row.try_get(4).map_err(odd)?;
        let terms = scopes.iter().zip(&values);
        terms
            .map(|(scope, value)| codec::term(scope, value))
            .collect()
    }

    async fn send_commit(
        shared: &SqlShared<Self>,
        pooled: &mut PooledConnection<'_, Self>,
        rows: &CommitRows<'_>,
    ) -> Result<i64, SqlError> {
        commit::send(shared, pooled, rows).await
    }

    fn refused_commit(error: SqlError) -> CommitAttempt<Session> {
        commit::refused(error)
    }

    async fn end_session(shared: &SqlShared<Self>, session: &Session) -> Result<bool, SqlError> {
        let fill = |to: &mut PgArguments| {
            to.add(session.process)?;
            to.add(session.began)
        };
        let left = shared.ask_with(sql::END_SESSION, &fill).await?;
        Ok(left.is_empty())
    }
}
