//! Where the server is, and what every connection to it is set to.
//!
//! Settings travel with the request for a connection and cost no round trip. Not here: how connections
//! are kept (`pool.rs`), the tables (`schema.rs`).

use super::query::error_of;
use crate::error::{SqlError, odd};
use crate::pool::Connector;
use crate::settings::{SqlOpenError, SqlSettings};
use secrecy::{ExposeSecret, SecretString};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Row};
use std::str::FromStr;

/// Says who a session is, which of several that had one process id; and makes commits durable where
/// the server's own default is that they are not.
const INTRODUCTION: &str = "
    SELECT pid, (extract(epoch FROM backend_start) * 1000000)::bigint,
           CASE WHEN current_setting('synchronous_commit') = 'off'
                THEN set_config('synchronous_commit', 'on', false) END
    FROM pg_stat_activity WHERE pid = pg_backend_pid()";

/// Every statement looks up one place of one index. A plan that is made once, without statistics, must
/// know nothing else.
const PLANS: [(&str, &str); 6] = [
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("enable_bitmapscan", "off"),
    ("jit", "off"),
];

/// A server, and how to reach it.
pub(super) struct Server {
    options: PgConnectOptions,
}

/// A connection, and which session of the server it is.
pub(super) struct Connection {
    pub(super) connection: PgConnection,
    pub(super) session: Session,
}

/// One session of the server, for ever: process ids come again, but not with the same beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Session {
    pub(super) process: i32,
    pub(super) began: i64,
}

impl Server {
    pub(super) fn at(url: &SecretString, settings: &SqlSettings) -> Result<Self, SqlOpenError> {
        let options = PgConnectOptions::from_str(url.expose_secret()).map_err(|_| {
            // The cause may repeat a part of the URL, and a part may be the password.
            let form = "it must look like postgres://user:password@host:5432/database";
            SqlOpenError::Url(form.into())
        })?;
        let millis = |time: std::time::Duration| time.as_millis().max(1).to_string();
        let options = options
            .application_name("sutler")
            .statement_cache_capacity(64)
            .disable_statement_logging()
            .options(PLANS)
            .options([
                ("statement_timeout", millis(settings.statement_timeout)),
                ("lock_timeout", millis(settings.lock_timeout)),
                ("idle_in_transaction_session_timeout", "60000".into()),
                ("default_transaction_isolation", "read committed".into()),
                ("timezone", "UTC".into()),
            ]);
        Ok(Self { options })
    }

    /// Host, port and database.
    pub(super) fn name(&self) -> String {
        format!(
            "PostgreSQL at {}:{}/{}",
            self.options.get_host(),
            self.options.get_port(),
            self.options.get_database().unwrap_or_default()
        )
    }

    /// The way in for whoever listens: nothing there is timed.
    pub(super) fn for_listening(&self) -> PgConnectOptions {
        self.options.clone()
    }

    /// A connection for making tables: that may take its time.
    pub(super) async fn connect_for_migration(&self) -> Result<PgConnection, sqlx::Error> {
        let patient = [("statement_timeout", "0"), ("lock_timeout", "120000")];
        self.options.clone().options(patient).connect().await
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
        let row = sqlx::query(INTRODUCTION)
            .fetch_one(&mut connection)
            .await
            .map_err(unsent)?;
        let session = Session {
            process: row.try_get(0).map_err(odd)?,
            began: row.try_get(1).map_err(odd)?,
        };
        Ok(Connection {
            connection,
            session,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Server;
    use crate::settings::SqlSettings;

    #[test]
    fn a_bad_url_is_refused_without_repeating_it() {
        for url in [
            "postgres://u:canary@host:port/db",
            "postgres://u:canary@h/d?sslmode=canary",
            "canary",
        ] {
            let refused = Server::at(&url.into(), &SqlSettings::default());
            let error = refused.err().expect("no URL");
            assert!(!format!("{error} {error:?}").contains("canary"), "{error}");
        }
    }
}
