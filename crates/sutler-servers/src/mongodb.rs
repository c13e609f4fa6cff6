//! MongoDB: a replica set of one or three members, or a standalone server, which no store accepts.
//!
//! Not packaged by distributions. Found on the PATH, or by `SUTLER_TEST_MONGOD` (with the libraries it needs in
//! the same
//! directory); `SUTLER_TEST_MONGODB_URL` names a shared replica set instead. Also contains the part of the
//! protocol
//! that initiates a replica set.

use crate::installed::{MissingServer, find_programs};
use crate::server::{CommandLine, Demands, PASSWORD, Server, ServerKind, StartContext, Tls};
use crate::server_url::ServerUrl;
use crate::wait::until;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

const PORT: u16 = 27017;
/// Maximum time of one response.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);
/// Name of all replica sets.
const SET: &str = "rs0";
/// Time after which members of three elect a new primary, in milliseconds. On a busy machine a shorter silence
/// means
/// nothing.
const ELECTION_MS: i32 = 3000;

/// Server shared by all tests of this process; `None`, with a report, if it is not installed.
pub fn shared() -> Option<&'static Server> {
    static SHARED: OnceLock<Option<Server>> = OnceLock::new();
    let start = || match std::env::var("SUTLER_TEST_MONGODB_URL") {
        Ok(url) => {
            let given = MongoDb {
                program: PathBuf::new(),
                role: ServerRole::One,
            };
            Some(Server::at_url(Box::new(given), &url, PORT))
        }
        Err(_) => own(Demands::default()),
    };
    SHARED.get_or_init(start).as_ref()
}

/// A replica set of one member for one test, which may stop it.
#[must_use]
pub fn own(demands: Demands) -> Option<Server> {
    start(ServerRole::One, demands)
}

/// A standalone server.
#[must_use]
pub fn standalone() -> Option<Server> {
    start(ServerRole::Alone, Demands::default())
}

/// A replica set of three members, and the URL of all of them.
#[must_use]
pub fn three() -> Option<(Vec<Server>, String)> {
    let mut members = Vec::new();
    for _ in 0..3 {
        members.push(start(ServerRole::Member, Demands::default())?);
    }
    let hosts: Vec<String> = members
        .iter()
        .map(|it| format!("127.0.0.1:{}", it.admin_url().port))
        .collect();
    initiate_set(members[0].admin_url().port, &hosts);
    let url = format!("mongodb://{}/three?replicaSet={SET}", hosts.join(","));
    Some((members, url))
}

/// Creates a user with [`PASSWORD`] and access to one database; returns the URL of that user. A server without
/// authentication rejects wrong passwords nevertheless.
///
/// # Panics
/// If the server rejects the command.
#[must_use]
pub fn make_user(server: &Server, name: &str, database: &str) -> ServerUrl {
    let role = document(&[text("role", "readWrite"), text("db", database)]);
    let make = document(&[
        text("createUser", name),
        text("pwd", PASSWORD),
        nested(4, "roles", &document(&[nested(3, "0", &role)])),
        text("$db", database),
    ]);
    let answer = ask(server.admin_url().port, &make).expect("an answer");
    let output = String::from_utf8_lossy(&answer);
    assert!(!output.contains("errmsg"), "no user: {output}");
    server.admin_url().at(database).with_user(name, PASSWORD)
}

/// Whether the member at this port is the primary.
#[must_use]
pub fn is_primary(port: u16) -> bool {
    greeting(port).is_some_and(|it| has_true_field(&it, "isWritablePrimary"))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ServerRole {
    Alone,
    One,
    Member,
}

struct MongoDb {
    /// Empty for a server at a given URL.
    program: PathBuf,
    role: ServerRole,
}

fn start(role: ServerRole, demands: Demands) -> Option<Server> {
    let named = std::env::var_os("SUTLER_TEST_MONGOD").map(PathBuf::from);
    let on_path = || find_programs(&["mongod"], &[]).map(|folder| folder.join("mongod"));
    let Some(program) = named.filter(|it| it.is_file()).or_else(on_path) else {
        let missing = MissingServer {
            name: "mongodb",
            program: "mongod",
            how: "put mongod 8.0 or later on the PATH, or set SUTLER_TEST_MONGODB_URL",
            may_be: true,
        };
        missing.report();
        return None;
    };
    Some(Server::start_own(
        Box::new(MongoDb { program, role }),
        demands,
    ))
}

impl ServerKind for MongoDb {
    fn name(&self) -> &'static str {
        "mongodb"
    }

    fn users(&self) -> &'static [&'static str] {
        &["mongodb", "nobody"]
    }

    /// Members with authentication identify each other by a key.
    fn prepare(&self, context: &StartContext<'_>) {
        let _ = context.dir.private("keyfile", "aKeyForOneTest");
    }

    fn command_line(&self, context: &StartContext<'_>) -> CommandLine {
        let mut arguments = Vec::new();
        let mut add = |flag: &str, value: &str| {
            arguments.extend([flag.to_owned(), value.to_owned()]);
        };
        add("--dbpath", &context.dir.folder().display().to_string());
        add("--port", &context.port.to_string());
        add("--bind_ip", "127.0.0.1");
        add("--wiredTigerCacheSizeGB", "0.25");
        add("--setParameter", "enableTestCommands=1");
        if self.role != ServerRole::Alone {
            add("--replSet", SET);
            add("--oplogSize", "64");
        }
        if context.demands.arguments.iter().any(|it| it == "--auth") {
            add("--keyFile", &context.dir.path("keyfile"));
        }
        if let Some(files) = context.certificates {
            // The replica set is initiated without TLS.
            add("--tlsMode", "preferTLS");
            add("--tlsCertificateKeyFile", &files.both);
            add("--tlsCAFile", &files.authority);
        }
        if context.certificates.is_some() && context.demands.tls != Tls::Both {
            arguments.push("--tlsAllowConnectionsWithoutCertificates".to_owned());
        }
        let library_dir = self.program.parent().map(|it| it.display().to_string());
        let mut variables = Vec::new();
        if std::env::var_os("SUTLER_TEST_MONGOD").is_some() {
            variables.push((
                "LD_LIBRARY_PATH".to_owned(),
                library_dir.unwrap_or_default(),
            ));
            let tunables = "glibc.pthread.rseq=0".to_owned();
            variables.push(("GLIBC_TUNABLES".to_owned(), tunables));
        }
        CommandLine {
            program: self.program.clone(),
            arguments,
            variables,
            signal: "KILL",
        }
    }

    /// Ready if it accepts writes, if its set is not initiated yet, or if that does not matter for its role.
    fn answers(&self, context: &StartContext<'_>) -> bool {
        greeting(context.port).is_some_and(|it| match self.role {
            ServerRole::Member => true,
            ServerRole::Alone | ServerRole::One => {
                has_true_field(&it, "isWritablePrimary") || has_true_field(&it, "isreplicaset")
            }
        })
    }

    fn after_start(&self, context: &StartContext<'_>) {
        if self.role == ServerRole::One {
            initiate_set(context.port, &[format!("127.0.0.1:{}", context.port)]);
        }
    }

    /// A direct connection, which ignores the names of members: a proxy may be in between.
    fn server_url(&self, context: &StartContext<'_>) -> ServerUrl {
        let port = context.port;
        let url = format!("mongodb://127.0.0.1:{port}/?directConnection=true");
        ServerUrl::of(&url, PORT)
    }

    /// Databases are created by their first write.
    fn create_database(&self, _at: &ServerUrl, name: &str) -> String {
        name.to_owned()
    }
}

/// Initiates a replica set of these members, through one of them.
fn initiate_set(port: u16, hosts: &[String]) {
    let mut members = Vec::new();
    for (n, host) in (0..).zip(hosts) {
        let member = document(&[int("_id", n), text("host", host)]);
        members.push(nested(3, &n.to_string(), &member));
    }
    let settings = document(&[int("electionTimeoutMillis", ELECTION_MS)]);
    let set = document(&[
        text("_id", SET),
        nested(4, "members", &document(&members)),
        nested(3, "settings", &settings),
    ]);
    let initiate = document(&[nested(3, "replSetInitiate", &set), text("$db", "admin")]);
    let answer = ask(port, &initiate).expect("an answer");
    let output = String::from_utf8_lossy(&answer);
    assert!(!output.contains("errmsg"), "no replica set: {output}");
    until("a primary", || is_primary(port).then_some(()));
}

fn greeting(port: u16) -> Option<Vec<u8>> {
    ask(port, &document(&[int("hello", 1), text("$db", "admin")]))
}

/// Whether a response has this field with the value true.
fn has_true_field(answer: &[u8], name: &str) -> bool {
    let field = [&[8], name.as_bytes(), &[0, 1]].concat();
    answer.windows(field.len()).any(|it| it == field)
}

/// Sends a command on a connection of its own; returns the whole response.
fn ask(port: u16, command: &[u8]) -> Option<Vec<u8>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(ANSWERS_WITHIN)).ok()?;
    let length = i32::try_from(21 + command.len()).ok()?;
    let head = [length, 1, 0, 2013, 0].map(i32::to_le_bytes).concat();
    let message = [&head[..], &[0], command].concat();
    stream.write_all(&message).ok()?;
    let mut size = [0; 4];
    stream.read_exact(&mut size).ok()?;
    let rest = usize::try_from(i32::from_le_bytes(size))
        .ok()?
        .checked_sub(4)?;
    let mut answer = vec![0; rest];
    stream.read_exact(&mut answer).ok()?;
    Some(answer)
}

fn int(name: &str, value: i32) -> Vec<u8> {
    [&[16], name.as_bytes(), &[0], &value.to_le_bytes()].concat()
}

fn text(name: &str, value: &str) -> Vec<u8> {
    let length = i32::try_from(value.len() + 1).expect("short").to_le_bytes();
    [&[2], name.as_bytes(), &[0], &length, value.as_bytes(), &[0]].concat()
}

/// A nested document (3) or array (4).
fn nested(kind: u8, name: &str, content: &[u8]) -> Vec<u8> {
    [&[kind], name.as_bytes(), &[0], content].concat()
}

fn document(fields: &[Vec<u8>]) -> Vec<u8> {
    let fields = fields.concat();
    let length = i32::try_from(fields.len() + 5).expect("short");
    [&length.to_le_bytes()[..], &fields, &[0]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_written_as_the_protocol_has_it() {
        let hello = document(&[int("hello", 1)]);
        assert_eq!(hello, b"\x10\0\0\0\x10hello\0\x01\0\0\0\0");
        let named = document(&[text("a", "b")]);
        assert_eq!(named, b"\x0e\0\0\0\x02a\0\x02\0\0\0b\0\0");
        assert!(has_true_field(
            b"..\x08isreplicaset\0\x01..",
            "isreplicaset"
        ));
        assert!(!has_true_field(b"..\x08isreplicaset\0\0..", "isreplicaset"));
    }
}
