//! The PostgreSQL server, as the broker's own role sees it.
//!
//! All operations are idempotent: after a crash it is unknown whether the last statement was executed, so each one
//! checks first, or uses IF EXISTS, or treats "already exists" as success. The statements are in `sql.rs`, the
//! classification of errors is in `server_error.rs`.

use crate::names::Name;
use crate::parameters::{DatabaseSpec, Extension};
use crate::password;
use crate::server_error::{away, explain};
use crate::settings::{ServerAddress, Settings};
use crate::sql::{self, DropMethod, LoginState};
use secrecy::SecretString;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use sutler_broker::{Error, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

/// Maximum of concurrent operations; each uses up to two connections.
const SESSIONS_MAX: usize = 10;
/// Timeout of a connect.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Lock timeout and statement timeout. After them the operation is retried.
const LOCK_TIMEOUT: &str = "10s";
const STATEMENT_TIMEOUT: &str = "120s";
/// Timeout of the broker: longer than that of the server, whose error has the reason.
const ANSWER_WITHIN: Duration = Duration::from_secs(150);
/// Timeout for the end of terminated sessions, and interval between two checks.
const LEAVE_WITHIN: u32 = 100;
const LEAVE_LOOK_EVERY: Duration = Duration::from_millis(50);

/// Codes for "already exists": objects, databases, and concurrent creations.
const ALREADY_THERE: [&str; 3] = ["42710", "42P04", "23505"];
/// Code for "other objects depend on it".
const STILL_NEEDED: &str = "2BP01";

/// A server for databases.
#[derive(Clone)]
pub struct Server {
    options: PgConnectOptions,
    address: ServerAddress,
    turns: Arc<Semaphore>,
}

impl Server {
    /// The server that the settings name. Connects only when needed: a broker starts
    /// while its server is down, and its operations wait for it.
    pub fn new(settings: &Settings) -> Self {
        let options = settings
            .admin
            .clone()
            .application_name("sutler")
            // Users own schemas in their databases: unqualified names must not resolve to their objects.
            .options([
                ("search_path", "pg_catalog"),
                ("lock_timeout", LOCK_TIMEOUT),
                ("statement_timeout", STATEMENT_TIMEOUT),
                // "Already exists, skipping" is expected: steps are repeated.
                ("client_min_messages", "warning"),
            ])
            // Statements contain verifiers and must not be logged.
            .disable_statement_logging();
        Self {
            options,
            address: settings.address.clone(),
            turns: Arc::new(Semaphore::new(SESSIONS_MAX)),
        }
    }

    /// The address for applications.
    pub fn address(&self) -> &ServerAddress {
        &self.address
    }

    /// Connects as the broker's own role, once a slot is free.
    pub(crate) async fn open(&self) -> Result<Session> {
        let turn = self.turns.clone().acquire_owned().await?;
        Ok(Session {
            connection: connect(&self.options).await?,
            options: self.options.clone(),
            _turn: turn,
        })
    }
}

/// A connection to the server, for the time of one operation.
pub(crate) struct Session {
    connection: PgConnection,
    options: PgConnectOptions,
    _turn: OwnedSemaphorePermit,
}

impl Session {
    /// Refuses extensions that the server does not have, before anything is created.
    pub(crate) async fn expect_extensions(&mut self, spec: &DatabaseSpec) -> Result<()> {
        for extension in &spec.extensions {
            let name = extension.name();
            let query = "SELECT count(*) FROM pg_available_extensions WHERE name = $1";
            if self.count(query, name).await? == 0 {
                return Err(Error::invalid(format!(
                    "The PostgreSQL server does not have the extension `{name}`: leave it out, or \
                     have its operator install it."
                )));
            }
        }
        Ok(())
    }

    /// Creates the role that owns the objects of a database.
    pub(crate) async fn make_owner(&mut self, owner: &Name) -> Result<()> {
        if self.role_is_there(owner).await? {
            return self.run(sql::let_us_in(owner)).await;
        }
        or_is_there(self.execute(sql::create_owner(owner)).await)
    }

    /// Creates a database that only its owner can connect to.
    pub(crate) async fn make_database(&mut self, database: &Name) -> Result<()> {
        if !self.database_is_there(database).await? {
            or_is_there(self.execute(sql::create_database(database)).await)?;
        }
        self.run(sql::close_to_others(database)).await?;
        self.inside(database, sql::hand_over(database)).await
    }

    /// Applies a specification to a database, in one transaction.
    pub(crate) async fn apply_spec(
        &mut self,
        database: &Name,
        was: &[Extension],
        spec: &DatabaseSpec,
    ) -> Result<()> {
        self.inside(database, sql::apply_spec(database, was, spec))
            .await
    }

    /// Creates a login for a database.
    pub(crate) async fn make_login(
        &mut self,
        login: &Name,
        owner: &Name,
        password: &SecretString,
    ) -> Result<()> {
        let kind = match self.role_is_there(login).await? {
            true => LoginState::Known,
            false => LoginState::New,
        };
        let verifier = password::verifier(password, password::salt());
        self.run(sql::make_login(kind, login, owner, &verifier))
            .await
    }

    /// Removes a role with its sessions and rights. Its objects in the heir's database are reassigned to the heir.
    pub(crate) async fn remove_role(&mut self, role: &Name, heir: Option<&Name>) -> Result<()> {
        if !self.role_is_there(role).await? {
            return Ok(());
        }
        self.run(sql::no_more_logins(role)).await?;
        self.end_sessions("usename", role).await?;
        for database in self.databases_with_things_of(role).await? {
            let heir = heir.filter(|it| it.as_str() == database);
            let options = self.options.clone().database(&database);
            inside(&options, sql::disown(role, heir)).await?;
        }
        let dropped = self.execute(sql::drop_role(role)).await;
        dropped.map_err(|error| match code_of(&error).as_deref() {
            Some(STILL_NEEDED) => Error::transient(
                "The role made something while it was removed; repeat the request.",
            )
            .because(error),
            _ => explain(error),
        })
    }

    /// Removes a database, ending its sessions.
    pub(crate) async fn remove_database(&mut self, database: &Name) -> Result<()> {
        if !self.database_is_there(database).await? {
            return Ok(());
        }
        let version = self.version().await?;
        match sql::drop_database(database, version) {
            DropMethod::Forced(sql) => self.run(sql).await,
            DropMethod::ByHand { close, drop } => {
                self.run(close).await?;
                self.end_sessions("datname", database).await?;
                self.run(drop).await
            }
        }
    }

    /// Logins of bindings that still belong to an owner, left by failed binds.
    pub(crate) async fn logins_of(&mut self, owner: &Name) -> Result<Vec<Name>> {
        let query = "SELECT member.rolname::text FROM pg_auth_members \
                     JOIN pg_roles owner ON owner.oid = roleid \
                     JOIN pg_roles member ON member.oid = member WHERE owner.rolname = $1";
        let names = self.names(query, owner).await?;
        let names = names.into_iter().filter_map(|it| Name::try_from(it).ok());
        Ok(names.filter(Name::is_of_a_binding).collect())
    }

    /// Closes the connection; without this it is closed when dropped.
    pub(crate) async fn close(self) {
        let _ = timeout(CONNECT_WITHIN, self.connection.close()).await;
    }

    async fn role_is_there(&mut self, role: &Name) -> Result<bool> {
        let query = "SELECT count(*) FROM pg_roles WHERE rolname = $1";
        Ok(self.count(query, role.as_str()).await? > 0)
    }

    async fn database_is_there(&mut self, database: &Name) -> Result<bool> {
        let query = "SELECT count(*) FROM pg_database WHERE datname = $1";
        Ok(self.count(query, database.as_str()).await? > 0)
    }

    async fn version(&mut self) -> Result<i32> {
        let query = "SELECT current_setting('server_version_num')::int";
        answered(sqlx::query_scalar(query).fetch_one(&mut self.connection))
            .await
            .map_err(explain)
    }

    /// Ends all sessions of a role, or in a database, and waits until they and their temporary objects are gone.
    async fn end_sessions(&mut self, column: &'static str, name: &Name) -> Result<()> {
        let query = match column {
            "usename" => {
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = $1"
            }
            _ => "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = $1",
        };
        for _ in 0..LEAVE_WITHIN {
            if self.count(query, name.as_str()).await? == 0 {
                return Ok(());
            }
            sleep(LEAVE_LOOK_EVERY).await;
        }
        Err(Error::transient(
            "Sessions in the database do not end; repeat the request in a minute.",
        ))
    }

    /// Databases in which a role owns objects or has rights.
    async fn databases_with_things_of(&mut self, role: &Name) -> Result<Vec<String>> {
        let query = "SELECT DISTINCT datname::text FROM pg_shdepend \
                     JOIN pg_roles ON pg_roles.oid = refobjid \
                     JOIN pg_database ON pg_database.oid = \
                       CASE dbid WHEN 0 THEN objid ELSE dbid END \
                     WHERE refclassid = 'pg_authid'::regclass AND datallowconn AND rolname = $1";
        self.names(query, role).await
    }

    async fn count(&mut self, query: &'static str, name: &str) -> Result<i64> {
        let query = sqlx::query_scalar(query).bind(name);
        answered(query.fetch_one(&mut self.connection))
            .await
            .map_err(explain)
    }

    async fn names(&mut self, query: &'static str, name: &Name) -> Result<Vec<String>> {
        let query = sqlx::query_scalar(query).bind(name.as_str());
        answered(query.fetch_all(&mut self.connection))
            .await
            .map_err(explain)
    }

    async fn inside(&mut self, database: &Name, sql: String) -> Result<()> {
        let options = self.options.clone().database(database.as_str());
        inside(&options, sql).await
    }

    async fn run(&mut self, sql: String) -> Result<()> {
        self.execute(sql).await.map_err(explain)
    }

    async fn execute(&mut self, sql: String) -> std::result::Result<(), sqlx::Error> {
        execute(&mut self.connection, sql).await
    }
}

async fn connect(options: &PgConnectOptions) -> Result<PgConnection> {
    match timeout(CONNECT_WITHIN, options.connect()).await {
        Ok(connected) => connected.map_err(explain),
        Err(_) => Err(away()),
    }
}

/// Runs statements in another database, and disconnects.
async fn inside(options: &PgConnectOptions, sql: String) -> Result<()> {
    let mut connection = connect(options).await?;
    let result = execute(&mut connection, sql).await.map_err(explain);
    let _ = timeout(CONNECT_WITHIN, connection.close()).await;
    result
}

/// Runs statements; several in one text are one transaction. They are safe: they come from `sql.rs`.
async fn execute(
    connection: &mut PgConnection,
    sql: String,
) -> std::result::Result<(), sqlx::Error> {
    let statements = sqlx::raw_sql(AssertSqlSafe(sql));
    answered(statements.execute(connection)).await.map(|_| ())
}

async fn answered<T>(
    answer: impl Future<Output = std::result::Result<T, sqlx::Error>>,
) -> std::result::Result<T, sqlx::Error> {
    match timeout(ANSWER_WITHIN, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())),
    }
}

fn or_is_there(made: std::result::Result<(), sqlx::Error>) -> Result<()> {
    match made {
        Err(error) if code_of(&error).is_some_and(|it| ALREADY_THERE.contains(&it.as_str())) => {
            Ok(())
        }
        other => other.map_err(explain),
    }
}

fn code_of(error: &sqlx::Error) -> Option<String> {
    Some(error.as_database_error()?.code()?.into_owned())
}
