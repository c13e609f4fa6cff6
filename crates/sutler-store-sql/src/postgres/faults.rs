//! For tests: a commit that stops just before COMMIT, and query plans of statements.

use super::PostgresDialect;
use super::commit::fill;
use super::fast_commit::FastCommit;
use super::sql;
use crate::commit_rows::CommitRows;
use crate::dialect::Dialect as _;
use crate::settings::SqlSettings;
use secrecy::SecretString;
use sqlx::postgres::{PgArguments, PgConnection};
use sqlx::{AssertSqlSafe, Executor, Row};
use sutler_journal::Commit;

/// A transaction with everything of a commit except COMMIT.
pub struct OpenCommit(PgConnection);

impl OpenCommit {
    /// Executes everything except COMMIT.
    ///
    /// # Panics
    /// If the server refuses it.
    pub async fn begin(url: &SecretString, commit: &Commit) -> Self {
        let server = PostgresDialect::at(url, &SqlSettings::default()).expect("a URL");
        let mut line = server.connect_session().await.expect("a connection");
        let mut arguments = PgArguments::default();
        let staged = CommitRows::of(commit);
        let (statement, filled) = match FastCommit::of(&staged) {
            Some(fast) => (fast.statement(), fast.fill(&mut arguments)),
            None => (sql::COMMIT, fill(&mut arguments, &staged)),
        };
        filled.expect("parameters");
        let begin = sqlx::raw_sql("BEGIN").execute(&mut line.driver).await;
        begin.expect("a transaction");
        let done = sqlx::query_with(statement, arguments).fetch_all(&mut line.driver);
        done.await.expect("a commit");
        Self(line.driver)
    }

    /// Sends COMMIT.
    ///
    /// # Panics
    /// If the server refuses it.
    pub async fn finish(mut self) {
        let end = sqlx::raw_sql("COMMIT").execute(&mut self.0).await;
        end.expect("the end");
    }
}

/// A connection with the store's settings.
///
/// # Panics
/// If the server refuses it.
pub async fn connection(url: &SecretString) -> PgConnection {
    let server = PostgresDialect::at(url, &SqlSettings::default()).expect("a URL");
    server.connect_session().await.expect("a connection").driver
}

/// Statements whose cost must not grow with the stored data.
const HOT: [&str; 8] = [
    sql::STATEMENTS.get,
    sql::STATEMENTS.list_by_key,
    sql::STATEMENTS.list_by_term,
    sql::STATEMENTS.poll,
    sql::STATEMENTS.operation,
    sql::STATEMENTS.operations,
    sql::STATEMENTS.operations_of_lane,
    sql::STATEMENTS.read_log,
];

/// Query plans of the hot statements on a connection of the store.
///
/// # Panics
/// If the server does not return a plan.
pub async fn plans(url: &SecretString) -> Vec<String> {
    let mut db = connection(url).await;
    let mut plans = Vec::new();
    for (n, statement) in HOT.iter().enumerate() {
        let parameters = (1..10).take_while(|n| statement.contains(&format!("${n}")));
        let nothing = vec!["NULL"; parameters.count()].join(", ");
        let prepare = format!("PREPARE hot_{n} AS {statement}");
        let explain = format!("EXPLAIN (COSTS OFF) EXECUTE hot_{n} ({nothing})");
        let prepared = db.execute(AssertSqlSafe(prepare)).await;
        prepared.expect("a statement");
        let rows = db.fetch_all(sqlx::raw_sql(AssertSqlSafe(explain))).await;
        let lines = rows.expect("a plan").into_iter();
        let plan: Vec<String> = lines.map(|row| row.get(0)).collect();
        plans.push(format!("{statement}\n{}", plan.join("\n")));
    }
    plans
}
