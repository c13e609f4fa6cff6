//! Guard of a server, which ends the server with the test run, even if the run is killed.
//!
//! A shell starts the server and reads from a pipe to the run until it is closed; then it stops the server and
//! removes
//! its directory. The command is built in `server.rs`.

use crate::wait::until;
use rustix::process::{Pid, Signal, kill_process, setpriority_process};
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Stops the server when the run is over, and removes its data unless it is still needed.
const SCRIPT: &str = r#"folder=$1; signal=$2; shift 2
"$@" >>"$folder/log" 2>&1 & server=$!
echo $server >"$folder/started"
exec 2>/dev/null; cat >/dev/null
kill -CONT $server 2>/dev/null; kill -"$signal" $server 2>/dev/null; wait $server
[ -e "$folder/kept" ] || rm -rf "$folder""#;

/// Lowest priority.
const LAST: i32 = 19;

/// A guarded server.
pub(crate) struct ServerGuard {
    shell: Child,
    folder: PathBuf,
}

impl ServerGuard {
    pub(crate) fn start(
        mut shell: Command,
        folder: &Path,
        signal: &str,
        program: &Path,
        arguments: &[String],
    ) -> Self {
        drop(fs::remove_file(folder.join("started")));
        let shell = shell
            .args(["-c", SCRIPT, "keeper"])
            .arg(folder)
            .arg(signal)
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            // A signal to the run must not end the guard before it has cleaned up.
            .process_group(0)
            .spawn();
        Self {
            shell: shell.expect("a shell"),
            folder: folder.to_owned(),
        }
    }

    /// Process of the server.
    pub(crate) fn server(&self) -> Pid {
        let file = self.folder.join("started");
        until("a server's process id", || {
            let text = fs::read_to_string(&file).ok()?;
            Pid::from_raw(text.trim().parse().ok()?)
        })
    }

    /// Whether the server runs.
    pub(crate) fn lives(&self) -> bool {
        let state = state_of(&process_folder(self.server()));
        state.is_some_and(|state| state != 'Z')
    }

    /// Stops the server like a crash, and keeps its data.
    pub(crate) fn stop(self) {
        let kept = self.folder.join("kept");
        fs::write(&kept, "").expect("a mark");
        drop(self);
        fs::remove_file(&kept).expect("the mark");
    }

    /// Stops the server and all its children by SIGSTOP.
    pub(crate) fn freeze(&self) {
        let all = self.signal_all(Signal::STOP);
        // On a busy machine some threads continue for a while after the signal.
        for process in all {
            until("a process stands still", || {
                has_stopped(process).then_some(())
            });
        }
    }

    /// Continues all processes.
    pub(crate) fn thaw(&self) {
        self.signal_all(Signal::CONT);
    }

    /// Lowers the priority to the minimum.
    pub(crate) fn lower_priority(&self) {
        for process in self.all() {
            let threads = fs::read_dir(process_folder(process).join("task"));
            for thread in threads.into_iter().flatten().flatten() {
                let number = thread.file_name().to_str().and_then(|it| it.parse().ok());
                if let Some(thread) = number.and_then(Pid::from_raw) {
                    // A process that has ended is ignored; new children inherit the priority.
                    let _ = setpriority_process(Some(thread), LAST);
                }
            }
        }
    }

    fn all(&self) -> Vec<Pid> {
        let server = self.server();
        let mut all = children(server);
        all.push(server);
        all
    }

    fn signal_all(&self, signal: Signal) -> Vec<Pid> {
        let all = self.all();
        for process in &all {
            // A process that has ended is ignored.
            let _ = kill_process(*process, signal);
        }
        all
    }
}

impl Drop for ServerGuard {
    fn drop(&mut self) {
        self.thaw();
        drop(self.shell.stdin.take());
        drop(self.shell.wait());
    }
}

fn process_folder(process: Pid) -> PathBuf {
    PathBuf::from(format!("/proc/{}", process.as_raw_nonzero()))
}

/// State of a process or thread, as one letter.
fn state_of(folder: &Path) -> Option<char> {
    state_and_parent(&fs::read_to_string(folder.join("stat")).ok()?).map(|(state, _)| state)
}

/// The name in brackets may contain any character; state and parent follow it.
fn state_and_parent(stat: &str) -> Option<(char, i32)> {
    let mut words = stat.rsplit(')').next()?.split_whitespace();
    let state = words.next()?.chars().next()?;
    Some((state, words.next()?.parse().ok()?))
}

/// Whether all threads have stopped or ended.
fn has_stopped(process: Pid) -> bool {
    let threads = fs::read_dir(process_folder(process).join("task"));
    let mut threads = threads.into_iter().flatten().flatten();
    threads.all(|thread| state_of(&thread.path()).is_none_or(|state| "TtZX".contains(state)))
}

/// Children of a process.
fn children(of: Pid) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").expect("processes");
    let child = |folder: PathBuf| {
        let number = folder.file_name()?.to_str()?.parse().ok()?;
        let stat = fs::read_to_string(folder.join("stat")).ok()?;
        let (_, parent) = state_and_parent(&stat)?;
        (parent == of.as_raw_nonzero().get()).then(|| Pid::from_raw(number))?
    };
    entries
        .flatten()
        .filter_map(|it| child(it.path()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_may_be_called_anything() {
        let stat = "42 (a ) R 7) S 17 42 42 0 -1";
        assert_eq!(state_and_parent(stat), Some(('S', 17)));
        assert_eq!(state_and_parent("nonsense"), None);
    }
}
