//! Servers of the tests' own: any installed version, a free port, throw-away data.
//!
//! One of each sort is started for a whole test run and is stopped when the run ends, however it ends:
//! a shell stands between that reads from the run until there is nothing more to read. Where a server
//! is stopped or frozen, a test has its own. `SUTLER_TEST_<STORE>_URL` names one to share instead.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to start or stop, on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Stops the server when the run is over, and leaves nothing.
const KEEPER: &str = r#"folder=$1; signal=$2; shift 2
"$@" >>"$folder/log" 2>&1 & server=$!
echo $server >"$folder/started"
exec 2>/dev/null; cat >/dev/null
kill -CONT $server 2>/dev/null; kill -"$signal" $server 2>/dev/null; wait $server
[ -e "$folder/kept" ] || rm -rf "$folder""#;

/// A folder that a server's user can write to, and the user.
pub(crate) struct Home {
    pub(crate) folder: PathBuf,
    user: Option<(u32, u32)>,
}

impl Home {
    pub(crate) fn new(users: &[&str]) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("sutler-store-sql-")
            .tempdir()
            .expect("a folder")
            .keep();
        let user = unprivileged(users);
        if let Some((user, group)) = user {
            chown(&folder, Some(user), Some(group)).expect("root may give a folder away");
        }
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("it is ours");
        Self { folder, user }
    }

    /// A file that only the server's user can read; where it is.
    pub(crate) fn private(&self, name: &str, content: &str) -> String {
        let path = self.folder.join(name);
        fs::write(&path, content).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");
        if let Some((user, group)) = self.user {
            chown(&path, Some(user), Some(group)).expect("root may give a file away");
        }
        path.display().to_string()
    }

    /// A program, run as a user that the server is willing to be.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).current_dir(&self.folder);
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command
    }

    /// Runs a program to its end.
    pub(crate) fn run(&self, program: &Path, arguments: &[&str]) {
        let ended = self.command(program).args(arguments).output();
        let ended = ended.expect("it runs");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{}: {said}", program.display());
    }

    /// Starts a server; `signal` is how it is stopped.
    pub(crate) fn keep(&self, program: &Path, arguments: &[&str], signal: &str) -> Keeper {
        drop(fs::remove_file(self.folder.join("started")));
        let shell = self
            .command(Path::new("/bin/sh"))
            .args(["-c", KEEPER, "keeper"])
            .arg(&self.folder)
            .arg(signal)
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            // What ends the run must not end the keeper before its work is done.
            .process_group(0)
            .spawn();
        Keeper {
            shell: shell.expect("a shell"),
            folder: self.folder.clone(),
        }
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

/// A server under watch.
pub(crate) struct Keeper {
    shell: Child,
    folder: PathBuf,
}

impl Keeper {
    /// The server's process.
    pub(crate) fn server(&self) -> Pid {
        let file = self.folder.join("started");
        let read = || {
            let text = fs::read_to_string(&file).ok()?;
            Pid::from_raw(text.trim().parse().ok()?)
        };
        until("a server's process id", read)
    }

    /// Stops the server as a power cut would, and leaves its data.
    pub(crate) fn stop(self) {
        let kept = self.folder.join("kept");
        fs::write(&kept, "").expect("a mark");
        drop(self);
        fs::remove_file(&kept).expect("the mark");
    }

    /// Stops the server and all it started, or lets them go on.
    pub(crate) fn signal_all(&self, signal: Signal) {
        let server = self.server();
        let mut all = children(server);
        all.push(server);
        for process in all {
            // One that ended meanwhile needs no signal.
            let _ = kill_process(process, signal);
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.signal_all(Signal::CONT);
        drop(self.shell.stdin.take());
        drop(self.shell.wait());
    }
}

/// Processes that were started by this one.
fn children(of: Pid) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").expect("processes");
    let parent = of.as_raw_nonzero().to_string();
    let is_child = |folder: &Path| {
        let stat = fs::read_to_string(folder.join("stat")).ok()?;
        // The name in brackets may hold anything; state and parent come after it.
        let parent_of = stat.rsplit(')').next()?.split_whitespace().nth(1)?;
        (parent_of == parent).then_some(())
    };
    entries
        .filter_map(|entry| {
            let folder = entry.ok()?.path();
            let number = folder.file_name()?.to_str()?.parse().ok()?;
            is_child(&folder)?;
            Pid::from_raw(number)
        })
        .collect()
}

/// Looks until there is something to see.
pub(crate) fn until<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(
            began.elapsed() < PATIENCE,
            "{what}: not within {PATIENCE:?}"
        );
        std::thread::sleep(LOOK_EVERY);
    }
}

pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it is bound").port()
}

/// The folder with all of these programs: on the PATH, or below one of the roots.
pub(crate) fn programs(needed: &[&str], roots: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    for root in roots {
        folders.push(PathBuf::from(root));
        let entries = fs::read_dir(root).into_iter().flatten();
        let mut found: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
            .collect();
        found.sort();
        folders.extend(found.into_iter().rev());
    }
    let has_all = |folder: &PathBuf| needed.iter().all(|name| folder.join(name).exists());
    folders.into_iter().find(has_all)
}

/// Says it even while tests succeed, which macros do not.
pub(crate) fn say(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// A server is missing: says so, and fails where it must be there.
pub(crate) fn skip(what: &str, how: &str) {
    let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(!ci, "{what} is missing: {how}");
    say(&format!(
        "skipped: a test of sutler-store-sql needs {what}: {how}"
    ));
}

/// Servers refuse to run as root: then they run as one of these.
fn unprivileged(names: &[&str]) -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").expect("there are users");
    let ids_of = |name: &str| {
        let mut lines = users.lines();
        let line = lines.find(|it| it.split(':').next() == Some(name))?;
        let mut ids = line.split(':').skip(2);
        Some((ids.next()?.parse().ok()?, ids.next()?.parse().ok()?))
    };
    names.iter().find_map(|name| ids_of(name))
}
