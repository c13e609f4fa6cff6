//! A broker with one bundle whose actions wait for the test, and the places that are searched for secrets.

use crate::http_request::BrokerRequest;
use crate::process::{Broker, folder, sutler};
use crate::secrets_do_not_leak::{Canaries, canary, forms};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Files with contents of the operator.
const PUT_THERE: [&str; 3] = ["sutler.yaml", "sutler.key", "master"];
/// Users that no run has: an unused one, and one of other runs.
const OTHERS: [u32; 2] = [54_321, 70_999];

/// Folder of a bundle.
pub(super) struct BundleFolder {
    folder: PathBuf,
    marks: PathBuf,
}

impl BundleFolder {
    pub(super) fn write(&self, name: &str, text: &str, program: bool) {
        let path = self.folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, text).expect("a file");
        let mode = if program { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("permissions");
    }

    /// Lines of a script that mark its position, and wait until the test releases it.
    pub(super) fn hold_in_shell(&self, action: &str) -> String {
        let (held, go) = (self.mark("held", action), self.mark("go", action));
        // Ends the wait if the test is over.
        format!(
            "touch {} || true\nwhile ! test -e {}; do test -d {} || exit 9; sleep 0.05; done",
            held.display(),
            go.display(),
            self.marks.display()
        )
    }

    pub(super) fn mark(&self, what: &str, action: &str) -> PathBuf {
        self.marks.join(format!("{what}-{action}"))
    }
}

/// A running broker.
pub(super) struct Fixture {
    here: TempDir,
    /// Outside of the searched folder.
    words: TempDir,
    bundle: BundleFolder,
    broker: Broker,
}

impl Fixture {
    /// Starts a broker at the most detailed log level, with the bundle that `write` creates.
    pub(super) fn start(name: &str, format: &str, write: impl Fn(&BundleFolder)) -> Self {
        let (here, words) = (folder(), folder());
        let open = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions");
        };
        open(here.path(), 0o755);
        open(words.path(), 0o755);
        let marks = words.path().join("marks");
        fs::create_dir(&marks).expect("a folder");
        // Runs have separate users.
        open(&marks, 0o777);
        let bundle = BundleFolder {
            folder: here.path().join("bundles").join(name),
            marks,
        };
        write(&bundle);
        let secret = here.path().join("master");
        fs::write(&secret, canary("an operators secret")).expect("a file");
        open(&secret, 0o600);
        let config = format!(
            "auth: none\nstore: {{url: 'sqlite:sutler.db'}}\n\
             admin: {{users: [{{name: op, password: t0ps3cret}}]}}\n\
             log: {{level: trace, format: {format}}}\naudit: {{file: audit.log}}\n\
             bundles:\n  folder: bundles\n  work: work\n  secrets:\n  - name: server\n    \
             keys: [{{key: master, value: '${{file:master}}'}}]\n"
        );
        fs::write(here.path().join("sutler.yaml"), config).expect("a file");
        let broker = Broker::start(here.path(), &["broker", "--config", "sutler.yaml"]);
        Self {
            here,
            words,
            bundle,
            broker,
        }
    }

    pub(super) fn here(&self) -> &Path {
        self.here.path()
    }

    #[track_caller]
    pub(super) fn expect_status(&self, request: BrokerRequest, expected: u16) -> String {
        let answer = request.send(self.broker.address());
        assert_eq!(answer.status, expected, "{}", answer.text);
        answer.text
    }

    pub(super) fn until_held(&self, action: &str) {
        let held = self.bundle.mark("held", action);
        eventually(&format!("{action} is held"), || held.exists().then_some(()));
    }

    pub(super) fn release(&self, action: &str) {
        fs::write(self.bundle.mark("go", action), "").expect("a file");
    }

    /// Polls until the response contains a text.
    pub(super) fn until_polled(&self, path: &str, word: &str) -> String {
        let poll = BrokerRequest::get(&format!("/v2/service_instances/{path}/last_operation"));
        eventually(&format!("a poll says {word}"), || {
            let text = self.expect_status(poll.clone(), 200);
            text.contains(word).then_some(text)
        })
    }

    pub(super) fn until_done(&self, path: &str, state: &str) -> String {
        self.until_polled(path, &format!("\"state\":\"{state}\""))
    }

    pub(super) fn until_no_run_is_left(&self) {
        let runs = self.here().join("work/runs");
        eventually("no run is left", || {
            let left = fs::read_dir(&runs).expect("a folder").count();
            (left == 0).then_some(())
        });
    }

    /// Output of `sutler admin`, including errors.
    pub(super) fn admin(&self, words: &[&str]) -> String {
        let url = format!("http://{}/admin", self.broker.address());
        let output = sutler(self.here())
            .args(["admin", "--url", &url, "--user", "op"])
            .args(words)
            .env("SUTLER_ADMIN_PASSWORD", "t0ps3cret")
            .output()
            .expect("the program runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {stderr}");
        format!("{}{stderr}", String::from_utf8_lossy(&output.stdout))
    }

    /// Files below the working directory that contain a secret and can be read by a user.
    pub(super) fn grep(&self, canaries: &Canaries, user: Option<u32>) -> String {
        let words = self.words.path().join("words");
        let mut text = Vec::new();
        for (_, value) in &canaries.planted {
            for form in forms(value) {
                text.extend(form);
                text.push(b'\n');
            }
        }
        fs::write(&words, text).expect("a file");
        let mut command = Command::new("grep");
        // Not on a command line, where other users could read them.
        command.args(["-rlaF", "-f"]).arg(&words);
        command.arg(self.here().join("work")).current_dir("/");
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
        let output = command.output().expect("grep runs");
        let status = output.status.code();
        assert!(matches!(status, Some(0..=2)), "{status:?}");
        let complaints = String::from_utf8_lossy(&output.stderr);
        let shut_out = complaints.contains("Permission denied");
        assert!(shut_out || user.is_none(), "nothing is kept from {user:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Fails if a file name contains a secret, or if others can read a file of a run.
    pub(super) fn search_names_and_modes(&self, canaries: &Canaries) {
        let mut names = 0;
        each_below(&self.here().join("work"), &mut |path| {
            canaries.search(path.to_string_lossy().as_bytes(), "the name of a file");
            names += 1;
        });
        assert!(names > 10, "nothing is there");
        each_below(&self.here().join("work/runs"), &mut |path| {
            let Ok(found) = fs::symlink_metadata(path) else {
                return;
            };
            let open = found.mode() & if found.is_dir() { 0o066 } else { 0o077 };
            let empty = found.is_file() && found.len() == 0;
            assert!(open == 0 || empty, "{}: {:o}", path.display(), found.mode());
        });
    }

    /// Searches the database file and its write-ahead log.
    pub(super) fn search_store(&self, canaries: &Canaries) {
        for name in ["sutler.db", "sutler.db-wal"] {
            let bytes = fs::read(self.here().join(name)).expect("a database");
            canaries.search(&bytes, name);
        }
    }

    /// Stops it, and returns everything it logged. Its files exist until this returns.
    pub(super) fn ended(&self) -> String {
        self.broker.signal("TERM");
        self.broker.until_log_closed().join("\n")
    }
}

/// Fails if files or processes of a run reveal anything to other users.
pub(super) fn everybody_else_reads_nothing(fixture: &Fixture, canaries: &Canaries) {
    let root = fs::metadata("/proc/self").expect("this process").uid() == 0;
    if !root {
        assert!(std::env::var_os("CI").is_none(), "run this as root");
        eprintln!("skipped: only root can ask as another user");
        return;
    }
    for user in OTHERS {
        let found = fixture.grep(canaries, Some(user));
        assert_eq!(found, "", "the user {user} reads it");
        let mut command = Command::new("sh");
        command.args(["-c", "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline"]);
        let seen = command.uid(user).gid(user).output().expect("a shell runs");
        assert!(!seen.stdout.is_empty(), "there are processes");
        canaries.search(&seen.stdout, "what others see of processes");
    }
}

/// Searches every process of the machine, as root.
pub(super) fn search_processes(canaries: &Canaries) {
    for entry in fs::read_dir("/proc").expect("processes").flatten() {
        for what in ["cmdline", "environ"] {
            // The process may have ended.
            if let Ok(bytes) = fs::read(entry.path().join(what)) {
                canaries.search(&bytes, &format!("{}/{what}", entry.path().display()));
            }
        }
    }
}

/// Searches everything below a folder except files of the operator; returns the searched names.
pub(super) fn search_tree(folder: &Path, canaries: &Canaries) -> BTreeSet<String> {
    let mut searched = BTreeSet::new();
    each_below(folder, &mut |path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_file() && !PUT_THERE.contains(&&*name) {
            let bytes = fs::read(path).expect("it can be read");
            canaries.search(&bytes, &path.display().to_string());
            searched.insert(name.into_owned());
        }
    });
    searched
}

/// Pipes and links are listed but not followed.
fn each_below(folder: &Path, callback: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        callback(&entry.path());
        if entry.file_type().is_ok_and(|it| it.is_dir()) {
            each_below(&entry.path(), callback);
        }
    }
}

/// Waits until there is a value.
fn eventually<T>(what: &str, callback: impl Fn() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = callback() {
            return found;
        }
        assert!(begun.elapsed() < TIMEOUT, "waited in vain until {what}");
        std::thread::sleep(POLL_INTERVAL);
    }
}
