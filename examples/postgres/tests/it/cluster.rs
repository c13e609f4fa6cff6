//! A PostgreSQL server of the tests' own: any installed version, a free port, throw-away data.
//!
//! Tests share one while they run at the same time; what stops the server has its own. It demands
//! passwords, and its log holds every statement: what must not be there is looked for there.
//! `SUTLER_TEST_POSTGRES_URL` names a server to share instead.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a server may take to start, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The password of the server's first role; looked for in everything that is written.
pub(crate) const ADMIN_PASSWORD: &str = "admin-canary-6f1d";

static SHARED: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());

pub(crate) struct Cluster(Kind);

enum Kind {
    /// Somebody else's.
    Given(String),
    Own(Box<Own>),
}

struct Own {
    folder: TempDir,
    programs: PathBuf,
    port: u16,
    process: Mutex<Option<Child>>,
}

impl Cluster {
    /// The server that all tests share; `None` if there is no PostgreSQL here, which is said.
    pub(crate) fn shared() -> Option<Arc<Self>> {
        let mut shared = SHARED
            .lock()
            .expect("no test panicked while it started a server");
        if let Some(cluster) = shared.upgrade() {
            return Some(cluster);
        }
        let cluster = match std::env::var("SUTLER_TEST_POSTGRES_URL") {
            Ok(url) => Arc::new(Self(Kind::Given(url))),
            Err(_) => Arc::new(Self::own()?),
        };
        *shared = Arc::downgrade(&cluster);
        Some(cluster)
    }

    /// A server for one test, which may stop it.
    pub(crate) fn own() -> Option<Self> {
        let Some(programs) = programs() else {
            skip();
            return None;
        };
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        drop(listener);
        let own = Own {
            folder: folder(),
            programs,
            port,
            process: Mutex::new(None),
        };
        own.init();
        own.start();
        Some(Self(Kind::Own(Box::new(own))))
    }

    /// The way in for the role that may do everything.
    pub(crate) fn url(&self) -> String {
        match &self.0 {
            Kind::Given(url) => url.clone(),
            Kind::Own(own) => format!(
                "postgres://postgres:{ADMIN_PASSWORD}@127.0.0.1:{}/postgres",
                own.port
            ),
        }
    }

    pub(crate) fn stop(&self) {
        self.expect_own().stop();
    }

    pub(crate) fn start(&self) {
        self.expect_own().start();
    }

    /// Everything that the server wrote.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.expect_own().log()).expect("the server has a log")
    }

    fn expect_own(&self) -> &Own {
        match &self.0 {
            Kind::Own(own) => own,
            Kind::Given(_) => panic!("this test needs a server of its own"),
        }
    }
}

impl Own {
    fn init(&self) {
        let data = self.folder.path().join("data");
        let password = self.folder.path().join("password");
        fs::write(&password, ADMIN_PASSWORD).expect("it is written");
        let ended = self
            .program("initdb")
            .args(["-A", "scram-sha-256", "-U", "postgres", "--no-sync"])
            .args(["-E", "UTF8", "--locale=C.UTF-8", "-D"])
            .arg(data)
            .arg("--pwfile")
            .arg(password)
            .output()
            .expect("initdb runs");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "initdb: {said}");
    }

    fn start(&self) {
        let log = fs::File::options()
            .append(true)
            .create(true)
            .open(self.log());
        let child = self
            .program("postgres")
            .arg("-D")
            .arg(self.folder.path().join("data"))
            .args(["-p", &self.port.to_string()])
            .args(["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"])
            .args(["-c", "unix_socket_directories=", "-c", "log_statement=all"])
            .stderr(log.expect("a log"))
            .spawn()
            .expect("postgres runs");
        *self.process.lock().expect("nobody panicked") = Some(child);
        self.until_it_answers();
    }

    /// It listens before it lets anybody in, so its own tool asks.
    fn until_it_answers(&self) {
        let began = Instant::now();
        loop {
            let asked = self
                .program("pg_isready")
                .args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()])
                .status();
            if asked.expect("pg_isready runs").success() {
                return;
            }
            let log = fs::read_to_string(self.log()).unwrap_or_default();
            assert!(began.elapsed() < PATIENCE, "no server: {log}");
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn stop(&self) {
        let Some(mut process) = self.process.lock().expect("nobody panicked").take() else {
            return;
        };
        let pid = Pid::from_child(&process);
        kill_process(pid, Signal::QUIT).expect("it runs");
        process.wait().expect("it ends");
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// A program of the server, as a user that it is willing to run as.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.stdin(Stdio::null()).current_dir(self.folder.path());
        if let Some((user, group)) = unprivileged() {
            command.uid(user).gid(group);
        }
        command
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.stop();
    }
}

fn skip() {
    let how = "install postgresql (apt-get install postgresql), or set SUTLER_TEST_POSTGRES_URL";
    assert!(std::env::var("CI").is_err(), "PostgreSQL is missing: {how}");
    // Not a macro: those are silent while a test succeeds.
    let said = format!("skipped: a test of examples/postgres needs PostgreSQL: {how}\n");
    let _ = std::io::stderr().write_all(said.as_bytes());
}

/// The folder with the server's programs: on the PATH, or where distributions put them.
fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    for root in ["/usr/lib/postgresql", "/usr/libexec/postgresql", "/usr"] {
        let Ok(entries) = fs::read_dir(root) else {
            continue;
        };
        let mut found: Vec<PathBuf> = entries
            .filter_map(|it| Some(it.ok()?.path()))
            .filter(|it| root != "/usr" || it.to_string_lossy().contains("/pgsql"))
            .map(|it| it.join("bin"))
            .collect();
        found.sort();
        folders.extend(found.into_iter().rev());
    }
    let needed = ["initdb", "postgres", "pg_isready"];
    let has_all = |it: &PathBuf| needed.iter().all(|name| it.join(name).exists());
    folders.into_iter().find(has_all)
}

/// A folder that the server's user can enter and write to.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    if let Some((user, group)) = unprivileged() {
        chown(folder.path(), Some(user), Some(group)).expect("root may give a folder away");
    }
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    folder
}

/// PostgreSQL refuses to run as root: then it runs as `postgres`, or as `nobody`.
fn unprivileged() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string(Path::new("/etc/passwd")).expect("there are users");
    let ids_of = |name: &str| {
        let line = users
            .lines()
            .find(|it| it.split(':').next() == Some(name))?;
        let mut ids = line.split(':').skip(2);
        Some((ids.next()?.parse().ok()?, ids.next()?.parse().ok()?))
    };
    ids_of("postgres").or_else(|| ids_of("nobody"))
}
