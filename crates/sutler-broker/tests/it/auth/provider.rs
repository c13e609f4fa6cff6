//! OpenID providers in separate processes: a strict one, and one that forges tokens (`tests/oidc/`).
//!
//! Their packages are installed by `./test`. Without them, and without `node`, tests report that they are
//! skipped; where `CI` is `true` that is a failure.

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tempfile::TempDir;

/// Time limit for every step of a provider.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

/// A running provider; it ends with the test.
pub(super) struct Provider {
    pub issuer: String,
    process: Child,
    answers: Receiver<String>,
    _folder: TempDir,
}

impl Provider {
    /// The provider that follows the rules.
    pub(super) fn strict() -> Option<Self> {
        Self::start("strict.mjs", include_str!("../../oidc/strict.mjs"))
    }

    /// The provider that signs and forges tokens on request.
    pub(super) fn forger() -> Option<Self> {
        Self::start("forger.mjs", include_str!("../../oidc/forger.mjs"))
    }

    fn start(name: &str, script: &str) -> Option<Self> {
        let Some(packages) = packages() else {
            let notice = "skipped: no OpenID provider; install node, then run ./test --tools";
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{notice}");
            eprintln!("{notice}");
            return None;
        };
        // In the directory of the packages, so that node finds them.
        let folder = tempfile::tempdir_in(packages).expect("a folder for the script");
        let path = folder.path().join(name);
        fs::write(&path, script).expect("the script can be written");
        let mut process = Command::new("node")
            .arg(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("node starts");
        let output = process.stdout.take().expect("its output is ours");
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut provider = Self {
            issuer: String::new(),
            process,
            answers,
            _folder: folder,
        };
        let ready = provider.answer();
        let issuer = ready["issuer"].as_str().expect("it says its name");
        provider.issuer = issuer.to_owned();
        Some(provider)
    }

    fn answer(&self) -> Value {
        let line = self.answers.recv_timeout(STEP_TIMEOUT);
        let line = line.expect("the provider answers");
        serde_json::from_str(&line).expect("an answer is JSON")
    }

    /// Sends a command to the forger.
    pub(super) fn command(&mut self, what: &str, more: &Value) -> String {
        let mut command = json!({ "do": what });
        let fields = command.as_object_mut().expect("an object");
        fields.extend(more.as_object().cloned().unwrap_or_default());
        let input = self.process.stdin.as_mut().expect("its input is ours");
        writeln!(input, "{command}").expect("the forger listens");
        self.answer().as_str().expect("a text").to_owned()
    }

    /// A valid token except for these claims.
    pub(super) fn token(&mut self, claims: &Value) -> String {
        self.command("token", &json!({ "claims": claims }))
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Directory of the installed packages, if they and `node` exist. Builds in another directory, such as
/// those of the mutants, pass it in the environment.
fn packages() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_TARGET_TMPDIR")).join("oidc");
    let folder = std::env::var_os("SUTLER_TEST_OIDC").map_or_else(beside, PathBuf::from);
    let node = Command::new("node").arg("--version").output();
    let runs = node.is_ok_and(|it| it.status.success());
    (runs && folder.join("node_modules/oidc-provider").exists()).then_some(folder)
}
