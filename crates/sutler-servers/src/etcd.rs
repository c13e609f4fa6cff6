//! etcd: one member, which lets everybody in until it is told to ask for passwords.
//!
//! `SUTLER_TEST_ETCD_URL` names one to share instead.

use crate::installed::{MissingServer, find_programs};
use crate::server::{CommandLine, Demands, PASSWORD, Server, ServerKind, StartContext, Tls};
use crate::server_url::ServerUrl;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

const PORT: u16 = 2379;
/// How long one answer may take.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);

/// The server that all tests of this process share; `None` if there is none here, which is said.
pub fn shared() -> Option<&'static Server> {
    static SHARED: OnceLock<Option<Server>> = OnceLock::new();
    let start = || match std::env::var("SUTLER_TEST_ETCD_URL") {
        Ok(url) => Some(Server::at_url(Box::new(Etcd::default()), &url, PORT)),
        Err(_) => own(Demands::default()),
    };
    SHARED.get_or_init(start).as_ref()
}

/// A server for one test, which may stop it.
#[must_use]
pub fn own(demands: Demands) -> Option<Server> {
    let Some(folder) = find_programs(&["etcd"], &[]) else {
        let missing = MissingServer {
            name: "etcd",
            program: "etcd",
            how: "apt-get install etcd-server, or set SUTLER_TEST_ETCD_URL",
            may_be: false,
        };
        missing.report();
        return None;
    };
    let program = folder.join("etcd");
    Some(Server::start_own(Box::new(Etcd { program }), demands))
}

/// Has it ask for users from now on: `root`, and one more who may use one prefix only. Both have
/// [`PASSWORD`]. How the second one gets in.
///
/// # Panics
/// If the server refuses any of it.
#[must_use]
pub fn demand_passwords(server: &Server, user: &str, prefix: &str) -> ServerUrl {
    let end = {
        let mut bytes = prefix.as_bytes().to_vec();
        *bytes.last_mut().expect("a prefix is not empty") += 1;
        base64(&bytes)
    };
    let start = base64(prefix.as_bytes());
    let added = |name: &str| format!(r#"{{"name":"{name}","password":"{PASSWORD}"}}"#);
    let range = format!(r#"{{"permType":"READWRITE","key":"{start}","range_end":"{end}"}}"#);
    for (path, body) in [
        ("user/add", added("root")),
        ("role/add", r#"{"name":"root"}"#.to_owned()),
        ("user/grant", r#"{"user":"root","role":"root"}"#.to_owned()),
        ("user/add", added(user)),
        ("role/add", r#"{"name":"keeper"}"#.to_owned()),
        (
            "role/grant",
            format!(r#"{{"name":"keeper","perm":{range}}}"#),
        ),
        (
            "user/grant",
            format!(r#"{{"user":"{user}","role":"keeper"}}"#),
        ),
        ("enable", "{}".to_owned()),
    ] {
        let answer = ask(
            server.admin_url().port,
            "POST",
            &format!("/v3/auth/{path}"),
            &body,
        );
        let is_fine = answer.as_ref().is_some_and(|it| it.contains(" 200 "));
        assert!(is_fine, "{path}: {answer:?}");
    }
    server.admin_url().with_user(user, PASSWORD).at(prefix)
}

/// Where the program is; nowhere for a server that is given.
#[derive(Default)]
struct Etcd {
    program: PathBuf,
}

impl ServerKind for Etcd {
    fn name(&self) -> &'static str {
        "etcd"
    }

    fn users(&self) -> &'static [&'static str] {
        &["etcd", "nobody"]
    }

    fn prepare(&self, _ground: &StartContext<'_>) {}

    fn command_line(&self, context: &StartContext<'_>) -> CommandLine {
        let scheme = if context.certificates.is_some() {
            "https"
        } else {
            "http"
        };
        let client = format!("{scheme}://127.0.0.1:{}", context.port);
        let peer = format!("http://127.0.0.1:{}", context.second_port);
        let mut arguments = Vec::new();
        let mut add = |flag: &str, value: &str| {
            arguments.extend([flag.to_owned(), value.to_owned()]);
        };
        add("--name", "test");
        add("--data-dir", &context.dir.path("data"));
        add("--listen-peer-urls", &peer);
        add("--initial-advertise-peer-urls", &peer);
        add("--initial-cluster", &format!("test={peer}"));
        add("--listen-client-urls", &client);
        add("--advertise-client-urls", &client);
        if let Some(files) = context.certificates {
            add("--cert-file", &files.certificate);
            add("--key-file", &files.key);
        }
        if let (Some(files), Tls::Both) = (context.certificates, context.demands.tls) {
            add("--trusted-ca-file", &files.authority);
            arguments.push("--client-cert-auth".to_owned());
        }
        CommandLine {
            program: self.program.clone(),
            arguments,
            variables: Vec::new(),
            signal: "KILL",
        }
    }

    /// It listens before it has a leader. Behind TLS nobody can be asked from here.
    fn answers(&self, context: &StartContext<'_>) -> bool {
        if context.certificates.is_some() {
            return TcpStream::connect(("127.0.0.1", context.port)).is_ok();
        }
        let health = ask(context.port, "GET", "/health", "");
        health.is_some_and(|it| it.contains("true"))
    }

    fn server_url(&self, context: &StartContext<'_>) -> ServerUrl {
        ServerUrl::of(&format!("etcd://127.0.0.1:{}", context.port), PORT)
    }

    fn create_database(&self, _at: &ServerUrl, name: &str) -> String {
        name.to_owned()
    }
}

/// A request on a connection of its own: the head of the answer, and its body.
fn ask(port: u16, method: &str, path: &str, body: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(ANSWERS_WITHIN)).ok()?;
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// As etcd's gateway wants keys.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let at = |n: usize| u32::from(chunk.get(n).copied().unwrap_or_default());
        let bits = (at(0) << 16) | (at(1) << 8) | at(2);
        for n in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * n)) as usize & 63];
            text.push(if n > chunk.len() {
                '='
            } else {
                char::from(letter)
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_as_the_gateway_wants_them() {
        for (plain, encoded) in [("mine", "bWluZQ=="), ("minf", "bWluZg=="), ("abc", "YWJj")] {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
    }
}
