//! A PostgreSQL server of the tests' own, and places in it for stores.

use crate::server::{Home, Keeper, free_port, programs, say, skip, until};
use rustix::process::Signal;
use secrecy::SecretString;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions as _, Connection as _, Row as _};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

static SHARED: OnceLock<Option<Cluster>> = OnceLock::new();
static PLACES: AtomicU32 = AtomicU32::new(0);

/// A server.
pub(crate) struct Cluster {
    options: PgConnectOptions,
    own: Option<Own>,
}

struct Own {
    arguments: Vec<String>,
    home: Home,
    folder: PathBuf,
    port: u16,
    keeper: std::sync::Mutex<Option<Keeper>>,
}

impl Cluster {
    /// The server of this run; `None` if there is no PostgreSQL here, which is said.
    pub(crate) async fn shared() -> Option<&'static Self> {
        let starting = tokio::task::spawn_blocking(|| {
            SHARED.get_or_init(|| match std::env::var("SUTLER_TEST_POSTGRES_URL") {
                Ok(url) => Some(Self::given(&url)),
                Err(_) => Self::start_own(|_| Vec::new()),
            });
        });
        starting.await.expect("a server");
        let cluster = SHARED.get()?.as_ref()?;
        if PLACES.fetch_add(1, Ordering::Relaxed) == 0 {
            cluster.announce().await;
        }
        Some(cluster)
    }

    /// A server for one test, which may stop it.
    pub(crate) async fn own() -> Option<Self> {
        Self::own_with(|_| Vec::new()).await
    }

    /// The same, with arguments of its own.
    pub(crate) async fn own_with(arguments: fn(&Home) -> Vec<String>) -> Option<Self> {
        let starting = tokio::task::spawn_blocking(move || Self::start_own(arguments));
        starting.await.expect("a server")
    }

    fn given(url: &str) -> Self {
        Self {
            options: PgConnectOptions::from_str(url).expect("a URL of PostgreSQL"),
            own: None,
        }
    }

    fn start_own(arguments: fn(&Home) -> Vec<String>) -> Option<Self> {
        let needed = ["initdb", "postgres", "pg_isready"];
        let roots = ["/usr/lib/postgresql", "/usr/libexec/postgresql"];
        let Some(folder) = programs(&needed, &roots) else {
            let how = "apt-get install postgresql, or set SUTLER_TEST_POSTGRES_URL";
            skip("PostgreSQL", how);
            return None;
        };
        let home = Home::new(&["postgres", "nobody"]);
        home.run(
            &folder.join("initdb"),
            &[
                "-A",
                "trust",
                "-U",
                "postgres",
                "--no-sync",
                "-E",
                "UTF8",
                "-D",
                "data",
                "--locale=C.UTF-8",
            ],
        );
        let own = Own {
            arguments: arguments(&home),
            home,
            folder,
            port: free_port(),
            keeper: std::sync::Mutex::new(None),
        };
        own.start();
        let options = PgConnectOptions::new_without_pgpass()
            .host("127.0.0.1")
            .port(own.port)
            .username("postgres")
            .database("postgres");
        Some(Self {
            options,
            own: Some(own),
        })
    }

    async fn announce(&self) {
        let mut db = self.connect().await;
        let version = sqlx::query("SHOW server_version").fetch_one(&mut db).await;
        let version: String = version.expect("a version").get(0);
        say(&format!("store postgres: ran against PostgreSQL {version}"));
        drop(db.close().await);
    }

    pub(crate) async fn connect(&self) -> PgConnection {
        let options = self.options.clone().disable_statement_logging();
        options.connect().await.expect("a connection")
    }

    pub(crate) fn address(&self) -> SocketAddr {
        let at = (self.options.get_host(), self.options.get_port());
        let mut found = at.to_socket_addrs().expect("a host");
        found.next().expect("an address")
    }

    /// An empty schema.
    pub(crate) async fn place(&self) -> Place {
        let number = PLACES.fetch_add(1, Ordering::Relaxed);
        let schema = format!("test_{}_{number}", std::process::id());
        let mut db = self.connect().await;
        let make = sqlx::AssertSqlSafe(format!("CREATE SCHEMA {schema}"));
        sqlx::raw_sql(make)
            .execute(&mut db)
            .await
            .expect("a schema");
        Place { db, schema }
    }

    /// The URL of a store in this schema, through this port.
    pub(crate) fn url(&self, schema: &str, port: u16) -> SecretString {
        let options = &self.options;
        let url = options.clone().host("127.0.0.1").port(port).to_url_lossy();
        let mark = if url.as_str().contains('?') { '&' } else { '?' };
        format!("{url}{mark}sslmode=disable&options=-csearch_path%3D{schema}").into()
    }

    /// Where its data is.
    pub(crate) fn folder(&self) -> &Path {
        let own = self.own.as_ref().expect("a server of its own");
        &own.home.folder
    }

    /// As a power cut would.
    pub(crate) fn stop(&self) {
        let own = self.own.as_ref().expect("a server of its own");
        let keeper = own.keeper.lock().expect("nobody panicked").take();
        keeper.expect("it runs").stop();
    }

    pub(crate) fn start(&self) {
        self.own.as_ref().expect("a server of its own").start();
    }

    /// Stops all of its processes where they are, or lets them go on.
    pub(crate) fn freeze(&self, signal: Signal) {
        let own = self.own.as_ref().expect("a server of its own");
        let keeper = own.keeper.lock().expect("nobody panicked");
        keeper.as_ref().expect("it runs").signal_all(signal);
    }
}

impl Own {
    fn start(&self) {
        let port = self.port.to_string();
        let mut arguments = vec!["-D", "data", "-p", &port];
        for setting in [
            "listen_addresses=127.0.0.1",
            "fsync=off",
            "unix_socket_directories=",
            "max_connections=300",
        ] {
            arguments.extend(["-c", setting]);
        }
        arguments.extend(self.arguments.iter().map(String::as_str));
        let keeper = self
            .home
            .keep(&self.folder.join("postgres"), &arguments, "QUIT");
        *self.keeper.lock().expect("nobody panicked") = Some(keeper);
        until("an answer of the server", || {
            let mut asks = self.home.command(&self.folder.join("pg_isready"));
            asks.args(["-q", "-h", "127.0.0.1", "-p", &port]);
            let answers = asks.status().expect("pg_isready runs").success();
            assert!(
                !self.home.log().contains("FATAL:  could not"),
                "{}",
                self.home.log()
            );
            answers.then_some(())
        });
    }
}

/// A schema, and a connection for looking behind a store's back.
pub(crate) struct Place {
    pub(crate) db: PgConnection,
    pub(crate) schema: String,
}
