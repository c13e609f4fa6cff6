//! A bundle that is an image, run as containers: its keys and users in a Redis server are counted there, and
//! tried.

use super::fixture::Fixture;
use super::kill_loop::{Coverage, KillLoop, Victim};
use super::lifecycles::{ServiceUnderTest, run_until_no_kill};
use super::run_log::{self, RunRecord};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use sutler_servers::podman::{self, Podman};
use sutler_servers::{Demands, PASSWORD, Server, ServerUrl};

/// Time limit of one response.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);

/// Creates are idempotent: the server adds a member to a set once. The run also records itself in the server,
/// and locks its instance there.
const SCRIPT: &str = r#"instance=$(sed -n 's/.*"_apb_service_instance_id":"\([^"]*\)".*/\1/p' "$SUTLER_VARS_FILE")
tell() { printf 'AUTH PASSWORD\r\n%b\r\nQUIT\r\n' "$*" | nc 127.0.0.1 PORT; }
run="$SUTLER_OPERATION $SUTLER_ATTEMPT"
case $(tell "SET lock:$instance 1 NX") in *-1*) alone=beside-another;; *) alone=alone;; esac
tell "RPUSH ledger \"begins $1 $run $SUTLER_IDEMPOTENCY_KEY $alone\""
case $1 in
provision) tell "SADD databases $instance\r\nSET limit:$instance 5"
  printf '{"database":"%s"}' "$instance" > "$SUTLER_RESULT_DIR/state.json";;
update) tell "SET limit:$instance 7";;
bind) word=$(head -c 16 /dev/urandom | md5sum | cut -c1-32)
  tell "ACL SETUSER $instance reset on >$word ~* +@all"
  printf '{"username":"%s","password":"%s"}' "$instance" "$word" > "$SUTLER_RESULT_DIR/credentials.json";;
unbind) tell "ACL DELUSER $instance";;
deprovision) tell "SREM databases $instance\r\nDEL limit:$instance";;
*) exit 8;;
esac
tell "RPUSH ledger \"ends $run 0\"\r\nDEL lock:$instance"
"#;

const MANIFEST: &str = "name: counted
description: Counts in a server.
bindable: true
plans:
  - name: small
    description: One.
    parameters:
      - {name: limit, type: integer, default: 5, updatable: true}
";

/// A server for one lifecycle.
struct Keys {
    server: Server,
    engine: &'static Podman,
    /// Folder of the broker that owns the containers.
    folder: std::path::PathBuf,
}

/// Whether server and engine are available; reports it if not.
pub(super) fn is_available() -> bool {
    podman::shared().is_some_and(Podman::is_own)
        && sutler_servers::redis::own(Demands::default()).is_some()
}

/// Runs lifecycles of instances of the bundle.
pub(super) fn run_all(victim: Victim, coverage: &Arc<Coverage>) {
    let folder = super::fixture::folder();
    let keys = Keys {
        server: sutler_servers::redis::own(Demands::default()).expect("it was there"),
        engine: podman::shared().expect("it was there"),
        folder: folder.path().to_owned(),
    };
    let port = keys.server.admin_url().port.to_string();
    let script = SCRIPT.replace("PORT", &port).replace("PASSWORD", PASSWORD);
    let image = keys.engine.image(&format!("counted-{port}"), &script);
    let bundle = folder.path().join("bundles/counted");
    fs::create_dir_all(&bundle).expect("a folder");
    fs::write(
        bundle.join("bundle.yml"),
        format!("{MANIFEST}image: {image}\n"),
    )
    .expect("a file");
    let socket = keys.engine.socket.display();
    let engine = format!("  container: {{socket: '{socket}', network: host}}\n");
    let kill_loop = KillLoop::new(victim, coverage.clone()).with_engine();
    let fixture = Fixture::new(folder, &engine, Path::new("/usr/bin"), kill_loop);
    run_until_no_kill(fixture, &keys, victim);
}

impl ServiceUnderTest for Keys {
    fn parameters(&self) -> [Value; 2] {
        [json!({ "limit": 5 }), json!({ "limit": 7 })]
    }

    fn check(&self, action: &str, credentials: &Value) {
        let databases = self.run_command("SMEMBERS databases");
        let gone = action == "deprovision";
        assert_eq!(databases.len(), usize::from(!gone), "after {action}");
        let users = self.run_command("ACL USERS").len();
        assert_eq!(
            users,
            if action == "bind" { 2 } else { 1 },
            "after {action}"
        );
        let limits = self.run_command("KEYS limit:*").len();
        assert_eq!(limits, usize::from(!gone), "after {action}");
        assert_eq!(
            self.can_log_in(credentials),
            action == "bind",
            "after {action}"
        );
    }

    fn leftovers(&self) -> Vec<String> {
        let label = format!("label=sutler.owner={}", self.owner());
        let listed = self.engine.podman(&["ps", "-aq", "--filter", &label]);
        listed.lines().map(|id| format!("container {id}")).collect()
    }

    fn take_runs(&self) -> Vec<RunRecord> {
        let lines = self.run_command("LRANGE ledger 0 -1");
        self.run_command("DEL ledger");
        run_log::read(&lines.join("\n"))
    }
}

impl Keys {
    fn owner(&self) -> String {
        let host = fs::read_to_string(self.folder.join("kept/host"));
        host.expect("a name").trim().to_owned()
    }

    fn run_command(&self, command: &str) -> Vec<String> {
        let output = run_command(self.server.admin_url(), "default", PASSWORD, command);
        output.expect("the administrator may ask")
    }

    fn can_log_in(&self, credentials: &Value) -> bool {
        let text = |name: &str| credentials[name].as_str().unwrap_or_default();
        let (user, password) = (text("username"), text("password"));
        run_command(self.server.admin_url(), user, password, "PING").is_some()
    }
}

/// Sends a command; returns the words of the response without their lengths, or `None` if the login is
/// refused.
fn run_command(at: &ServerUrl, user: &str, password: &str, command: &str) -> Option<Vec<String>> {
    let mut stream = TcpStream::connect((at.host.as_str(), at.port)).expect("it listens");
    stream
        .set_read_timeout(Some(ANSWERS_WITHIN))
        .expect("a time");
    let text = format!("AUTH {user} {password}\r\n{command}\r\nQUIT\r\n");
    stream.write_all(text.as_bytes()).expect("it listens");
    let mut output = String::new();
    stream.read_to_string(&mut output).expect("it answers");
    let output = output.strip_prefix("+OK\r\n")?.strip_suffix("+OK\r\n")?;
    let is_length = |line: &&str| !line.starts_with(['*', '$', ':', '+']);
    Some(
        output
            .lines()
            .filter(is_length)
            .map(str::to_owned)
            .collect(),
    )
}
