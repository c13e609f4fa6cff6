//! One statement and its answer: the only place where this store talks to the server.
//!
//! An answer is read to its end, with all its parts: a procedure's rows come before its last word.

use super::connect::{Line, Server};
use super::{Shared, sql};
use crate::pool::Lent;
use crate::trouble::Trouble;
use sqlx::error::BoxDynError;
use sqlx::mysql::{MySqlArguments, MySqlDatabaseError, MySqlRow};
use tokio::time::timeout;

/// Fills in the parameters of a statement; called again for every try.
pub(super) type Fill<'f> = dyn Fn(&mut MySqlArguments) -> Result<(), BoxDynError> + Sync + 'f;

/// Errors after which nobody knows how far the session got: it was stopped from outside, the server ends,
/// or it must be asked in another way (a prepared statement that is out of date).
const ENDED_FROM_OUTSIDE: [u16; 9] = [1053, 1077, 1078, 1079, 1317, 1615, 1927, 1969, 3024];

impl Shared {
    /// For what may be done twice: tried once more if the connection was an old one and broke.
    pub(super) async fn ask(
        &self,
        statement: &'static str,
        fill: &Fill<'_>,
    ) -> Result<Vec<MySqlRow>, Trouble> {
        let mut lent = self.pool.lend().await?;
        match self.send(&mut lent, statement, fill).await {
            Err(Trouble::Lost(_)) if !lent.is_fresh() => drop(lent),
            answer => return finish(lent, answer),
        }
        self.ask_once(statement, fill).await
    }

    /// For what may not; a deadlock undoes everything, so that it may.
    pub(super) async fn ask_once(
        &self,
        statement: &'static str,
        fill: &Fill<'_>,
    ) -> Result<Vec<MySqlRow>, Trouble> {
        let mut tries = 0;
        loop {
            let mut lent = self.pool.lend().await?;
            let answer = self.send(&mut lent, statement, fill).await;
            tries += 1;
            match finish(lent, answer) {
                Err(Trouble::Refused { code, .. }) if code == "1213" && tries < 8 => {}
                answer => return answer,
            }
        }
    }

    /// Sends a statement and reads the answer.
    pub(super) async fn send(
        &self,
        lent: &mut Lent<'_, Server>,
        statement: &'static str,
        fill: &Fill<'_>,
    ) -> Result<Vec<MySqlRow>, Trouble> {
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
pub(super) fn finish(
    lent: Lent<'_, Server>,
    answer: Result<Vec<MySqlRow>, Trouble>,
) -> Result<Vec<MySqlRow>, Trouble> {
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
) -> Result<Vec<MySqlRow>, Trouble> {
    let mut arguments = MySqlArguments::default();
    fill(&mut arguments).map_err(|cause| Trouble::Unsent(cause.to_string()))?;
    sqlx::query_with(statement, arguments)
        .fetch_all(&mut line.connection)
        .await
        .map_err(trouble_of)
}

/// What an error of the driver means.
pub(super) fn trouble_of(cause: sqlx::Error) -> Trouble {
    let sqlx::Error::Database(database) = &cause else {
        return match cause {
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => {
                Trouble::Odd(cause.to_string())
            }
            other => Trouble::Lost(other.to_string()),
        };
    };
    let Some(said) = database.try_downcast_ref::<MySqlDatabaseError>() else {
        return Trouble::Odd("an error that is not MySQL's".into());
    };
    match ENDED_FROM_OUTSIDE.contains(&said.number()) {
        true => Trouble::Lost(format!("{}: {}", said.number(), said.message())),
        false => Trouble::Refused {
            code: said.number().to_string(),
            said: said.message().to_owned(),
        },
    }
}
