//! A server that ends when the test run does, however that ends.
//!
//! A shell stands between: it starts the server, and reads from the run until there is nothing more to
//! read; then it stops the server and removes its folder. Not here: what is started (`server.rs`).

use crate::wait::until;
use rustix::process::{Pid, Signal, kill_process, setpriority_process};
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Stops the server when the run is over, and leaves nothing unless its data is still needed.
const SCRIPT: &str = r#"folder=$1; signal=$2; shift 2
"$@" >>"$folder/log" 2>&1 & server=$!
echo $server >"$folder/started"
exec 2>/dev/null; cat >/dev/null
kill -CONT $server 2>/dev/null; kill -"$signal" $server 2>/dev/null; wait $server
[ -e "$folder/kept" ] || rm -rf "$folder""#;

/// The priority of whoever comes last.
const LAST: i32 = 19;

/// A server under watch.
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
            // What ends the run must not end the keeper before its work is done.
            .process_group(0)
            .spawn();
        Self {
            shell: shell.expect("a shell"),
            folder: folder.to_owned(),
        }
    }

    /// The server's process.
    pub(crate) fn server(&self) -> Pid {
        let file = self.folder.join("started");
        until("a server's process id", || {
            let text = fs::read_to_string(&file).ok()?;
            Pid::from_raw(text.trim().parse().ok()?)
        })
    }

    /// Whether the server is still there.
    pub(crate) fn lives(&self) -> bool {
        let state = state_of(&process_folder(self.server()));
        state.is_some_and(|state| state != 'Z')
    }

    /// Stops the server as a crash would, and leaves its data.
    pub(crate) fn stop(self) {
        let kept = self.folder.join("kept");
        fs::write(&kept, "").expect("a mark");
        drop(self);
        fs::remove_file(&kept).expect("the mark");
    }

    /// Stops the server and all it started where they are.
    pub(crate) fn freeze(&self) {
        let all = self.signal_all(Signal::STOP);
        // A signal is only the beginning: on a busy machine some threads go on for a while.
        for process in all {
            until("a process stands still", || stands(process).then_some(()));
        }
    }

    /// Lets everything go on.
    pub(crate) fn thaw(&self) {
        self.signal_all(Signal::CONT);
    }

    /// Has it run only where nobody else needs the processor.
    pub(crate) fn lower_priority(&self) {
        for process in self.all() {
            let threads = fs::read_dir(process_folder(process).join("task"));
            for thread in threads.into_iter().flatten().flatten() {
                let number = thread.file_name().to_str().and_then(|it| it.parse().ok());
                if let Some(thread) = number.and_then(Pid::from_raw) {
                    // One that ended meanwhile needs nothing; what it starts from now on is the same.
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
            // One that ended meanwhile needs no signal.
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

/// What a process or thread is doing, as one letter.
fn state_of(folder: &Path) -> Option<char> {
    state_and_parent(&fs::read_to_string(folder.join("stat")).ok()?).map(|(state, _)| state)
}

/// The name in brackets may hold anything; state and parent come after it.
fn state_and_parent(stat: &str) -> Option<(char, i32)> {
    let mut words = stat.rsplit(')').next()?.split_whitespace();
    let state = words.next()?.chars().next()?;
    Some((state, words.next()?.parse().ok()?))
}

/// Whether every thread has stopped, or there is none any more.
fn stands(process: Pid) -> bool {
    let threads = fs::read_dir(process_folder(process).join("task"));
    let mut threads = threads.into_iter().flatten().flatten();
    threads.all(|thread| state_of(&thread.path()).is_none_or(|state| "TtZX".contains(state)))
}

/// Processes that were started by this one.
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
