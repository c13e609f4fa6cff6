//! Address of the server, and the settings of every session.
//!
//! Settings are sent with the connection request and cost no round trip. Not here: pooling
//! (`pool.rs`), the tables (`schema.rs`).

use super::PostgresDialect;
use crate::dialect::{Dialect as _, SessionConnection};
use crate::error::{SqlError, odd};
use crate::settings::{SqlOpenError, SqlSettings};
use secrecy::{ExposeSecret, SecretString};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Row};
use std::str::FromStr;

/// Reads the session's process id and start time, and makes commits durable if the server's own
/// default is that they are not.
const INTRODUCTION: &str = "
    SELECT pid, (extract(epoch FROM backend_start) * 1000000)::bigint,
           CASE WHEN current_setting('synchronous_commit') = 'off'
                THEN set_config('synchronous_commit', 'on', false) END
    FROM pg_stat_activity WHERE pid = pg_backend_pid()";

/// Planner settings: every statement is a lookup in one index, and a plan that is prepared once, without
/// statistics, must not choose anything else.
const PLANS: [(&str, &str); 6] = [
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("enable_bitmapscan", "off"),
    ("jit", "off"),
];

/// Permanent id of a session: process ids are reused, but not with the same start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    pub(super) process: i32,
    pub(super) began: i64,
}

/// Parses a URL.
pub(super) fn options(
    url: &SecretString,
    settings: &SqlSettings,
) -> Result<PgConnectOptions, SqlOpenError> {
    let options = PgConnectOptions::from_str(url.expose_secret()).map_err(|_| {
        // The cause may repeat a part of the URL, and a part may be the password.
        let form = "it must look like postgres://user:password@host:5432/database";
        SqlOpenError::Url(form.into())
    })?;
    let millis = |time: std::time::Duration| time.as_millis().max(1).to_string();
    Ok(options
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
        ]))
}

/// Connects for migrations, without time limits of statements.
pub(super) async fn connect_for_migration(
    options: &PgConnectOptions,
) -> Result<PgConnection, sqlx::Error> {
    let unlimited = [("statement_timeout", "0"), ("lock_timeout", "120000")];
    options.clone().options(unlimited).connect().await
}

/// Connects, and reads the id of the session.
pub(super) async fn connect(
    options: &PgConnectOptions,
) -> Result<SessionConnection<PostgresDialect>, SqlError> {
    let unsent = |cause| PostgresDialect::driver_error(cause).into_unsent();
    let mut driver = options.connect().await.map_err(unsent)?;
    let row = sqlx::query(INTRODUCTION)
        .fetch_one(&mut driver)
        .await
        .map_err(unsent)?;
    let session = Session {
        process: row.try_get(0).map_err(odd)?,
        began: row.try_get(1).map_err(odd)?,
    };
    Ok(SessionConnection { driver, session })
}

#[cfg(test)]
mod tests {
    use super::options;
    use crate::settings::SqlSettings;

    #[test]
    fn a_bad_url_is_refused_without_repeating_it() {
        for url in [
            "postgres://u:canary@host:port/db",
            "postgres://u:canary@h/d?sslmode=canary",
            "canary",
        ] {
            let refused = options(&url.into(), &SqlSettings::default());
            let error = refused.expect_err("no URL");
            assert!(!format!("{error} {error:?}").contains("canary"), "{error}");
        }
    }
}
