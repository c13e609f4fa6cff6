//! For tests: a commit that stops at its last moment.

use super::commit::fill;
use super::connect::Server;
use super::sql;
use crate::pool::Link;
use crate::settings::SqlSettings;
use crate::staged::Staged;
use secrecy::SecretString;
use sqlx::postgres::{PgArguments, PgConnection};
use sutler_journal::Commit;

/// A transaction in which everything of a commit is done but COMMIT.
pub struct OpenCommit(PgConnection);

impl OpenCommit {
    /// Does all of it but the last word.
    ///
    /// # Panics
    /// If the server does not take it.
    pub async fn begin(url: &SecretString, commit: &Commit) -> Self {
        let server = Server::at(url, &SqlSettings::default()).expect("a URL");
        let mut line = server.connect().await.expect("a connection");
        let mut arguments = PgArguments::default();
        fill(&mut arguments, &Staged::of(commit)).expect("parameters");
        let begin = sqlx::raw_sql("BEGIN").execute(&mut line.connection).await;
        begin.expect("a transaction");
        let done = sqlx::query_with(sql::COMMIT, arguments).fetch_all(&mut line.connection);
        done.await.expect("a commit");
        Self(line.connection)
    }

    /// Says the last word.
    ///
    /// # Panics
    /// If the server does not take it.
    pub async fn finish(mut self) {
        let end = sqlx::raw_sql("COMMIT").execute(&mut self.0).await;
        end.expect("the end");
    }
}
