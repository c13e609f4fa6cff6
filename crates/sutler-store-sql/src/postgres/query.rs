//! One statement and its answer: the only place where this store talks to PostgreSQL.
//!
//! An answer is read to its end, where the server says that the transaction is over: rows that arrive
//! before that mean nothing yet.

use super::connect::{Connection, Server};
use super::{SqlShared, sql};
use crate::error::SqlError;
use crate::pool::PooledConnection;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArguments, PgDatabaseError, PgRow, PgSeverity};
use tokio::time::timeout;

/// Fills in the parameters of a statement; called again for every try.
pub(super) type Fill<'f> = dyn Fn(&mut PgArguments) -> Result<(), BoxDynError> + Sync + 'f;

impl SqlShared {
    /// For what may be done twice: tried once more if the connection was an old one and broke.
    pub(super) async fn ask(
        &self,
        statement: &'static str,
        fill: &Fill<'_>,
    ) -> Result<Vec<PgRow>, SqlError> {
        let mut pooled = self.pool.acquire().await?;
        match self.send(&mut pooled, statement, fill).await {
            Err(SqlError::Lost(_)) if !pooled.is_fresh() => drop(pooled),
            answer => return finish(pooled, answer),
        }
        self.ask_once(statement, fill).await
    }

    /// For what may not, on a connection that was made for it if need be.
    pub(super) async fn ask_once(
        &self,
        statement: &'static str,
        fill: &Fill<'_>,
    ) -> Result<Vec<PgRow>, SqlError> {
        let mut pooled = self.pool.acquire().await?;
        let answer = self.send(&mut pooled, statement, fill).await;
        finish(pooled, answer)
    }

    /// Sends a statement and reads the answer.
    pub(super) async fn send(
        &self,
        pooled: &mut PooledConnection<'_, Server>,
        statement: &'static str,
        fill: &Fill<'_>,
    ) -> Result<Vec<PgRow>, SqlError> {
        let within = self.settings.answer_timeout;
        let answer = match timeout(within, run(pooled.connection(), statement, fill)).await {
            Ok(answer) => answer,
            Err(_) => Err(SqlError::Lost(format!("no answer within {within:?}"))),
        };
        if let Err(SqlError::Lost(said)) = &answer {
            tracing::debug!(statement = sql::name(statement), said, "a connection broke");
            self.pool.distrust();
        }
        answer
    }
}

/// Keeps a connection that is still in order.
pub(super) fn finish<T>(
    pooled: PooledConnection<'_, Server>,
    answer: Result<T, SqlError>,
) -> Result<T, SqlError> {
    match &answer {
        Ok(_) | Err(SqlError::Refused { .. }) => pooled.keep(),
        Err(SqlError::Lost(_) | SqlError::Odd(_) | SqlError::Unsent(_)) => drop(pooled),
    }
    answer
}

async fn run(
    line: &mut Connection,
    statement: &'static str,
    fill: &Fill<'_>,
) -> Result<Vec<PgRow>, SqlError> {
    let mut arguments = PgArguments::default();
    fill(&mut arguments).map_err(|cause| SqlError::Unsent(cause.to_string()))?;
    sqlx::query_with(statement, arguments)
        .fetch_all(&mut line.connection)
        .await
        .map_err(error_of)
}

/// What an error of the driver means. An ERROR of the server leaves nothing behind; after a FATAL one
/// the session is gone, and nobody knows at which moment.
pub(super) fn error_of(cause: sqlx::Error) -> SqlError {
    let sqlx::Error::Database(database) = &cause else {
        return match cause {
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => {
                SqlError::Odd(cause.to_string())
            }
            other => SqlError::Lost(other.to_string()),
        };
    };
    let Some(said) = database.try_downcast_ref::<PgDatabaseError>() else {
        return SqlError::Odd("an error that is not PostgreSQL's".into());
    };
    match said.severity() {
        PgSeverity::Panic | PgSeverity::Fatal => {
            SqlError::Lost(format!("{}: {}", said.code(), said.message()))
        }
        _ => SqlError::Refused {
            code: match said.constraint() {
                // Our own code for a commit that stands from an earlier time.
                Some("sutler_feed_id") => "SU000".to_owned(),
                _ => said.code().to_owned(),
            },
            said: said.message().to_owned(),
        },
    }
}
