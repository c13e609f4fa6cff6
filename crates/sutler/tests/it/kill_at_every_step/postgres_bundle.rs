//! The PostgreSQL bundle, run as processes: its databases and roles are counted in the server, and tried.

use super::fixture::Fixture;
use super::kill_loop::{Coverage, KillLoop, Victim};
use super::lifecycles::{ServiceUnderTest, run_until_no_kill};
use super::run_log::{ENTRY, RunLog, RunRecord};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use sutler_servers::{Demands, Server, ServerUrl, find_programs};

const ROOTS: [&str; 3] = ["/usr/lib/postgresql", "/usr/libexec/postgresql", "/usr"];

/// A server for one lifecycle: everything in it belongs to that lifecycle.
struct Databases {
    server: Server,
    run_log: RunLog,
}

/// Resources of the bundle in a server.
#[derive(Debug, PartialEq, Eq)]
struct ServerCounts {
    databases: usize,
    roles: usize,
    /// Connections that each database may have.
    limits: Vec<String>,
}

/// Whether the server can be started here; reports it if not.
pub(super) fn is_available() -> bool {
    find_programs(&["initdb", "psql"], &ROOTS).is_some()
        || sutler_servers::postgres::own(Demands::default()).is_some()
}

/// Folder of the PostgreSQL programs.
fn folder_of_programs() -> PathBuf {
    find_programs(&["initdb", "psql"], &ROOTS).unwrap_or_else(|| PathBuf::from("/usr/bin"))
}

/// Runs lifecycles of instances of the bundle.
pub(super) fn run_all(victim: Victim, coverage: &Arc<Coverage>) {
    let folder = super::fixture::folder();
    let databases = Databases {
        server: sutler_servers::postgres::own(Demands::default()).expect("it was there"),
        run_log: write_bundle(folder.path()),
    };
    let secret = format!(
        "  secrets:\n  - name: postgresql\n    bundles: [postgresql]\n    keys: [{{key: admin_url, value: '{}'}}]\n",
        databases.server.admin_url().url()
    );
    let kill_loop = KillLoop::new(victim, coverage.clone());
    let fixture = Fixture::new(folder, &secret, &folder_of_programs(), kill_loop);
    run_until_no_kill(fixture, &databases, victim);
}

/// Writes the shipped bundle, with an entry point that records its runs.
fn write_bundle(folder: &Path) -> RunLog {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bundles/postgresql");
    let bundle = folder.join("bundles/postgresql");
    fs::create_dir_all(&bundle).expect("a folder");
    let manifest = fs::read_to_string(shipped.join("bundle.yml")).expect("a manifest");
    let counted = manifest.replace("entrypoint: [./run]", &format!("entrypoint: [./{ENTRY}]"));
    assert_ne!(
        counted, manifest,
        "the entry point is written in another way now"
    );
    fs::write(bundle.join("bundle.yml"), counted).expect("a file");
    fs::copy(shipped.join("run"), bundle.join("run")).expect("a program");
    RunLog::new(folder, &bundle)
}

/// Expected contents of the server after an action: one database and its owner, and a role for the binding.
fn expected(action: &str) -> ServerCounts {
    let (databases, roles, limit) = match action {
        "provision" => (1, 1, "5"),
        "bind" => (1, 2, "7"),
        "update" | "unbind" => (1, 1, "7"),
        _ => (0, 0, ""),
    };
    ServerCounts {
        databases,
        roles,
        limits: vec![limit.to_owned(); databases],
    }
}

impl ServiceUnderTest for Databases {
    fn parameters(&self) -> [Value; 2] {
        [json!({ "connections": 5 }), json!({ "connections": 7 })]
    }

    fn check(&self, action: &str, credentials: &Value) {
        assert_eq!(self.count(), expected(action), "after {action}");
        let let_in = self.can_log_in(credentials);
        assert_eq!(let_in, action == "bind", "after {action}");
    }

    fn leftovers(&self) -> Vec<String> {
        Vec::new()
    }

    fn take_runs(&self) -> Vec<RunRecord> {
        self.run_log.take()
    }
}

impl Databases {
    fn count(&self) -> ServerCounts {
        let rows = |sql: &str| {
            let output = run_sql(self.server.admin_url(), sql).expect("the administrator may ask");
            output.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let limits = rows("SELECT datconnlimit FROM pg_database WHERE datname LIKE 'sutler%'");
        let roles = rows("SELECT rolname FROM pg_roles WHERE rolname LIKE 'sutler%'");
        ServerCounts {
            databases: limits.len(),
            roles: roles.len(),
            limits,
        }
    }

    /// Whether credentials can create and drop a table.
    fn can_log_in(&self, credentials: &Value) -> bool {
        let text = |name: &str| credentials[name].as_str().unwrap_or_default();
        let at = self.server.admin_url().at(text("database"));
        let at = at.with_user(text("username"), text("password"));
        run_sql(&at, "CREATE TABLE mine (n int); DROP TABLE mine").is_ok()
    }
}

fn run_sql(at: &ServerUrl, sql: &str) -> Result<String, String> {
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
