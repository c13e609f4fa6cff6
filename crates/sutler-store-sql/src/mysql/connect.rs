//! Where the server is, and what every connection to it is set to.
//!
//! Not here: how connections are kept (`pool.rs`), the tables (`schema.rs`).

use super::query::error_of;
use crate::error::{SqlError, odd};
use crate::pool::Connector;
use crate::settings::{SqlOpenError, SqlSettings};
use secrecy::{ExposeSecret, SecretString};
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Executor, Row};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use uuid::Uuid;

/// A server, and how to reach it.
pub(super) struct Server {
    options: MySqlConnectOptions,
    settings: SqlSettings,
    /// Whether it is MariaDB; known once it was looked at.
    mariadb: AtomicBool,
}

/// A connection, and which session of the server it is.
pub(super) struct Connection {
    pub(super) connection: MySqlConnection,
    pub(super) session: Session,
}

/// One session of the server, for ever: the name of a lock that it holds while it lives. The server
/// gives it back only after everything that the session left open was undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Session(pub(super) String);

impl Server {
    pub(super) fn at(url: &SecretString, settings: &SqlSettings) -> Result<Self, SqlOpenError> {
        let options = MySqlConnectOptions::from_str(url.expose_secret()).map_err(|_| {
            // The cause may repeat a part of the URL, and a part may be the password.
            let form = "it must look like mysql://user:password@host:3306/database";
            SqlOpenError::Url(form.into())
        })?;
        if options.get_database().is_none() {
            let missing = "it must name a database: mysql://user:password@host:3306/database";
            return Err(SqlOpenError::Url(missing.into()));
        }
        let options = options
            .statement_cache_capacity(64)
            .disable_statement_logging();
        Ok(Self {
            options,
            settings: settings.clone(),
            mariadb: AtomicBool::new(false),
        })
    }

    /// Host, port and database.
    pub(super) fn name(&self) -> String {
        format!(
            "MySQL at {}:{}/{}",
            self.options.get_host(),
            self.options.get_port(),
            self.options.get_database().unwrap_or_default()
        )
    }

    pub(super) fn set_mariadb(&self, mariadb: bool) {
        self.mariadb.store(mariadb, Ordering::Relaxed);
    }

    /// A connection for making tables: that may take its time.
    pub(super) async fn connect_for_migration(&self) -> Result<MySqlConnection, sqlx::Error> {
        self.options.connect().await
    }

    /// What a session is set to. The times of the two makes have different names and units.
    fn set_up(&self) -> String {
        let lock = self.settings.lock_timeout.as_secs().max(1);
        let statement = self.settings.statement_timeout;
        let limit = match self.mariadb.load(Ordering::Relaxed) {
            true => format!("max_statement_time = {}", statement.as_secs_f64()),
            false => format!("max_execution_time = {}", statement.as_millis()),
        };
        format!(
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
             SET SESSION innodb_lock_wait_timeout = {lock}, {limit}"
        )
    }
}

impl Connector for Server {
    type Connection = Connection;

    async fn connect(&self) -> Result<Connection, SqlError> {
        let unsent = |cause: sqlx::Error| match error_of(cause) {
            SqlError::Lost(said) | SqlError::Unsent(said) | SqlError::Odd(said) => {
                SqlError::Unsent(said)
            }
            SqlError::Refused { code, said } => SqlError::Unsent(format!("{code}: {said}")),
        };
        let mut connection = self.options.connect().await.map_err(unsent)?;
        let set_up = sqlx::raw_sql(AssertSqlSafe(self.set_up()));
        connection.execute(set_up).await.map_err(unsent)?;
        let session = Session(format!("sutler.{}", Uuid::new_v4().simple()));
        let name = format!("SELECT CAST(GET_LOCK('{}', 0) AS SIGNED)", session.0);
        let named = connection.fetch_one(AssertSqlSafe(name)).await;
        let taken: Option<i64> = named.map_err(unsent)?.try_get(0).map_err(odd)?;
        match taken {
            Some(1) => Ok(Connection {
                connection,
                session,
            }),
            _ => Err(SqlError::Unsent("a session could not be named".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Server;
    use crate::settings::SqlSettings;

    #[test]
    fn a_bad_url_is_refused_without_repeating_it() {
        for url in [
            "mysql://u:canary@host:port/db",
            "mysql://u:canary@h/d?ssl-mode=canary",
            "mysql://u:canary@h",
            "canary",
        ] {
            let refused = Server::at(&url.into(), &SqlSettings::default());
            let error = refused.err().expect("no URL");
            assert!(!format!("{error} {error:?}").contains("canary"), "{error}");
        }
    }
}
