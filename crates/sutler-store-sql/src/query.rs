//! Sends one statement and reads its result: the only place where a store talks to its server.
//!
//! A result is read to its end: a procedure's rows come before its status, and rows that arrive before
//! the end of a transaction are not final.

use crate::dialect::{Dialect, Value};
use crate::error::SqlError;
use crate::pool::PooledConnection;
use crate::store::SqlShared;
use sqlx::error::BoxDynError;
use std::future::Future;
use tokio::time::timeout;

/// Fills in the parameters of a statement; called again for every attempt.
pub(crate) type Fill<'f, D> =
    dyn Fn(&mut <D as Dialect>::Arguments) -> Result<(), BoxDynError> + Sync + 'f;

/// Attempts of a statement that the server rolls back because of a deadlock.
const TRIES: usize = 8;

impl<D: Dialect> SqlShared<D> {
    /// Runs a statement that may run twice: repeats it once if a pooled connection broke.
    pub(crate) async fn ask(
        &self,
        statement: &'static str,
        values: &[Value<'_>],
    ) -> Result<Vec<D::Row>, SqlError> {
        self.ask_with(statement, &|to| D::add_all(to, values)).await
    }

    /// As [`SqlShared::ask`], with parameters of the server's own types.
    pub(crate) async fn ask_with(
        &self,
        statement: &'static str,
        fill: &Fill<'_, D>,
    ) -> Result<Vec<D::Row>, SqlError> {
        let mut pooled = self.pool.acquire().await?;
        match self.send(&mut pooled, statement, fill).await {
            Err(SqlError::Lost(_)) if !pooled.is_fresh() => drop(pooled),
            answer => return finish(pooled, answer),
        }
        self.ask_once(statement, fill).await
    }

    /// Runs a statement that must not run twice. A deadlock rolls it back, so then it is repeated.
    pub(crate) async fn ask_once(
        &self,
        statement: &'static str,
        fill: &Fill<'_, D>,
    ) -> Result<Vec<D::Row>, SqlError> {
        let mut tries = 0;
        loop {
            let mut pooled = self.pool.acquire().await?;
            let answer = self.send(&mut pooled, statement, fill).await;
            tries += 1;
            match finish(pooled, answer) {
                Err(SqlError::Refused { code, .. }) if D::is_deadlock(&code) && tries < TRIES => {}
                answer => return answer,
            }
        }
    }

    /// Sends a statement and reads the result.
    pub(crate) async fn send(
        &self,
        pooled: &mut PooledConnection<'_, D>,
        statement: &'static str,
        fill: &Fill<'_, D>,
    ) -> Result<Vec<D::Row>, SqlError> {
        let mut arguments = D::Arguments::default();
        fill(&mut arguments).map_err(|cause| SqlError::Unsent(cause.to_string()))?;
        let sent = D::run(&mut pooled.connection().driver, statement, arguments);
        let name = statement.split(D::NAME_END).next().unwrap_or_default();
        self.answer_of(name, sent).await
    }

    /// Waits for the response to a statement, within the time limit.
    pub(crate) async fn answer_of<T>(
        &self,
        name: &str,
        sent: impl Future<Output = Result<T, SqlError>>,
    ) -> Result<T, SqlError> {
        let within = self.settings.answer_timeout;
        let answer = match timeout(within, sent).await {
            Ok(answer) => answer,
            Err(_) => Err(SqlError::Lost(format!("no answer within {within:?}"))),
        };
        if let Err(SqlError::Lost(said)) = &answer {
            tracing::debug!(statement = name, said, "a connection broke");
            self.pool.distrust();
        }
        answer
    }
}

/// Returns a usable connection to the pool.
pub(crate) fn finish<D: Dialect, T>(
    pooled: PooledConnection<'_, D>,
    answer: Result<T, SqlError>,
) -> Result<T, SqlError> {
    match &answer {
        Ok(_) | Err(SqlError::Refused { .. }) => pooled.keep(),
        Err(SqlError::Lost(_) | SqlError::Odd(_) | SqlError::Unsent(_)) => drop(pooled),
    }
    answer
}
