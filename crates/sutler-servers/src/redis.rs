//! Redis, with a password; further users are made by ACL, as tests need them.
//!
//! `SUTLER_TEST_REDIS_URL` names one to share instead.

use crate::find::{Missing, programs};
use crate::place::Place;
use crate::server::{Demands, Ground, Line, PASSWORD, Recipe, Server};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

const PORT: u16 = 6379;
/// How long one answer may take.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);

/// The server that all tests of this process share; `None` if there is none here, which is said.
pub fn shared() -> Option<&'static Server> {
    static SHARED: OnceLock<Option<Server>> = OnceLock::new();
    let start = || match std::env::var("SUTLER_TEST_REDIS_URL") {
        Ok(url) => Some(Server::given(Box::new(Redis::default()), &url, PORT)),
        Err(_) => own(Demands::default()),
    };
    SHARED.get_or_init(start).as_ref()
}

/// A server for one test, which may stop it.
#[must_use]
pub fn own(demands: Demands) -> Option<Server> {
    let Some(folder) = programs(&["redis-server"], &["/usr/sbin"]) else {
        let missing = Missing {
            name: "redis",
            program: "redis-server",
            how: "apt-get install redis-server, or set SUTLER_TEST_REDIS_URL",
            may_be: false,
        };
        missing.tell();
        return None;
    };
    let program = folder.join("redis-server");
    Some(Server::start_own(Box::new(Redis { program }), demands))
}

/// Where the program is; nowhere for a server that is given.
#[derive(Default)]
struct Redis {
    program: PathBuf,
}

impl Recipe for Redis {
    fn name(&self) -> &'static str {
        "redis"
    }

    fn users(&self) -> &'static [&'static str] {
        &["redis", "nobody"]
    }

    fn prepare(&self, _ground: &Ground<'_>) {}

    fn line(&self, ground: &Ground<'_>) -> Line {
        let home = ground.home;
        let mut settings = format!(
            "bind 127.0.0.1\ndir {}\nappendonly yes\nappendfsync no\nrequirepass {PASSWORD}\n",
            home.folder().display()
        );
        match ground.certificates {
            None => settings.push_str(&format!("port {}\n", ground.port)),
            Some(files) => settings.push_str(&format!(
                "port 0\ntls-port {}\ntls-cert-file {}\ntls-key-file {}\ntls-ca-cert-file {}\n",
                ground.port, files.certificate, files.key, files.authority
            )),
        }
        // A password in the arguments would be in the list of processes.
        let arguments = vec![home.private("redis.conf", &settings)];
        Line {
            program: self.program.clone(),
            arguments,
            variables: Vec::new(),
            signal: "KILL",
        }
    }

    fn answers(&self, ground: &Ground<'_>) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", ground.port)) else {
            return false;
        };
        if ground.certificates.is_some() {
            return true;
        }
        let mut said = [0; 7];
        let asked = stream.set_read_timeout(Some(ANSWERS_WITHIN)).is_ok()
            && stream.write_all(b"PING\r\n").is_ok()
            && stream.read_exact(&mut said).is_ok();
        // It wants a password, and no longer loads its data.
        asked && &said == b"-NOAUTH"
    }

    fn place(&self, ground: &Ground<'_>) -> Place {
        let port = ground.port;
        let url = format!("redis://default:{PASSWORD}@127.0.0.1:{port}/0");
        Place::of(&url, PORT)
    }

    /// All share database 0: users are told apart by the keys that their ACL allows.
    fn make(&self, at: &Place, _name: &str) -> String {
        at.path.clone()
    }
}
