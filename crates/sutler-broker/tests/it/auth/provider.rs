//! OpenID providers in processes of their own: a strict one, and one that forges (`tests/oidc/`).
//!
//! Their packages are installed by `./test`. Without them, and without `node`, tests say that they are
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
const PATIENCE: Duration = Duration::from_secs(60);

/// A provider at work; it ends with the test.
pub(super) struct Provider {
    pub issuer: String,
    process: Child,
    answers: Receiver<String>,
    _folder: TempDir,
}

impl Provider {
    /// The one that follows the rules.
    pub(super) fn strict() -> Option<Self> {
        Self::start("strict.mjs", include_str!("../../oidc/strict.mjs"))
    }

    /// The provider that signs and forges tokens on request.
    pub(super) fn forger() -> Option<Self> {
        Self::start("forger.mjs", include_str!("../../oidc/forger.mjs"))
    }

    fn start(name: &str, script: &str) -> Option<Self> {
        let Some(packages) = packages() else {
            let told = "skipped: no OpenID provider; install node, then run ./test --tools";
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{told}");
            eprintln!("{told}");
            return None;
        };
        // Beside the packages, so that node finds them.
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
        let line = self.answers.recv_timeout(PATIENCE);
        let line = line.expect("the provider answers");
        serde_json::from_str(&line).expect("an answer is JSON")
    }

    /// Gives an order to the forger.
    pub(super) fn order(&mut self, what: &str, more: &Value) -> String {
        let mut order = json!({ "do": what });
        let fields = order.as_object_mut().expect("an object");
        fields.extend(more.as_object().cloned().unwrap_or_default());
        let input = self.process.stdin.as_mut().expect("its input is ours");
        writeln!(input, "{order}").expect("the forger listens");
        self.answer().as_str().expect("a text").to_owned()
    }

    /// A good token, but for these claims.
    pub(super) fn token(&mut self, claims: &Value) -> String {
        self.order("token", &json!({ "claims": claims }))
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Where the packages are installed, if they are and there is something to run them with. Whoever
/// builds elsewhere, as the mutants do, is told the folder.
fn packages() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_TARGET_TMPDIR")).join("oidc");
    let folder = std::env::var_os("SUTLER_TEST_OIDC").map_or_else(beside, PathBuf::from);
    let node = Command::new("node").arg("--version").output();
    let runs = node.is_ok_and(|it| it.status.success());
    (runs && folder.join("node_modules/oidc-provider").exists()).then_some(folder)
}
