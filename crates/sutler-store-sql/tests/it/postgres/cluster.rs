//! Schemas for stores in a PostgreSQL server of the tests, and connections that bypass the stores.
//!
//! Not here: starting it (`sutler-servers`).

use secrecy::SecretString;
use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use std::str::FromStr as _;
use std::sync::atomic::{AtomicU32, Ordering};
use sutler_servers::{Server, postgres};

/// The server of this run; `None`, after a message, if there is no PostgreSQL.
pub(crate) fn shared() -> Option<&'static Server> {
    postgres::shared()
}

/// A server for one test, which may stop it.
pub(crate) fn own() -> Option<Server> {
    postgres::own(sutler_servers::Demands::default())
}

pub(crate) async fn connect(server: &Server) -> PgConnection {
    let options = PgConnectOptions::from_str(&server.admin_url().url()).expect("a URL");
    let options = options.disable_statement_logging();
    options.connect().await.expect("a connection")
}

/// The URL of a store in this schema, through this port.
pub(crate) fn url(server: &Server, schema: &str, port: u16) -> SecretString {
    let mut place = server.admin_url().through(port);
    place.query = format!("sslmode=disable&options=-csearch_path%3D{schema}");
    place.url().into()
}

/// A schema, and a connection that bypasses the store.
pub(crate) struct TestDatabase {
    pub(crate) db: PgConnection,
    pub(crate) schema: String,
}

impl TestDatabase {
    /// An empty schema.
    pub(crate) async fn on(server: &Server) -> Self {
        static PLACES: AtomicU32 = AtomicU32::new(0);
        let number = PLACES.fetch_add(1, Ordering::Relaxed);
        let schema = format!("test_{}_{number}", std::process::id());
        let mut db = connect(server).await;
        let make = sqlx::AssertSqlSafe(format!("CREATE SCHEMA {schema}"));
        let made = sqlx::raw_sql(make).execute(&mut db).await;
        made.expect("a schema");
        Self { db, schema }
    }
}
