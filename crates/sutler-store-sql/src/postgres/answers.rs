//! One statement and its answer: the only place where this store talks to PostgreSQL.
//!
//! An answer is read to its end, where the server says that the transaction is over: rows that arrive
//! before that mean nothing yet.

use super::connect::{Line, Server};
use super::{Shared, sql};
use crate::pool::Lent;
use crate::trouble::Trouble;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArguments, PgDatabaseError, PgRow, PgSeverity};
use tokio::time::timeout;

/// Fills in the parameters of a statement; called again for every try.
pub(super) type Fill<'f> = dyn Fn(&mut PgArguments) -> Result<(), BoxDynError> + Sync + 'f;

impl Shared {
    /// For what may be done twice: tried once more if the connection was an old one and broke.
    pub(super) async fn ask(
        &self,
        statement: &'static str,
        fill: &Fill<'_>,
    ) -> Result<Vec<PgRow>, Trouble> {
        let mut lent = self.pool.lend().await?;
        match self.send(&mut lent, statement, fill).await {
            Err(Trouble::Lost(_)) if !lent.is_fresh() => drop(lent),
            answer => return finish(lent, answer),
        }
        self.ask_once(statement, fill).await
    }

    /// For what may not, on a connection that was made for it if need be.
    pub(super) async fn ask_once(
        &self,
        statement: &'static str,
        fill: &Fill<'_>,
    ) -> Result<Vec<PgRow>, Trouble> {
        let mut lent = self.pool.lend().await?;
        let answer = self.send(&mut lent, statement, fill).await;
        finish(lent, answer)
    }

    /// Sends a statement and reads the answer.
    pub(super) async fn send(
        &self,
        lent: &mut Lent<'_, Server>,
        statement: &'static str,
        fill: &Fill<'_>,
    ) -> Result<Vec<PgRow>, Trouble> {
        let within = self.settings.answer_timeout;
        let answer = match timeout(within, run(lent.line(), statement, fill)).await {
            Ok(answer) => answer,
            Err(_) => Err(Trouble::Lost(format!("no answer within {within:?}"))),
        };
        if let Err(Trouble::Lost(said)) = &answer {
            tracing::debug!(statement = sql::name(statement), said, "a connection broke");
            self.pool.distrust();
        }
        answer
    }
}

/// Keeps a connection that is still in order.
pub(super) fn finish<T>(lent: Lent<'_, Server>, answer: Result<T, Trouble>) -> Result<T, Trouble> {
    match &answer {
        Ok(_) | Err(Trouble::Refused { .. }) => lent.keep(),
        Err(Trouble::Lost(_) | Trouble::Odd(_) | Trouble::Unsent(_)) => drop(lent),
    }
    answer
}

async fn run(
    line: &mut Line,
    statement: &'static str,
    fill: &Fill<'_>,
) -> Result<Vec<PgRow>, Trouble> {
    let mut arguments = PgArguments::default();
    fill(&mut arguments).map_err(|cause| Trouble::Unsent(cause.to_string()))?;
    sqlx::query_with(statement, arguments)
        .fetch_all(&mut line.connection)
        .await
        .map_err(trouble_of)
}

/// What an error of the driver means. An ERROR of the server leaves nothing behind; after a FATAL one
/// the session is gone, and nobody knows at which moment.
pub(super) fn trouble_of(cause: sqlx::Error) -> Trouble {
    let sqlx::Error::Database(database) = &cause else {
        return match cause {
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => {
                Trouble::Odd(cause.to_string())
            }
            other => Trouble::Lost(other.to_string()),
        };
    };
    let Some(said) = database.try_downcast_ref::<PgDatabaseError>() else {
        return Trouble::Odd("an error that is not PostgreSQL's".into());
    };
    match said.severity() {
        PgSeverity::Panic | PgSeverity::Fatal => {
            Trouble::Lost(format!("{}: {}", said.code(), said.message()))
        }
        _ => Trouble::Refused {
            code: match said.constraint() {
                // Our own code for a commit that stands from an earlier time.
                Some("sutler_feed_id") => "SU000".to_owned(),
                _ => said.code().to_owned(),
            },
            said: said.message().to_owned(),
        },
    }
}
