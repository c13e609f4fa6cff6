//! Address of the server, and the settings of every session.
//!
//! Not here: pooling (`pool.rs`), the tables (`schema.rs`).

use super::MySqlDialect;
use crate::dialect::{Dialect as _, SessionConnection};
use crate::error::{SqlError, odd};
use crate::settings::SqlOpenError;
use secrecy::{ExposeSecret, SecretString};
use sqlx::mysql::MySqlConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Executor, Row};
use std::str::FromStr;
use std::sync::atomic::Ordering;
use uuid::Uuid;

/// Permanent id of a session: the name of a lock that it holds while it lives. The server
/// releases it only after everything that the session left open was rolled back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session(pub(super) String);

/// Parses a URL.
pub(super) fn options(url: &SecretString) -> Result<MySqlConnectOptions, SqlOpenError> {
    let options = MySqlConnectOptions::from_str(url.expose_secret()).map_err(|_| {
        // The cause may repeat a part of the URL, and a part may be the password.
        let form = "it must look like mysql://user:password@host:3306/database";
        SqlOpenError::Url(form.into())
    })?;
    if options.get_database().is_none() {
        let missing = "it must name a database: mysql://user:password@host:3306/database";
        return Err(SqlOpenError::Url(missing.into()));
    }
    Ok(options
        .statement_cache_capacity(64)
        .disable_statement_logging())
}

impl MySqlDialect {
    /// Settings of a session. The timeouts of MySQL and MariaDB have different names and units.
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

/// Connects, and names the session by a lock.
pub(super) async fn connect(
    dialect: &MySqlDialect,
) -> Result<SessionConnection<MySqlDialect>, SqlError> {
    let unsent = |cause| MySqlDialect::driver_error(cause).into_unsent();
    let mut driver = dialect.options.connect().await.map_err(unsent)?;
    let set_up = sqlx::raw_sql(AssertSqlSafe(dialect.set_up()));
    driver.execute(set_up).await.map_err(unsent)?;
    let session = Session(format!("sutler.{}", Uuid::new_v4().simple()));
    let name = format!("SELECT CAST(GET_LOCK('{}', 0) AS SIGNED)", session.0);
    let named = driver.fetch_one(AssertSqlSafe(name)).await;
    let taken: Option<i64> = named.map_err(unsent)?.try_get(0).map_err(odd)?;
    match taken {
        Some(1) => Ok(SessionConnection { driver, session }),
        _ => Err(SqlError::Unsent("a session could not be named".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::options;

    #[test]
    fn a_bad_url_is_refused_without_repeating_it() {
        for url in [
            "mysql://u:canary@host:port/db",
            "mysql://u:canary@h/d?ssl-mode=canary",
            "mysql://u:canary@h",
            "canary",
        ] {
            let refused = options(&url.into());
            let error = refused.expect_err("no URL");
            assert!(!format!("{error} {error:?}").contains("canary"), "{error}");
        }
    }
}
