//! Redis with a password; tests add users by ACL.
//!
//! `SUTLER_TEST_REDIS_URL` names a shared server instead.

use crate::installed::{MissingServer, find_programs};
use crate::server::{CommandLine, Demands, PASSWORD, Server, ServerKind, StartContext};
use crate::server_url::ServerUrl;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

const PORT: u16 = 6379;
/// Maximum time of one response.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);

/// Server shared by all tests of this process; `None`, with a report, if it is not installed.
pub fn shared() -> Option<&'static Server> {
    static SHARED: OnceLock<Option<Server>> = OnceLock::new();
    let start = || match std::env::var("SUTLER_TEST_REDIS_URL") {
        Ok(url) => Some(Server::at_url(Box::new(Redis::default()), &url, PORT)),
        Err(_) => own(Demands::default()),
    };
    SHARED.get_or_init(start).as_ref()
}

/// A server for one test, which may stop it.
#[must_use]
pub fn own(demands: Demands) -> Option<Server> {
    let Some(folder) = find_programs(&["redis-server"], &["/usr/sbin"]) else {
        let missing = MissingServer {
            name: "redis",
            program: "redis-server",
            how: "apt-get install redis-server, or set SUTLER_TEST_REDIS_URL",
            may_be: false,
        };
        missing.report();
        return None;
    };
    let program = folder.join("redis-server");
    Some(Server::start_own(Box::new(Redis { program }), demands))
}

/// Path of the program; empty for a server at a given URL.
#[derive(Default)]
struct Redis {
    program: PathBuf,
}

impl ServerKind for Redis {
    fn name(&self) -> &'static str {
        "redis"
    }

    fn users(&self) -> &'static [&'static str] {
        &["redis", "nobody"]
    }

    fn prepare(&self, _ground: &StartContext<'_>) {}

    fn command_line(&self, context: &StartContext<'_>) -> CommandLine {
        let dir = context.dir;
        let mut settings = format!(
            "bind 127.0.0.1\ndir {}\nappendonly yes\nappendfsync no\nrequirepass {PASSWORD}\n",
            dir.folder().display()
        );
        match context.certificates {
            None => settings.push_str(&format!("port {}\n", context.port)),
            Some(files) => settings.push_str(&format!(
                "port 0\ntls-port {}\ntls-cert-file {}\ntls-key-file {}\ntls-ca-cert-file {}\n",
                context.port, files.certificate, files.key, files.authority
            )),
        }
        // Arguments are visible in the list of processes, so the password is in a file.
        let arguments = vec![dir.private("redis.conf", &settings)];
        CommandLine {
            program: self.program.clone(),
            arguments,
            variables: Vec::new(),
            signal: "KILL",
        }
    }

    fn answers(&self, context: &StartContext<'_>) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", context.port)) else {
            return false;
        };
        if context.certificates.is_some() {
            return true;
        }
        let mut reply = [0; 7];
        let responded = stream.set_read_timeout(Some(ANSWERS_WITHIN)).is_ok()
            && stream.write_all(b"PING\r\n").is_ok()
            && stream.read_exact(&mut reply).is_ok();
        // Ready if it asks for a password and has loaded its data.
        responded && &reply == b"-NOAUTH"
    }

    fn server_url(&self, context: &StartContext<'_>) -> ServerUrl {
        let port = context.port;
        let url = format!("redis://default:{PASSWORD}@127.0.0.1:{port}/0");
        ServerUrl::of(&url, PORT)
    }

    /// All tests share database 0; users are separated by the keys of their ACL.
    fn create_database(&self, at: &ServerUrl, _name: &str) -> String {
        at.path.clone()
    }
}
