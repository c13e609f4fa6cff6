//! etcd: one member, without authentication until a test enables it.
//!
//! `SUTLER_TEST_ETCD_URL` names a shared server instead.

use crate::http::HttpRequest;
use crate::installed::{MissingServer, find_programs};
use crate::server::{CommandLine, Demands, PASSWORD, Server, ServerKind, StartContext, Tls};
use crate::server_url::ServerUrl;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::OnceLock;

const PORT: u16 = 2379;

/// Server shared by all tests of this process; `None`, with a report, if it is not installed.
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

/// Enables authentication: `root`, and a user with access to one prefix only. Both have [`PASSWORD`]. Returns the
/// URL
/// of the second user.
///
/// # Panics
/// If the server rejects a request.
#[must_use]
pub fn demand_passwords(server: &Server, user: &str, prefix: &str) -> ServerUrl {
    let end = {
        let mut bytes = prefix.as_bytes().to_vec();
        *bytes.last_mut().expect("a prefix is not empty") += 1;
        STANDARD.encode(&bytes)
    };
    let start = STANDARD.encode(prefix);
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
        let request = HttpRequest::new("POST", &format!("/v3/auth/{path}"))
            .with_body("application/json", body);
        let response = request.send(("127.0.0.1", server.admin_url().port));
        let is_fine = response.as_ref().is_ok_and(|it| it.status == 200);
        assert!(is_fine, "{path}: {response:?}");
    }
    server.admin_url().with_user(user, PASSWORD).at(prefix)
}

/// Path of the program; empty for a server at a given URL.
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

    /// etcd listens before it has a leader. With TLS, only the port is checked.
    fn answers(&self, context: &StartContext<'_>) -> bool {
        if context.certificates.is_some() {
            return TcpStream::connect(("127.0.0.1", context.port)).is_ok();
        }
        let health = HttpRequest::new("GET", "/health").send(("127.0.0.1", context.port));
        health.is_ok_and(|it| it.text().contains("true"))
    }

    fn server_url(&self, context: &StartContext<'_>) -> ServerUrl {
        ServerUrl::of(&format!("etcd://127.0.0.1:{}", context.port), PORT)
    }

    fn create_database(&self, _at: &ServerUrl, name: &str) -> String {
        name.to_owned()
    }
}
