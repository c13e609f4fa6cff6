//! The folder of one broker, and the broker in it: started again whenever it was killed.

use super::hunt::Hunt;
use super::traced::Traced;
use crate::asked::Ask;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long anything may take that comes by itself.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(10);

/// A broker's place, for all its starts.
pub(super) struct House {
    folder: TempDir,
    /// Where its runs find programs.
    programs: String,
    pub(super) hunt: Arc<Hunt>,
    broker: Option<Traced>,
    readers: Vec<JoinHandle<()>>,
}

impl House {
    /// With this configuration.
    pub(super) fn new(folder: TempDir, config: &str, programs: &Path, hunt: Hunt) -> Self {
        let path = folder.path().join("sutler.yaml");
        fs::write(&path, config).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");
        Self {
            programs: format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display()),
            folder,
            hunt: Arc::new(hunt),
            broker: None,
            readers: Vec::new(),
        }
    }

    /// A broker that listens.
    fn broker(&mut self) -> &mut Traced {
        if let Some(dead) = self.broker.take_if(|broker| broker.is_dead()) {
            self.readers.push(dead.bury());
        }
        while self.broker.is_none() {
            match Traced::start(self.folder.path(), &self.programs, &self.hunt) {
                Ok(broker) => self.broker = Some(broker),
                Err(reader) => self.readers.push(reader),
            }
        }
        self.broker.as_mut().expect("it listens")
    }

    /// Asks until there is an answer, of whichever broker.
    pub(super) fn ask_until_answered(&mut self, ask: &Ask) -> (u16, Value) {
        let begun = Instant::now();
        loop {
            let address = self.broker().address.clone();
            if let Ok(answer) = ask.try_send(&address)
                && let Some((_, body)) = answer.text.split_once("\r\n\r\n")
                && let Ok(body) = serde_json::from_str(body)
            {
                return (answer.status, body);
            }
            assert!(begun.elapsed() < PATIENCE, "there is no answer");
            std::thread::sleep(LOOK);
        }
    }

    /// Waits until nothing is left of any run: no directory, no process.
    pub(super) fn until_nothing_is_left(&mut self) {
        let begun = Instant::now();
        loop {
            self.broker();
            let mut left = self.directories();
            if left.is_empty() {
                left = self.processes();
            }
            if left.is_empty() {
                return;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "this is left of runs: {left:#?}"
            );
            std::thread::sleep(LOOK);
        }
    }

    fn directories(&self) -> Vec<String> {
        let runs = self.folder.path().join("work/runs");
        let entries = fs::read_dir(runs).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.path().display().to_string())
            .collect()
    }

    /// Everything that has to do with a run of this house, by its command line or its environment.
    fn processes(&self) -> Vec<String> {
        let runs = format!("{}/work/runs/", self.folder.path().display());
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

    /// Ends the broker, and reads its traces to their ends.
    pub(super) fn close(mut self) {
        self.broker();
        if let Some(broker) = self.broker.take() {
            self.readers.push(broker.stop());
        }
        self.until_traces_end();
    }

    /// Whoever was killed has been seen to die, or to be too quick.
    pub(super) fn until_traces_end(&mut self) {
        for reader in self.readers.drain(..) {
            reader.join().expect("it reads to the end");
        }
    }
}
