//! MySQL and MariaDB as a [`Dialect`]. A commit is one call of a procedure that the migrations created
//! (`layout_3/commit.sql`): nothing else in these servers can read, decide and write in one round trip.
//!
//! Commits take their number in the feed one after the other, at their end; this is the price of an order
//! that can be read without knowing which commits are still open. Read `connect.rs` for sessions,
//! `procedure_args.rs` for the parameters of a commit.

mod connect;
mod procedure_args;
mod rows;
mod schema;
mod sql;

use crate::codec::{self, Lock};
use crate::commit_retry::CommitAttempt;
use crate::commit_rows::CommitRows;
use crate::dialect::{Dialect, SessionConnection, Statements, Value};
use crate::error::{SqlError, odd};
use crate::pool::PooledConnection;
use crate::rows::{Cells as _, blob, number, one};
use crate::settings::{SqlOpenError, SqlSettings};
use crate::store::{SqlShared, SqlStore};
use connect::Session;
use procedure_args::{ProcedureArgs, bucket, pack, unpack_terms};
use secrecy::SecretString;
use sqlx::error::{BoxDynError, DatabaseError};
use sqlx::mysql::{
    MySqlArguments, MySqlConnectOptions, MySqlConnection, MySqlDatabaseError, MySqlRow,
};
use sqlx::{Arguments, AssertSqlSafe, ConnectOptions as _, Executor as _};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use sutler_journal::{Queue, Stats, Term, WorkerId};
use tokio::task::JoinHandle;
use uuid::Uuid;

/// The journal in a MySQL or MariaDB database.
pub type MySqlStore = SqlStore<MySqlDialect>;

/// Errors after which the session's progress is unknown: it was stopped from outside, the server ends,
/// or the statement must be sent in another way (a prepared statement that is out of date).
const ENDED_FROM_OUTSIDE: [u16; 9] = [1053, 1077, 1078, 1079, 1317, 1615, 1927, 1969, 3024];
const DUPLICATE_KEY: &str = "1062";
const DEADLOCK: &str = "1213";

/// A MySQL or MariaDB server.
pub struct MySqlDialect {
    options: MySqlConnectOptions,
    settings: SqlSettings,
    /// Whether it is MariaDB; set by [`schema::upgrade`].
    mariadb: AtomicBool,
}

impl Dialect for MySqlDialect {
    type Driver = MySqlConnection;
    type Row = MySqlRow;
    type Arguments = MySqlArguments;
    type Session = Session;

    const STORE_NAME: &'static str = "MySqlStore";
    const SQL: Statements = sql::STATEMENTS;
    const FOLD: Option<&'static str> = None;
    const LIST_BY_TERM_ORDER: &'static [usize] = &[0, 1, 2, 3, 4, 0, 1, 3, 4, 4];
    const SWEPT_STATES: usize = 1;
    const SWEEP_REPEATS: bool = false;
    const DENSE_FEED: bool = true;
    const NAME_END: char = '(';
    const LAYOUTS: usize = schema::LAYOUTS.len();

    fn at(url: &SecretString, settings: &SqlSettings) -> Result<Self, SqlOpenError> {
        Ok(Self {
            options: connect::options(url)?,
            settings: settings.clone(),
            mariadb: AtomicBool::new(false),
        })
    }

    fn name(&self) -> String {
        format!(
            "MySQL at {}:{}/{}",
            self.options.get_host(),
            self.options.get_port(),
            self.options.get_database().unwrap_or_default()
        )
    }

    async fn connect_for_migration(&self) -> Result<MySqlConnection, sqlx::Error> {
        self.options.connect().await
    }

    async fn upgrade(&self, db: &mut MySqlConnection) -> Result<i64, SqlOpenError> {
        schema::upgrade(db, self).await
    }

    async fn connect_session(&self) -> Result<SessionConnection<Self>, SqlError> {
        connect::connect(self).await
    }

    /// These servers send no notifications; the timer of the store wakes other replicas.
    fn start_tasks(_: &Arc<SqlShared<Self>>) -> Vec<JoinHandle<()>> {
        Vec::new()
    }

    fn add(to: &mut MySqlArguments, value: Value<'_>) -> Result<(), BoxDynError> {
        match value {
            Value::Bytes(bytes) => to.add(bytes),
            Value::Number(number) => to.add(number),
            Value::Index(index) => to.add(i64::from(index)),
            Value::Id(id) => to.add(&id.as_bytes()[..]),
            Value::States(states) => states.iter().try_for_each(|it| to.add(i64::from(*it))),
        }
    }

    fn add_claim(
        to: &mut MySqlArguments,
        worker: WorkerId,
        claim: Uuid,
        queues: &[(Queue, usize)],
    ) -> Result<(), BoxDynError> {
        let mut packed = ProcedureArgs::default();
        for (queue, limit) in queues {
            packed.number(codec::limit(*limit));
            packed.bytes(Some(queue.as_str().as_bytes()));
        }
        to.add(&worker.0.as_bytes()[..])?;
        to.add(Self::worker_lock(worker))?;
        to.add(&claim.as_bytes()[..])?;
        to.add(&packed.head[..])?;
        to.add(&packed.data[..])
    }

    fn worker_lock(worker: WorkerId) -> i64 {
        bucket(codec::lock_number(Lock::Worker, worker.0.as_bytes()))
    }

    async fn run(
        driver: &mut MySqlConnection,
        statement: &'static str,
        arguments: MySqlArguments,
    ) -> Result<Vec<MySqlRow>, SqlError> {
        let query = sqlx::query_with(statement, arguments);
        query.fetch_all(driver).await.map_err(Self::driver_error)
    }

    fn server_error(error: &dyn DatabaseError) -> Option<SqlError> {
        let error = error.try_downcast_ref::<MySqlDatabaseError>()?;
        let (code, said) = (error.number(), error.message().to_owned());
        Some(match ENDED_FROM_OUTSIDE.contains(&code) {
            true => SqlError::Lost(format!("{code}: {said}")),
            false => SqlError::Refused {
                code: code.to_string(),
                said,
            },
        })
    }

    fn is_deadlock(code: &str) -> bool {
        code == DEADLOCK
    }

    fn totals(row: &MySqlRow, stats: &mut Stats) -> Result<bool, SqlError> {
        stats.accepted = number(row, 0)?;
        stats.terminal = number(row, 1)?;
        stats.cleaned = number(row, 2)?;
        Ok(false)
    }

    fn terms(row: &MySqlRow) -> Result<Vec<Term>, SqlError> {
        let terms = unpack_terms(blob(row, 3)?);
        let terms = terms.ok_or_else(|| odd("the terms of a document are damaged"))?;
        let terms = terms.into_iter();
        terms
            .map(|(scope, value)| codec::term(scope, value))
            .collect()
    }

    async fn send_commit(
        shared: &SqlShared<Self>,
        pooled: &mut PooledConnection<'_, Self>,
        rows: &CommitRows<'_>,
    ) -> Result<i64, SqlError> {
        let packed = pack(rows);
        let values = [
            Value::Id(rows.id),
            Value::Bytes(&packed.head),
            Value::Bytes(&packed.data),
        ];
        let fill = |to: &mut MySqlArguments| Self::add_all(to, &values);
        one(&shared.send(pooled, sql::COMMIT, &fill).await?)
    }

    fn refused_commit(error: SqlError) -> CommitAttempt<Session> {
        match &error {
            // Two transactions created or locked the same rows: one of them was rolled back.
            SqlError::Refused { code, .. } if [DUPLICATE_KEY, DEADLOCK].contains(&&code[..]) => {
                CommitAttempt::Again(error)
            }
            _ => CommitAttempt::Settled(Err(error.into_commit_error())),
        }
    }

    async fn end_session(shared: &SqlShared<Self>, session: &Session) -> Result<bool, SqlError> {
        let fill = |to: &mut MySqlArguments| to.add(&session.0[..]);
        let found = shared.ask_with(sql::FIND_SESSION, &fill).await?;
        let number = match found.first() {
            Some(row) => row.integer(0)?,
            None => None,
        };
        let Some(number) = number else {
            return Ok(true);
        };
        let mut pooled = shared.pool.acquire().await?;
        let kill = AssertSqlSafe(format!("KILL CONNECTION {number}"));
        let sent = pooled.connection().driver.execute(kill);
        let sent = async { sent.await.map_err(Self::driver_error) };
        match shared.answer_of("KILL CONNECTION", sent).await {
            Ok(_) => pooled.keep(),
            Err(SqlError::Lost(said)) => return Err(SqlError::Lost(said)),
            // The session has ended meanwhile; the next search shows it.
            Err(SqlError::Refused { .. } | SqlError::Odd(_) | SqlError::Unsent(_)) => {}
        }
        Ok(false)
    }
}
