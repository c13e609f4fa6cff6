//! SQL sessions: as an application with credentials, and as the server's operator.

use serde_json::Value;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, Connection as _};
use std::str::FromStr as _;

/// A connection to the server.
pub(crate) struct Session(PgConnection);

/// SQLSTATE of a refused statement.
pub(crate) type Refused = String;

impl Session {
    pub(crate) async fn open(url: &str) -> Result<Self, Refused> {
        let connection = PgConnection::connect(url).await;
        connection.map(Self).map_err(|error| code(&error))
    }

    /// A session of an application with the credentials of a binding.
    pub(crate) async fn with(credentials: &Value) -> Self {
        let url = credentials["uri"].as_str().expect("a URI");
        Self::open(url).await.expect("the credentials let it in")
    }

    /// A session with the same credentials in another database.
    pub(crate) async fn elsewhere(credentials: &Value, database: &str) -> Result<Self, Refused> {
        let url = credentials["uri"].as_str().expect("a URI");
        let options = PgConnectOptions::from_str(url).expect("a URI of PostgreSQL");
        let options = options.database(database);
        let connection = PgConnection::connect_with(&options).await;
        connection.map(Self).map_err(|error| code(&error))
    }

    pub(crate) async fn run(&mut self, sql: &str) -> Result<(), Refused> {
        let done = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut self.0).await;
        done.map(|_| ()).map_err(|error| code(&error))
    }

    pub(crate) async fn number(&mut self, sql: &str) -> i64 {
        let query = sqlx::query_scalar(AssertSqlSafe(sql));
        query.fetch_one(&mut self.0).await.expect("a number")
    }

    pub(crate) async fn text(&mut self, sql: &str) -> String {
        let query = sqlx::query_scalar(AssertSqlSafe(sql));
        query.fetch_one(&mut self.0).await.expect("a text")
    }
}

fn code(error: &sqlx::Error) -> Refused {
    let code = error.as_database_error().and_then(|it| it.code());
    code.map_or_else(|| error.to_string(), |it| it.into_owned())
}
