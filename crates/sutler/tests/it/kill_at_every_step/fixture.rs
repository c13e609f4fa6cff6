//! The folder of one broker, and the broker in it: restarted whenever it was killed.

use super::kill_loop::KillLoop;
use super::traced_broker::TracedBroker;
use crate::http_request::BrokerRequest;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Time limit of every wait.
const TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A folder that runs of other users can traverse.
pub(super) fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    folder
}

/// The folder of a broker, for all its starts.
pub(super) struct Fixture {
    folder: TempDir,
    /// `PATH` of its runs.
    programs: String,
    pub(super) kill_loop: Arc<KillLoop>,
    broker: Option<TracedBroker>,
    readers: Vec<JoinHandle<()>>,
}

impl Fixture {
    /// A fixture whose bundles are in the folder, with additional lines for its configuration.
    pub(super) fn new(folder: TempDir, more: &str, programs: &Path, kill_loop: KillLoop) -> Self {
        let config = format!(
            "auth: none\nstore: {{url: 'sqlite:one.db'}}\nbundles:\n  folder: bundles\n  work: kept\n{more}"
        );
        let path = folder.path().join("sutler.yaml");
        fs::write(&path, config).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");
        Self {
            programs: format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display()),
            folder,
            kill_loop: Arc::new(kill_loop),
            broker: None,
            readers: Vec::new(),
        }
    }

    /// Returns the running broker; starts one if necessary.
    fn broker(&mut self) -> &mut TracedBroker {
        if let Some(dead) = self.broker.take_if(|broker| broker.is_dead()) {
            self.readers.push(dead.into_reader());
        }
        while self.broker.is_none() {
            match TracedBroker::start(self.folder.path(), &self.programs, &self.kill_loop) {
                Ok(broker) => self.broker = Some(broker),
                Err(reader) => self.readers.push(reader),
            }
        }
        self.broker.as_mut().expect("it listens")
    }

    /// Repeats a request until a broker responds.
    pub(super) fn send_until_answered(&mut self, request: &BrokerRequest) -> (u16, Value) {
        let begun = Instant::now();
        loop {
            let address = self.broker().address.clone();
            if let Ok(answer) = request.try_send(&address)
                && let Some((_, body)) = answer.text.split_once("\r\n\r\n")
                && let Ok(body) = serde_json::from_str(body)
            {
                return (answer.status, body);
            }
            assert!(begun.elapsed() < TIMEOUT, "there is no answer");
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits until nothing is left of any run: no directory, no process, and none of the other leftovers.
    pub(super) fn until_nothing_is_left(&mut self, other: &dyn Fn() -> Vec<String>) {
        let begun = Instant::now();
        loop {
            self.broker();
            let mut left = self.directories();
            if left.is_empty() {
                left = [self.processes(), other()].concat();
            }
            if left.is_empty() {
                return;
            }
            assert!(begun.elapsed() < TIMEOUT, "this is left of runs: {left:#?}");
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn directories(&self) -> Vec<String> {
        let work = self.folder.path().join("kept");
        let runs = ["runs", "containers"].map(|name| fs::read_dir(work.join(name)));
        let entries = runs.into_iter().flatten().flatten().flatten();
        entries
            .map(|entry| entry.path().display().to_string())
            .collect()
    }

    /// Processes of runs in this folder, by command line or environment.
    fn processes(&self) -> Vec<String> {
        let runs = format!("{}/kept/runs/", self.folder.path().display());
        let of_runs = |process: &PathBuf| {
            let about = |file: &str| fs::read(process.join(file)).unwrap_or_default();
            let contains = |bytes: &[u8]| bytes.windows(runs.len()).any(|it| it == runs.as_bytes());
            contains(&about("cmdline")) || contains(&about("environ"))
        };
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        let all = all.map(|entry| entry.path());
        let left = all
            .filter(|path| path.join("cmdline").is_file())
            .filter(of_runs);
        left.map(|path| path.display().to_string()).collect()
    }

    /// Stops the broker, and reads its traces to the end.
    pub(super) fn close(mut self) {
        self.broker();
        if let Some(broker) = self.broker.take() {
            self.readers.push(broker.stop());
        }
        self.until_traces_end();
    }

    /// Waits until every kill is known to have succeeded or to have come too late.
    pub(super) fn until_traces_end(&mut self) {
        for reader in self.readers.drain(..) {
            reader.join().expect("it reads to the end");
        }
    }
}
