//! A MariaDB or MySQL server of the tests' own, and databases in it for stores.

use crate::server::{Home, Keeper, free_port, programs, say, skip, until};
use rustix::process::Signal;
use secrecy::SecretString;
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlSslMode};
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, Row as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::path::PathBuf;
use std::str::FromStr as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

static SHARED: OnceLock<Option<Cluster>> = OnceLock::new();
static PLACES: AtomicU32 = AtomicU32::new(0);

/// A server.
pub(crate) struct Cluster {
    options: MySqlConnectOptions,
    own: Option<Own>,
}

struct Own {
    arguments: Vec<String>,
    home: Home,
    program: PathBuf,
    port: u16,
    keeper: Mutex<Option<Keeper>>,
}

impl Cluster {
    /// The server of this run; `None` if there is none here, which is said.
    pub(crate) async fn shared() -> Option<&'static Self> {
        let starting = tokio::task::spawn_blocking(|| {
            SHARED.get_or_init(|| match std::env::var("SUTLER_TEST_MYSQL_URL") {
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
            options: MySqlConnectOptions::from_str(url).expect("a URL of MySQL"),
            own: None,
        }
    }

    fn start_own(arguments: fn(&Home) -> Vec<String>) -> Option<Self> {
        let roots = ["/usr/sbin", "/usr/libexec"];
        let mariadb = programs(&["mariadbd"], &roots).zip(programs(&["mariadb-install-db"], &[]));
        let mysql = programs(&["mysqld"], &roots);
        if mariadb.is_none() && mysql.is_none() {
            let how = "apt-get install mariadb-server, or set SUTLER_TEST_MYSQL_URL";
            skip("MariaDB or MySQL", how);
            return None;
        }
        let home = Home::new(&["mysql", "nobody"]);
        let data = format!("--datadir={}/data", home.folder.display());
        // A server that starts clears its folder for temporary tables, whoever else uses it.
        let tables = format!("--tmpdir={}", home.folder.display());
        let program = if let Some((folder, tools)) = mariadb {
            let authentication = "--auth-root-authentication-method=normal";
            let make = [
                "--no-defaults",
                &data,
                &tables,
                authentication,
                "--skip-test-db",
            ];
            home.run(&tools.join("mariadb-install-db"), &make);
            folder.join("mariadbd")
        } else {
            let program = mysql?.join("mysqld");
            home.run(
                &program,
                &["--no-defaults", &data, &tables, "--initialize-insecure"],
            );
            program
        };
        let own = Own {
            arguments: arguments(&home),
            home,
            program,
            port: free_port(),
            keeper: Mutex::new(None),
        };
        own.start();
        let options = MySqlConnectOptions::new()
            .host("127.0.0.1")
            .port(own.port)
            .username("root")
            .ssl_mode(MySqlSslMode::Disabled);
        Some(Self {
            options,
            own: Some(own),
        })
    }

    async fn announce(&self) {
        let mut db = self.connect().await;
        let version = db.fetch_one("SELECT CAST(VERSION() AS CHAR)").await;
        let version: String = version.expect("a version").get_unchecked(0);
        say(&format!("store mysql: ran against {version}"));
        drop(db.close().await);
    }

    pub(crate) async fn connect(&self) -> MySqlConnection {
        let options = self.options.clone().disable_statement_logging();
        options.connect().await.expect("a connection")
    }

    pub(crate) fn address(&self) -> SocketAddr {
        let at = (self.options.get_host(), self.options.get_port());
        let mut found = at.to_socket_addrs().expect("a host");
        found.next().expect("an address")
    }

    /// An empty database.
    pub(crate) async fn place(&self) -> Place {
        let number = PLACES.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{number}", std::process::id());
        let mut db = self.connect().await;
        let make = format!("CREATE DATABASE {name}; USE {name}");
        let make = sqlx::raw_sql(sqlx::AssertSqlSafe(make));
        db.execute(make).await.expect("a database");
        Place { db, name }
    }

    /// The URL of a store in this database, through this port.
    pub(crate) fn url(&self, name: &str, port: u16) -> SecretString {
        let options = self.options.clone().host("127.0.0.1").port(port);
        let url = options.database(name).to_url_lossy();
        let mark = if url.as_str().contains('?') { '&' } else { '?' };
        format!("{url}{mark}ssl-mode=DISABLED").into()
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

    /// Stops it where it is, or lets it go on.
    pub(crate) fn freeze(&self, signal: Signal) {
        let own = self.own.as_ref().expect("a server of its own");
        let keeper = own.keeper.lock().expect("nobody panicked");
        keeper.as_ref().expect("it runs").signal_all(signal);
    }
}

impl Own {
    fn start(&self) {
        let folder = self.home.folder.display();
        let arguments = [
            "--no-defaults".to_owned(),
            format!("--datadir={folder}/data"),
            format!("--port={}", self.port),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--socket={folder}/socket"),
            format!("--tmpdir={folder}"),
            format!("--pid-file={folder}/pid"),
            "--skip-name-resolve".to_owned(),
            "--max-connections=300".to_owned(),
            "--innodb-flush-log-at-trx-commit=2".to_owned(),
            "--skip-log-bin".to_owned(),
        ];
        let all = arguments.iter().chain(&self.arguments);
        let arguments: Vec<&str> = all.map(String::as_str).collect();
        let keeper = self.home.keep(&self.program, &arguments, "KILL");
        *self.keeper.lock().expect("nobody panicked") = Some(keeper);
        until("an answer of the server", || {
            TcpStream::connect(("127.0.0.1", self.port)).ok()
        });
    }
}

/// A database, and a connection for looking behind a store's back.
pub(crate) struct Place {
    pub(crate) db: MySqlConnection,
    pub(crate) name: String,
}
