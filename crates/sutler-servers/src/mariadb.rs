//! MariaDB, or MySQL if that is installed.
//!
//! `SUTLER_TEST_MYSQL_URL` names a shared server instead; its user must be allowed to create databases.

use crate::installed::{MissingServer, find_programs};
use crate::server::{CommandLine, Demands, PASSWORD, Server, ServerKind, StartContext, Tls};
use crate::server_url::ServerUrl;
use std::io::Read as _;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

const PORT: u16 = 3306;
const ROOTS: [&str; 2] = ["/usr/sbin", "/usr/libexec"];
const USER: &str = "sutler";
/// Maximum time between a connection and the greeting of the server.
const GREETS_WITHIN: Duration = Duration::from_secs(30);

/// Server shared by all tests of this process; `None`, with a report, if it is not installed.
pub fn shared() -> Option<&'static Server> {
    static SHARED: OnceLock<Option<Server>> = OnceLock::new();
    let start = || match std::env::var("SUTLER_TEST_MYSQL_URL") {
        Ok(url) => Some(Server::at_url(Box::new(find()?), &url, PORT)),
        Err(_) => own(Demands::default()),
    };
    SHARED.get_or_init(start).as_ref()
}

/// A server for one test, which may stop it.
#[must_use]
pub fn own(demands: Demands) -> Option<Server> {
    Some(Server::start_own(Box::new(find()?), demands))
}

fn find() -> Option<MariaDb> {
    let found = find_mariadb().or_else(find_mysql);
    if found.is_none() {
        let missing = MissingServer {
            name: "mariadb",
            program: "mariadbd or mysqld",
            how: "apt-get install mariadb-server, or set SUTLER_TEST_MYSQL_URL",
            may_be: false,
        };
        missing.report();
    }
    found
}

fn find_mariadb() -> Option<MariaDb> {
    let folder = find_programs(&["mariadbd"], &ROOTS)?;
    let tools = find_programs(&["mariadb-install-db", "mariadb"], &[])?;
    Some(MariaDb {
        name: "mariadb",
        server: folder.join("mariadbd"),
        installer: Some(tools.join("mariadb-install-db")),
        client: tools.join("mariadb"),
    })
}

fn find_mysql() -> Option<MariaDb> {
    Some(MariaDb {
        name: "mysql",
        server: find_programs(&["mysqld"], &ROOTS)?.join("mysqld"),
        installer: None,
        client: find_programs(&["mysql"], &[])?.join("mysql"),
    })
}

/// Programs. MySQL initialises its data itself.
struct MariaDb {
    name: &'static str,
    server: PathBuf,
    installer: Option<PathBuf>,
    client: PathBuf,
}

impl ServerKind for MariaDb {
    fn name(&self) -> &'static str {
        self.name
    }

    fn users(&self) -> &'static [&'static str] {
        &["mysql", "nobody"]
    }

    fn prepare(&self, context: &StartContext<'_>) {
        let dir = context.dir;
        let data = format!("--datadir={}", dir.path("data"));
        // A starting server clears its directory for temporary tables, so the directory must not be shared.
        let tables = format!("--tmpdir={}", dir.folder().display());
        let mut arguments = vec!["--no-defaults", &data, &tables];
        match &self.installer {
            Some(installer) => {
                arguments.push("--auth-root-authentication-method=normal");
                arguments.push("--skip-test-db");
                dir.run(installer, &arguments);
            }
            None => {
                arguments.push("--initialize-insecure");
                dir.run(&self.server, &arguments);
            }
        }
    }

    fn command_line(&self, context: &StartContext<'_>) -> CommandLine {
        let dir = context.dir;
        // Executed at every start, so it must be repeatable; one statement per line.
        let first = format!(
            "CREATE USER IF NOT EXISTS '{USER}'@'%' IDENTIFIED BY '{PASSWORD}';\n\
             GRANT ALL ON *.* TO '{USER}'@'%' WITH GRANT OPTION;\n"
        );
        let mut arguments = vec![
            "--no-defaults".to_owned(),
            format!("--datadir={}", dir.path("data")),
            format!("--port={}", context.port),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--socket={}", dir.path("socket")),
            format!("--tmpdir={}", dir.folder().display()),
            format!("--pid-file={}", dir.path("pid")),
            format!("--init-file={}", dir.private("first.sql", &first)),
            "--skip-name-resolve".to_owned(),
            "--max-connections=300".to_owned(),
            "--innodb-flush-log-at-trx-commit=2".to_owned(),
            "--skip-log-bin".to_owned(),
        ];
        if let Some(files) = context.certificates {
            arguments.push(format!("--ssl-cert={}", files.certificate));
            arguments.push(format!("--ssl-key={}", files.key));
        }
        if let (Some(files), Tls::Both) = (context.certificates, context.demands.tls) {
            arguments.push(format!("--ssl-ca={}", files.authority));
        }
        CommandLine {
            program: self.server.clone(),
            arguments,
            variables: Vec::new(),
            signal: "KILL",
        }
    }

    /// The server listens before it accepts logins; then it sends its greeting.
    fn answers(&self, context: &StartContext<'_>) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", context.port)) else {
            return false;
        };
        let patient = stream.set_read_timeout(Some(GREETS_WITHIN));
        patient.is_ok() && stream.read_exact(&mut [0]).is_ok()
    }

    fn server_url(&self, context: &StartContext<'_>) -> ServerUrl {
        let query = match context.demands.tls {
            Tls::Off => "?ssl-mode=DISABLED",
            Tls::Server | Tls::Both => "",
        };
        let port = context.port;
        let url = format!("mysql://{USER}:{PASSWORD}@127.0.0.1:{port}/mysql{query}");
        ServerUrl::of(&url, PORT)
    }

    fn create_database(&self, at: &ServerUrl, name: &str) -> String {
        let mut client = Command::new(&self.client);
        client.args(["--no-defaults", "--protocol=TCP", "-h", &at.host]);
        client.args(["-P", &at.port.to_string()]);
        if let Some((name, password)) = &at.user {
            client.args(["-u", name]);
            client.env("MYSQL_PWD", password.as_deref().unwrap_or_default());
        }
        let make = format!("CREATE DATABASE {name}");
        let ended = client.args(["-e", &make]).stdin(Stdio::null()).output();
        let ended = ended.expect("the client runs");
        let message = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{}: {message}", self.name);
        name.to_owned()
    }
}
