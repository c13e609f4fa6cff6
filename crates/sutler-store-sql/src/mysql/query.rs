//! One statement and its answer: the only place where this store talks to the server.
//!
//! An answer is read to its end, with all its parts: a procedure's rows come before its last word.

use super::connect::{Connection, Server};
use super::{SqlShared, sql};
use crate::error::SqlError;
use crate::pool::PooledConnection;
use sqlx::error::BoxDynError;
use sqlx::mysql::{MySqlArguments, MySqlDatabaseError, MySqlRow};
use tokio::time::timeout;

/// Fills in the parameters of a statement; called again for every try.
pub(super) type Fill<'f> = dyn Fn(&mut MySqlArguments) -> Result<(), BoxDynError> + Sync + 'f;

/// Errors after which nobody knows how far the session got: it was stopped from outside, the server ends,
/// or it must be asked in another way (a prepared statement that is out of date).
const ENDED_FROM_OUTSIDE: [u16; 9] = [1053, 1077, 1078, 1079, 1317, 1615, 1927, 1969, 3024];

impl SqlShared {
    /// For what may be done twice: tried once more if the connection was an old one and broke.
    pub(super) async fn ask(
        &self,
        statement: &'static str,
        fill: &Fill<'_>,
    ) -> Result<Vec<MySqlRow>, SqlError> {
        let mut pooled = self.pool.acquire().await?;
        match self.send(&mut pooled, statement, fill).await {
            Err(SqlError::Lost(_)) if !pooled.is_fresh() => drop(pooled),
            answer => return finish(pooled, answer),
        }
        self.ask_once(statement, fill).await
    }

    /// For what may not; a deadlock undoes everything, so that it may.
    pub(super) async fn ask_once(
        &self,
        statement: &'static str,
        fill: &Fill<'_>,
    ) -> Result<Vec<MySqlRow>, SqlError> {
        let mut tries = 0;
        loop {
            let mut pooled = self.pool.acquire().await?;
            let answer = self.send(&mut pooled, statement, fill).await;
            tries += 1;
            match finish(pooled, answer) {
                Err(SqlError::Refused { code, .. }) if code == "1213" && tries < 8 => {}
                answer => return answer,
            }
        }
    }

    /// Sends a statement and reads the answer.
    pub(super) async fn send(
        &self,
        pooled: &mut PooledConnection<'_, Server>,
        statement: &'static str,
        fill: &Fill<'_>,
    ) -> Result<Vec<MySqlRow>, SqlError> {
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
pub(super) fn finish(
    pooled: PooledConnection<'_, Server>,
    answer: Result<Vec<MySqlRow>, SqlError>,
) -> Result<Vec<MySqlRow>, SqlError> {
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
) -> Result<Vec<MySqlRow>, SqlError> {
    let mut arguments = MySqlArguments::default();
    fill(&mut arguments).map_err(|cause| SqlError::Unsent(cause.to_string()))?;
    sqlx::query_with(statement, arguments)
        .fetch_all(&mut line.connection)
        .await
        .map_err(error_of)
}

/// What an error of the driver means.
pub(super) fn error_of(cause: sqlx::Error) -> SqlError {
    let sqlx::Error::Database(database) = &cause else {
        return match cause {
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => {
                SqlError::Odd(cause.to_string())
            }
            other => SqlError::Lost(other.to_string()),
        };
    };
    let Some(said) = database.try_downcast_ref::<MySqlDatabaseError>() else {
        return SqlError::Odd("an error that is not MySQL's".into());
    };
    match ENDED_FROM_OUTSIDE.contains(&said.number()) {
        true => SqlError::Lost(format!("{}: {}", said.number(), said.message())),
        false => SqlError::Refused {
            code: said.number().to_string(),
            said: said.message().to_owned(),
        },
    }
}
