//! Runs the real program: to its end, or until it listens.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time limit for a start.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Pause between two checks for its end.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A command in a folder, without variables of our environment that it would read.
pub(crate) fn sutler(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sutler"));
    command.current_dir(folder);
    for variable in ["BROKER_USERNAME", "BROKER_PASSWORD", "COLUMNS"] {
        command.env_remove(variable);
    }
    let ours = std::env::vars_os().map(|(name, _)| name);
    for name in ours.filter(|it| it.to_string_lossy().starts_with("SUTLER_")) {
        command.env_remove(name);
    }
    command
}

/// Output and exit code of a command that ended.
pub(crate) struct ProgramOutput {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: Option<i32>,
}

/// Runs the program to its end.
pub(crate) fn run_sutler(folder: &Path, arguments: &[&str]) -> ProgramOutput {
    let output = sutler(folder)
        .args(arguments)
        .output()
        .expect("the program runs");
    ProgramOutput {
        stdout: String::from_utf8(output.stdout).expect("it prints text"),
        stderr: String::from_utf8(output.stderr).expect("it prints text"),
        code: output.status.code(),
    }
}

/// A temporary folder.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

/// The address in the log line that contains it, as text or JSON.
fn listens_at(line: &str) -> Option<&str> {
    let from = ["listening address=", "\"address\":\""];
    let (_, rest) = from.iter().find_map(|it| line.split_once(it))?;
    rest.split([' ', '"']).next()
}

/// A running broker; killed when dropped.
pub(crate) struct Broker {
    process: Child,
    address: String,
    log: mpsc::Receiver<String>,
    /// Every line so far, read or not.
    transcript: Arc<Mutex<Vec<String>>>,
    reader: Option<JoinHandle<()>>,
}

impl Broker {
    /// Starts one on a free port, and waits until it listens.
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Self {
        Self::of(sutler(folder).args(arguments))
    }

    /// Starts a command that serves, on a free port, and waits until it listens.
    pub(crate) fn of(command: &mut Command) -> Self {
        let mut process = command
            .args(["--listen", "127.0.0.1:0"])
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let stderr = process.stderr.take().expect("it is piped");
        let (sender, log) = mpsc::channel();
        // Reads to the end, so that the program never waits for a reader of its log.
        let transcript = Arc::new(Mutex::new(Vec::new()));
        let written = transcript.clone();
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                written.lock().expect("nobody panics").push(line.clone());
                let _ = sender.send(line);
            }
        });
        let mut broker = Self {
            process,
            address: String::new(),
            log,
            transcript,
            reader: Some(reader),
        };
        while broker.address.is_empty() {
            let lines = broker.until_logged("listening");
            let address = lines.last().and_then(|line| listens_at(line));
            broker.address = address.unwrap_or_default().to_owned();
        }
        broker
    }

    /// Returns the lines of the log up to one with this text.
    pub(crate) fn until_logged(&self, text: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let line = self.log.recv_timeout(TIMEOUT);
            let line = line.unwrap_or_else(|_| panic!("it never logs {text:?}: {lines:#?}"));
            let found = line.contains(text);
            lines.push(line);
            if found {
                return lines;
            }
        }
    }

    /// Sends a signal, by its name.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.process.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// The id of the process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Stops it with SIGTERM, and returns everything it logged.
    pub(crate) fn ended(mut self) -> Vec<String> {
        self.signal("TERM");
        let status = self.process.wait().expect("it ends");
        assert!(status.success(), "{status}");
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the log is read");
        }
        std::mem::take(&mut *self.transcript.lock().expect("nobody panics"))
    }

    /// Everything it logged until it ended, which closes the log.
    pub(crate) fn until_log_closed(&self) -> Vec<String> {
        while self.log.recv_timeout(TIMEOUT).is_ok() {}
        self.transcript.lock().expect("nobody panics").clone()
    }

    /// Waits for its end; `None` after the time limit.
    pub(crate) fn until_ended(mut self, within: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + within;
        loop {
            if let Some(ended) = self.process.try_wait().expect("it is ours") {
                return Some(ended);
            }
            if Instant::now() > until {
                return None;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Host and port.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
