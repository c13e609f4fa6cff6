//! The differences between the servers: statements, parameters, sessions, and the meaning of errors.
//!
//! Everything else is written once over a [`Dialect`]: `store.rs`, `query.rs`, `read.rs`, `claims.rs`,
//! `logs.rs`, `store_info.rs`, `commit.rs`. Not here: the layout of a commit (`commit_rows.rs`).

use crate::commit_retry::CommitAttempt;
use crate::commit_rows::CommitRows;
use crate::error::{SqlError, odd};
use crate::pool::{Connector, PooledConnection};
use crate::rows::Cells;
use crate::settings::{SqlOpenError, SqlSettings};
use crate::store::SqlShared;
use secrecy::SecretString;
use sqlx::error::{BoxDynError, DatabaseError};
use std::future::Future;
use std::sync::Arc;
use sutler_journal::{Queue, Stats, Term, WorkerId};
use tokio::task::JoinHandle;
use uuid::Uuid;

/// A parameter of a statement.
#[derive(Clone, Copy)]
pub enum Value<'v> {
    Bytes(&'v [u8]),
    Number(i64),
    /// A number that PostgreSQL stores in 32 bits.
    Index(u32),
    Id(Uuid),
    /// Ended states; at most [`Dialect::SWEPT_STATES`].
    States(&'v [i16]),
}

/// Statements that every server has. None is assembled at run time, so each connection prepares it once.
pub struct Statements {
    pub(crate) get: &'static str,
    pub(crate) list_by_key: &'static str,
    /// Parameters: scope, value, key, last value, limit; in [`Dialect::LIST_BY_TERM_ORDER`].
    pub(crate) list_by_term: &'static str,
    pub(crate) scan_documents: &'static str,
    pub(crate) poll: &'static str,
    pub(crate) operation: &'static str,
    pub(crate) operations: &'static str,
    pub(crate) operations_of_lane: &'static str,
    pub(crate) operations_unfinished: &'static str,
    pub(crate) renew: &'static str,
    pub(crate) claim: &'static str,
    pub(crate) release: &'static str,
    pub(crate) sweep: &'static str,
    pub(crate) trim: &'static str,
    pub(crate) changes: &'static str,
    pub(crate) append_log: &'static str,
    pub(crate) read_log: &'static str,
    pub(crate) reseal_log: &'static str,
    pub(crate) now: &'static str,
    pub(crate) info: &'static str,
    pub(crate) feed_length: &'static str,
    pub(crate) stats: &'static str,
}

/// A connection, and the server's session behind it.
pub struct SessionConnection<D: Dialect> {
    pub(crate) driver: D::Driver,
    pub(crate) session: D::Session,
}

/// A family of servers, with the address of one of them.
pub trait Dialect: Sized + Send + Sync + 'static {
    /// The driver's connection.
    type Driver: sqlx::Connection;
    /// A row of a result.
    type Row: Cells + Send + Sync;
    /// The parameters of a statement.
    type Arguments: Default + Send;
    /// Id of a session of the server; never reused.
    type Session: Clone + PartialEq + Send + Sync + 'static;

    /// The store's name in debug output.
    const STORE_NAME: &'static str;
    /// The statements.
    const SQL: Statements;
    /// Statement that updates the counts of [`Statements::stats`].
    const FOLD: Option<&'static str>;
    /// Position of each parameter of [`Statements::list_by_term`].
    const LIST_BY_TERM_ORDER: &'static [usize];
    /// Number of states that one statement sweeps.
    const SWEPT_STATES: usize;
    /// Whether a sweep whose connection broke is sent again.
    const SWEEP_REPEATS: bool;
    /// Whether the numbers of the feed have no gaps.
    const DENSE_FEED: bool;
    /// Character that ends the part of a statement that names it in a log.
    const NAME_END: char;
    /// Number of layouts known.
    const LAYOUTS: usize;

    /// Parses a URL.
    fn at(url: &SecretString, settings: &SqlSettings) -> Result<Self, SqlOpenError>;

    /// Product, host, port and database.
    fn name(&self) -> String;

    /// Connects without the time limits of a session.
    fn connect_for_migration(
        &self,
    ) -> impl Future<Output = Result<Self::Driver, sqlx::Error>> + Send;

    /// Refuses a server that is too old, and upgrades the tables. Returns the layout found.
    fn upgrade(
        &self,
        db: &mut Self::Driver,
    ) -> impl Future<Output = Result<i64, SqlOpenError>> + Send;

    /// Connects and names the session.
    fn connect_session(
        &self,
    ) -> impl Future<Output = Result<SessionConnection<Self>, SqlError>> + Send;

    /// Starts the tasks that exchange wakeups with other replicas.
    fn start_tasks(shared: &Arc<SqlShared<Self>>) -> Vec<JoinHandle<()>>;

    /// Adds a parameter.
    fn add(to: &mut Self::Arguments, value: Value<'_>) -> Result<(), BoxDynError>;

    /// Adds parameters in their order.
    fn add_all(to: &mut Self::Arguments, values: &[Value<'_>]) -> Result<(), BoxDynError> {
        values.iter().try_for_each(|value| Self::add(to, *value))
    }

    /// Adds the parameters of [`Statements::claim`]. `claim` is new for every claim.
    fn add_claim(
        to: &mut Self::Arguments,
        worker: WorkerId,
        claim: Uuid,
        queues: &[(Queue, usize)],
    ) -> Result<(), BoxDynError>;

    /// Number of the lock of a worker's lease.
    fn worker_lock(worker: WorkerId) -> i64;

    /// Sends a statement and reads the result to its end.
    fn run(
        driver: &mut Self::Driver,
        statement: &'static str,
        arguments: Self::Arguments,
    ) -> impl Future<Output = Result<Vec<Self::Row>, SqlError>> + Send;

    /// Classifies an error reported by the server; `None` if it is of another server.
    fn server_error(error: &dyn DatabaseError) -> Option<SqlError>;

    /// Classifies an error of the driver.
    fn driver_error(cause: sqlx::Error) -> SqlError {
        match &cause {
            sqlx::Error::Database(error) => Self::server_error(error.as_ref())
                .unwrap_or_else(|| odd("an error of another kind of server")),
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => odd(cause),
            _ => SqlError::Lost(cause.to_string()),
        }
    }

    /// Whether the server rolled back a statement because of a deadlock.
    fn is_deadlock(code: &str) -> bool;

    /// Reads the totals of a row of [`Statements::stats`]; `live` is set. Returns whether to fold.
    fn totals(row: &Self::Row, stats: &mut Stats) -> Result<bool, SqlError>;

    /// Terms of a document, from the fourth column on.
    fn terms(row: &Self::Row) -> Result<Vec<Term>, SqlError>;

    /// Sends a commit. Returns 0, an expectation from 1, or a write from -1.
    fn send_commit(
        shared: &SqlShared<Self>,
        pooled: &mut PooledConnection<'_, Self>,
        rows: &CommitRows<'_>,
    ) -> impl Future<Output = Result<i64, SqlError>> + Send;

    /// Classifies a refused commit.
    fn refused_commit(error: SqlError) -> CommitAttempt<Self::Session>;

    /// Ends a session of the server. Returns whether it is gone already.
    fn end_session(
        shared: &SqlShared<Self>,
        session: &Self::Session,
    ) -> impl Future<Output = Result<bool, SqlError>> + Send;
}

impl<D: Dialect> Connector for D {
    type Connection = SessionConnection<D>;

    fn connect(&self) -> impl Future<Output = Result<SessionConnection<D>, SqlError>> + Send {
        self.connect_session()
    }
}
