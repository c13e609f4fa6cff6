//! Databases for stores in a MariaDB or MySQL server of the tests, and connections that bypass the
//! stores.
//!
//! Not here: starting it (`sutler-servers`).

use secrecy::SecretString;
use sqlx::ConnectOptions as _;
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection};
use std::str::FromStr as _;
use sutler_servers::{Server, mariadb};

/// The server of this run; `None`, after a message, if there is none.
pub(crate) fn shared() -> Option<&'static Server> {
    mariadb::shared()
}

/// A server for one test, which may stop it.
pub(crate) fn own() -> Option<Server> {
    mariadb::own(sutler_servers::Demands::default())
}

pub(crate) async fn connect(server: &Server) -> MySqlConnection {
    connect_to(&server.admin_url().url()).await
}

async fn connect_to(url: &str) -> MySqlConnection {
    let options = MySqlConnectOptions::from_str(url).expect("a URL");
    let options = options.disable_statement_logging();
    options.connect().await.expect("a connection")
}

/// The URL of a store in this database, through this port.
pub(crate) fn url(server: &Server, name: &str, port: u16) -> SecretString {
    server.admin_url().through(port).at(name).url().into()
}

/// A database, and a connection that bypasses the store.
pub(crate) struct TestDatabase {
    pub(crate) db: MySqlConnection,
    pub(crate) name: String,
}

impl TestDatabase {
    /// An empty database.
    pub(crate) async fn on(server: &Server) -> Self {
        let fresh = server.fresh_database();
        Self {
            db: connect_to(&fresh.url()).await,
            name: fresh.path,
        }
    }
}
