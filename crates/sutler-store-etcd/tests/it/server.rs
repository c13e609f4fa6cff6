//! An etcd of the tests' own: a free port, throw-away data, gone when nobody needs it any more.
//!
//! Tests share one while they run at the same time; what stops or freezes the server has its own.
//! `SUTLER_TEST_ETCD_URL` names a server to share instead.

use rustix::process::{Pid, Signal, kill_process};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use sutler_store_etcd::EtcdSettings;
use tempfile::TempDir;

/// How long a server may take to start, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);

static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());

/// A running etcd.
pub(crate) struct Server {
    settings: EtcdSettings,
    own: Option<Own>,
}

struct Own {
    folder: TempDir,
    ports: (u16, u16),
    more: Vec<String>,
    process: Mutex<Option<Child>>,
}

impl Server {
    /// The server that all tests share; `None` if there is no etcd here, which is said.
    pub(crate) fn shared() -> Option<Arc<Self>> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = shared.upgrade() {
            return Some(server);
        }
        let server = match std::env::var("SUTLER_TEST_ETCD_URL") {
            Ok(url) => Self {
                settings: EtcdSettings::from_url(&url).expect("SUTLER_TEST_ETCD_URL is a URL"),
                own: None,
            },
            Err(_) => Self::own()?,
        };
        let server = Arc::new(server);
        *shared = Arc::downgrade(&server);
        Some(server)
    }

    /// A server for one test, which may stop it.
    pub(crate) fn own() -> Option<Self> {
        Self::with(&[])
    }

    /// A server for one test, with these further arguments.
    pub(crate) fn with(more: &[String]) -> Option<Self> {
        if !is_installed() {
            skip();
            return None;
        }
        let own = Own {
            folder: folder(),
            ports: (free_port(), free_port()),
            more: more.to_vec(),
            process: Mutex::new(None),
        };
        let settings = EtcdSettings::new(vec![format!("127.0.0.1:{}", own.ports.0)]);
        own.start();
        let own = Some(own);
        Some(Self { settings, own })
    }

    /// How it is reached.
    pub(crate) fn settings(&self) -> EtcdSettings {
        self.settings.clone()
    }

    /// Ends it at once, as a crash would.
    pub(crate) fn kill(&self) {
        self.expect_own().kill();
    }

    /// Starts it again over the same data.
    pub(crate) fn start(&self) {
        self.expect_own().start();
    }

    /// Freezes it, or lets it go on.
    pub(crate) fn signal(&self, signal: Signal) {
        let own = self.expect_own();
        let process = own.process.lock().unwrap_or_else(PoisonError::into_inner);
        let child = process.as_ref().expect("it runs");
        kill_process(Pid::from_child(child), signal).expect("it can be signalled");
        if signal == Signal::STOP {
            wait_until_it_stands(child.id());
        }
    }

    fn expect_own(&self) -> &Own {
        self.own.as_ref().expect("a server of the test's own")
    }
}

impl Own {
    fn start(&self) {
        let client = format!("http://127.0.0.1:{}", self.ports.0);
        let peer = format!("http://127.0.0.1:{}", self.ports.1);
        let log = std::fs::File::create(self.folder.path().join("log")).expect("a log");
        let mut command = Command::new("etcd");
        command
            .args(["--name", "test", "--data-dir"])
            .arg(self.folder.path().join("data"))
            .args(["--listen-peer-urls", &peer])
            .args(["--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("test={peer}")]);
        if self.more.is_empty() {
            command.args(["--listen-client-urls", &client]);
            command.args(["--advertise-client-urls", &client]);
        }
        let child = command
            .args(
                self.more
                    .iter()
                    .map(|it| it.replace("PORT", &self.ports.0.to_string())),
            )
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("etcd starts");
        *self.process.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
        wait_until_it_listens(self.ports.0, self.folder.path());
    }

    fn kill(&self) {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut child) = process.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.kill();
    }
}

fn wait_until_it_listens(port: u16, folder: &Path) {
    let began = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        assert!(began.elapsed() < PATIENCE, "etcd does not start: {log}");
        std::thread::sleep(LOOK_EVERY);
    }
}

/// A signal is only the beginning: on a busy machine some threads go on for a while.
fn wait_until_it_stands(process: u32) {
    let stands = || {
        let threads = std::fs::read_dir(format!("/proc/{process}/task"));
        let mut threads = threads.expect("it has threads").flatten();
        threads.all(|thread| {
            let stat = std::fs::read_to_string(thread.path().join("stat"));
            let stat = stat.unwrap_or_default();
            let state = stat.rsplit_once(") ").map(|(_, rest)| rest.chars().next());
            state.is_none_or(|state| state == Some('T'))
        })
    };
    let began = Instant::now();
    while !stands() {
        assert!(began.elapsed() < PATIENCE, "etcd does not stand still");
        std::thread::sleep(LOOK_EVERY);
    }
}

/// In memory where that can be had: tests are not about how fast a disk syncs.
fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")))
        .expect("a folder")
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it is bound").port()
}

fn is_installed() -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join("etcd").is_file())
}

fn skip() {
    assert!(
        std::env::var_os("CI").is_none_or(|ci| ci != "true"),
        "there is no etcd on the PATH, and CI tests every store: install etcd-server"
    );
    eprintln!(
        "skipped: there is no etcd on the PATH; install etcd-server or set SUTLER_TEST_ETCD_URL"
    );
}
