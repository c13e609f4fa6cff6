//! PostgreSQL: any installed version, with passwords, over TCP only.
//!
//! `SUTLER_TEST_POSTGRES_URL` names a shared server instead; its user must be allowed to create databases.

use crate::installed::{MissingServer, find_programs};
use crate::server::{CommandLine, Demands, PASSWORD, Server, ServerKind, StartContext, Tls};
use crate::server_url::ServerUrl;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

const PORT: u16 = 5432;
const PROGRAMS: [&str; 4] = ["initdb", "postgres", "pg_isready", "psql"];
const ROOTS: [&str; 3] = ["/usr/lib/postgresql", "/usr/libexec/postgresql", "/usr"];

/// Server shared by all tests of this process; `None`, with a report, if it is not installed.
pub fn shared() -> Option<&'static Server> {
    static SHARED: OnceLock<Option<Server>> = OnceLock::new();
    let start = || match std::env::var("SUTLER_TEST_POSTGRES_URL") {
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

/// Executes statements in the database of a URL, as its user.
///
/// # Panics
/// If a statement fails; with the output.
pub fn execute(at: &ServerUrl, statements: &str) {
    find().expect("it was there").ask(at, statements);
}

fn find() -> Option<Postgres> {
    let find_programs = find_programs(&PROGRAMS, &ROOTS);
    if find_programs.is_none() {
        let missing = MissingServer {
            name: "postgres",
            program: "postgres",
            how: "apt-get install postgresql, or set SUTLER_TEST_POSTGRES_URL",
            may_be: false,
        };
        missing.report();
    }
    find_programs.map(|find_programs| Postgres { find_programs })
}

/// Directory of the programs.
struct Postgres {
    find_programs: PathBuf,
}

impl ServerKind for Postgres {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn users(&self) -> &'static [&'static str] {
        &["postgres", "nobody"]
    }

    fn prepare(&self, context: &StartContext<'_>) {
        let password = context.dir.private("password", PASSWORD);
        let mut arguments = vec!["-A", "scram-sha-256", "-U", "postgres", "--no-sync"];
        arguments.extend(["-E", "UTF8", "--locale=C.UTF-8", "-D", "data"]);
        arguments.extend(["--pwfile", &password]);
        context
            .dir
            .run(&self.find_programs.join("initdb"), &arguments);
    }

    fn command_line(&self, context: &StartContext<'_>) -> CommandLine {
        let mut settings: Vec<String> = [
            "listen_addresses=127.0.0.1",
            "fsync=off",
            "unix_socket_directories=",
            "max_connections=300",
        ]
        .map(str::to_owned)
        .into();
        if let Some(files) = context.certificates {
            settings.push("ssl=on".to_owned());
            settings.push(format!("ssl_cert_file={}", files.certificate));
            settings.push(format!("ssl_key_file={}", files.key));
        }
        if let (Some(files), Tls::Both) = (context.certificates, context.demands.tls) {
            settings.push(format!("ssl_ca_file={}", files.authority));
        }
        let port = context.port.to_string();
        let mut arguments = ["-D", "data", "-p", &port].map(str::to_owned).to_vec();
        for setting in settings {
            arguments.extend(["-c".to_owned(), setting]);
        }
        CommandLine {
            program: self.find_programs.join("postgres"),
            arguments,
            variables: Vec::new(),
            // Its sessions end with it; after SIGKILL they would keep using the data for a while.
            signal: "QUIT",
        }
    }

    fn answers(&self, context: &StartContext<'_>) -> bool {
        let mut asks = context.dir.command(&self.find_programs.join("pg_isready"));
        asks.args(["-q", "-h", "127.0.0.1", "-p", &context.port.to_string()]);
        asks.status().expect("pg_isready runs").success()
    }

    fn server_url(&self, context: &StartContext<'_>) -> ServerUrl {
        let query = match context.demands.tls {
            Tls::Off => "?sslmode=disable",
            Tls::Server | Tls::Both => "",
        };
        let port = context.port;
        let url = format!("postgres://postgres:{PASSWORD}@127.0.0.1:{port}/postgres{query}");
        ServerUrl::of(&url, PORT)
    }

    fn create_database(&self, at: &ServerUrl, name: &str) -> String {
        self.ask(at, &format!("CREATE DATABASE {name}"));
        name.to_owned()
    }
}

impl Postgres {
    /// Executes a statement.
    fn ask(&self, at: &ServerUrl, statement: &str) {
        let mut psql = Command::new(self.find_programs.join("psql"));
        if let Some((name, password)) = &at.user {
            psql.args(["-U", name]);
            psql.env("PGPASSWORD", password.as_deref().unwrap_or_default());
        }
        let ended = psql
            .args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", &at.host])
            .args(["-p", &at.port.to_string(), "-d", &at.path])
            .args(["-c", statement])
            .stdin(Stdio::null())
            .output()
            .expect("psql runs");
        let message = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "psql: {message}");
    }
}
