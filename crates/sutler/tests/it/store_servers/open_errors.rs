//! A store that cannot be opened: the message has the reason and a suggested fix. The messages are in
//! `open-error-*.txt`.

use super::ServerKind;
use super::fixture::Fixture;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use sutler_servers::{Demands, PASSWORD, ServerUrl, free_port};

/// Responds 404 to every request.
pub(super) struct NotFoundServer(SocketAddr);

impl NotFoundServer {
    pub(super) fn at_any_path() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it is bound");
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let _ = stream.read(&mut [0; 4096]);
                let head = "HTTP/1.1 404 Not Found\r\nConnection: close\r\n";
                let _ = write!(
                    stream,
                    "{head}Content-Length: 19\r\n\r\n404 page not found\n"
                );
            }
        });
        Self(address)
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.0
    }
}

/// The message of the program if it cannot open the store, without names and ports that differ between runs.
fn open_error(server_url: &ServerUrl) -> String {
    let fixture = Fixture::over(server_url, "");
    let mut command = fixture.command();
    let ended = command
        .args([
            "broker",
            "--config",
            "sutler.yaml",
            "--listen",
            "127.0.0.1:0",
        ])
        .output();
    let ended = ended.expect("the program runs");
    let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(1), "{stderr}");
    for secret in [PASSWORD, "wr0ng"] {
        assert!(!stderr.contains(secret), "{stderr}");
    }
    let mut lines: Vec<&str> = stderr.lines().filter(|it| !is_log(it)).collect();
    lines.retain(|line| !line.is_empty());
    let lines: Vec<String> = lines.into_iter().map(without_why).collect();
    let lines = lines
        .join("\n")
        .replace(&server_url.port.to_string(), "PORT");
    match server_url.path.starts_with("fresh_") {
        true => lines.replace(&server_url.path, "DATABASE"),
        false => lines,
    }
}

/// Systems have different texts for an unknown host name.
fn without_why(line: &str) -> String {
    const LOOKUP: &str = "failed to lookup address information: ";
    let Some((before, after)) = line.split_once(LOOKUP) else {
        return line.to_owned();
    };
    let rest = after.split_once(';').map_or("", |(_, rest)| rest);
    let mark = if rest.is_empty() { "" } else { ";" };
    format!("{before}{LOOKUP}WHY{mark}{rest}")
}

/// Whether a line begins with a time.
fn is_log(line: &str) -> bool {
    line.starts_with("20") && line.contains('T')
}

pub(super) fn each_fault_of_a_url_or_server_is_described_with_a_fix(kind: &ServerKind) {
    let Some(server) = (kind.own)(Demands::default()) else {
        return;
    };
    let right = (kind.guarded)(&server);
    let (user, _) = right.user.clone().expect("a user");
    let mut faults = vec![
        ("a wrong password", right.with_user(&user, "wr0ng")),
        ("a port where nobody is", right.through(free_port())),
        ("a database that is not there", right.at("no_such_database")),
    ];
    let mut elsewhere = right.clone();
    elsewhere.host = "no-such-host.invalid".to_owned();
    faults.push(("a host that is not there", elsewhere));
    let mut text = String::new();
    let mut record = |what: &str, server_url: &ServerUrl| {
        text.push_str(&format!("--- {what}\n{}\n", open_error(server_url)));
    };
    for (what, server_url) in &faults {
        record(what, server_url);
    }
    (kind.older)(&mut |server_url| record("a server that is too old", server_url));
    assert!(text == kind.refused, "it is now:\n{text}");
}
