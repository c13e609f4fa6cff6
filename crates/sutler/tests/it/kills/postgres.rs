//! What is in the PostgreSQL server: counted there, and tried out.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use sutler_servers::{Demands, Place, Server, programs};

const ROOTS: [&str; 3] = ["/usr/lib/postgresql", "/usr/libexec/postgresql", "/usr"];

/// A server of a life's own: whatever is in it belongs to that life.
pub(super) struct Databases {
    server: Server,
}

/// What a server has of the bundle's making.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) databases: usize,
    pub(super) roles: usize,
    /// Connections that each database may have.
    pub(super) limits: Vec<String>,
}

/// Whether the server can be started here; if not, that is said.
pub(super) fn is_there() -> bool {
    programs(&["initdb", "psql"], &ROOTS).is_some()
        || sutler_servers::postgres::own(Demands::default()).is_some()
}

/// Where its programs are.
pub(super) fn folder_of_programs() -> PathBuf {
    programs(&["initdb", "psql"], &ROOTS).unwrap_or_else(|| PathBuf::from("/usr/bin"))
}

impl Databases {
    pub(super) fn new() -> Self {
        let server = sutler_servers::postgres::own(Demands::default()).expect("it was there");
        Self { server }
    }

    /// As its administrator.
    pub(super) fn url(&self) -> String {
        self.server.place().url()
    }

    pub(super) fn count(&self) -> Counted {
        let ask = |sql: &str| {
            let said = ask(self.server.place(), sql).expect("the administrator may ask");
            said.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let limits = ask("SELECT datconnlimit FROM pg_database WHERE datname LIKE 'sutler%'");
        let roles = ask("SELECT rolname FROM pg_roles WHERE rolname LIKE 'sutler%'");
        Counted {
            databases: limits.len(),
            roles: roles.len(),
            limits,
        }
    }

    /// Whether credentials are good for making a table and dropping it.
    pub(super) fn lets_in(&self, credentials: &Value) -> bool {
        let text = |name: &str| credentials[name].as_str().unwrap_or_default();
        let at = self.server.place().at(text("database"));
        let at = at.with_user(text("username"), text("password"));
        ask(&at, "CREATE TABLE mine (n int); DROP TABLE mine").is_ok()
    }
}

fn ask(at: &Place, sql: &str) -> Result<String, String> {
    let (user, password) = at.user.clone().unwrap_or_default();
    let ended = Command::new(folder_of_programs().join("psql"))
        .args([
            "-X",
            "-q",
            "-At",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            &at.host,
            "-c",
            sql,
        ])
        .args(["-p", &at.port.to_string(), "-d", &at.path, "-U", &user])
        .env("PGPASSWORD", password.unwrap_or_default())
        .stdin(Stdio::null())
        .output()
        .expect("psql runs");
    match ended.status.success() {
        true => Ok(String::from_utf8_lossy(&ended.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&ended.stderr).into_owned()),
    }
}
