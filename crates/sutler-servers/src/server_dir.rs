//! Directory of one server, the user that it runs as, and commands that run to their end.
//!
//! Long-running servers are in `server_guard.rs`.

use crate::server_guard::ServerGuard;
use rustix::fs::statvfs;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A file system in memory: tests do not depend on the speed of disks.
const MEMORY: &str = "/dev/shm";
/// Minimum free space there; containers often have 64 MB.
const MEMORY_BYTES_MIN: u64 = 2 << 30;

/// A directory that the user of a server can write to, and that user. Removed on drop.
pub struct ServerDir {
    folder: PathBuf,
    user: Option<(u32, u32)>,
}

impl ServerDir {
    /// Creates a directory, in memory if there is room. If the tests run as root, it belongs to the first existing user
    /// of these.
    ///
    /// # Panics
    /// If the directory cannot be created.
    #[must_use]
    pub fn new(users: &[&str]) -> Self {
        match has_room(Path::new(MEMORY)) {
            true => Self::create(Path::new(MEMORY), users),
            false => Self::on_disk(users),
        }
    }

    /// The same, on a disk.
    ///
    /// # Panics
    /// If the directory cannot be created.
    #[must_use]
    pub fn on_disk(users: &[&str]) -> Self {
        Self::create(&std::env::temp_dir(), users)
    }

    fn create(parent: &Path, users: &[&str]) -> Self {
        let mut builder = tempfile::Builder::new();
        let folder = builder.prefix("sutler-server-").tempdir_in(parent);
        let folder = folder.expect("a folder").keep();
        let user = unprivileged(users);
        if let Some((user, group)) = user {
            chown(&folder, Some(user), Some(group)).expect("root may give a folder away");
        }
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("it is ours");
        Self { folder, user }
    }

    /// Path of the directory.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A path in the directory, as text.
    #[must_use]
    pub fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Writes a file that only the user of the server can read; returns its path.
    ///
    /// # Panics
    /// If it cannot be written.
    #[must_use]
    pub fn private(&self, name: &str, content: &str) -> String {
        let path = self.folder.join(name);
        fs::write(&path, content).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");
        if let Some((user, group)) = self.user {
            chown(&path, Some(user), Some(group)).expect("root may give a file away");
        }
        path.display().to_string()
    }

    /// A command that runs in the directory as the user of the server.
    #[must_use]
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).current_dir(&self.folder);
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command
    }

    /// Runs a program to its end.
    ///
    /// # Panics
    /// If it fails; with its output.
    pub fn run(&self, program: &Path, arguments: &[&str]) {
        let ended = self.command(program).args(arguments).output();
        let ended = ended.expect("it runs");
        let message = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{}: {message}", program.display());
    }

    /// Starts a server; `signal` is the signal that stops it.
    pub(crate) fn keep(
        &self,
        program: &Path,
        arguments: &[String],
        variables: &[(String, String)],
        signal: &str,
    ) -> ServerGuard {
        let mut shell = self.command(Path::new("/bin/sh"));
        shell.envs(variables.iter().map(|(name, value)| (name, value)));
        ServerGuard::start(shell, &self.folder, signal, program, arguments)
    }

    /// Log of the server so far.
    #[must_use]
    pub fn log(&self) -> String {
        let bytes = fs::read(self.folder.join("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for ServerDir {
    fn drop(&mut self) {
        // The guard of a server may have removed it already.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn has_room(folder: &Path) -> bool {
    statvfs(folder).is_ok_and(|it| it.f_bavail.saturating_mul(it.f_frsize) >= MEMORY_BYTES_MIN)
}

/// Servers refuse to run as root, or should not: chooses one of these users.
fn unprivileged(names: &[&str]) -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").expect("there are users");
    names.iter().find_map(|name| ids_of(name, &users))
}

/// Ids of a user and its group, from the lines of `/etc/passwd`.
fn ids_of(name: &str, users: &str) -> Option<(u32, u32)> {
    let mut lines = users.lines();
    let line = lines.find(|it| it.split(':').next() == Some(name))?;
    let mut ids = line.split(':').skip(2);
    Some((ids.next()?.parse().ok()?, ids.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_their_whole_name() {
        let users = "root:x:0:0:root:/root:/bin/sh\nmysqlx:x:9:9::/:\nmysql:x:106:112::/:\n";
        assert_eq!(ids_of("mysql", users), Some((106, 112)));
        assert_eq!(ids_of("my", users), None);
    }

    #[test]
    fn a_server_directory_is_removed_on_drop() {
        let dir = ServerDir::new(&["nobody"]);
        let folder = dir.folder().to_owned();
        let file = dir.private("secret", "x");
        let mode = fs::metadata(file).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(dir);
        assert!(!folder.exists());
    }
}
