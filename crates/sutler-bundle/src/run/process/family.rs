//! Processes of this host: who descends from whom, which belong to a run, and signals that hit only them.
//!
//! Takes no decisions: when anything is signalled is up to `course.rs` and `process.rs`.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

/// The variable by which processes of a run are known, whatever became of their parents.
pub(super) const MARK: &str = "SUTLER_RUN";

/// Most bytes of an environment that are looked through for the mark.
const ENVIRONMENT_MAX: usize = 1 << 20;

/// A process, beyond doubt: numbers are used again, but never with the same start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Process {
    pub(super) pid: i32,
    /// When it started, in ticks since the boot.
    pub(super) since: u64,
}

struct Stat {
    process: Process,
    parent: i32,
    threads: u64,
}

/// The process of this number, if there is one that has not ended.
pub(super) fn process(pid: i32) -> Option<Process> {
    stat(pid).map(|stat| stat.process)
}

/// Something that becomes readable when the process ends; none if it already has.
pub(super) fn end_of(process: Process) -> Option<OwnedFd> {
    let pid = Pid::from_raw(process.pid)?;
    let fd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    // The number may have passed to another one before it was opened, never after.
    (stat(process.pid)?.process == process).then_some(fd)
}

/// Everything that descends from a process, itself not among it.
pub(super) fn descendants(of: i32) -> Vec<Process> {
    let all: Vec<Stat> = pids().into_iter().filter_map(stat).collect();
    let mut family = BTreeSet::from([of]);
    let mut found = Vec::new();
    loop {
        let before = found.len();
        for stat in &all {
            if family.contains(&stat.parent) && family.insert(stat.process.pid) {
                found.push(stat.process);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// Everything that carries the mark of a run in its environment.
pub(super) fn marked(run: &str) -> Vec<Process> {
    let mark = format!("{MARK}={run}");
    let mut found = Vec::new();
    for pid in pids() {
        // Taken before the look, so that another process of this number is not meant.
        let Some(process) = process(pid) else {
            continue;
        };
        let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else {
            continue;
        };
        let mut words = environment[..environment.len().min(ENVIRONMENT_MAX)].split(|b| *b == 0);
        if words.any(|word| word == mark.as_bytes()) {
            found.push(process);
        }
    }
    found
}

/// How many threads a user has: the kernel counts these against its limit of processes.
pub(super) fn threads_of(uid: u32) -> u64 {
    let of_user = |pid: &i32| {
        let folder = fs::metadata(format!("/proc/{pid}"));
        folder.is_ok_and(|folder| folder.uid() == uid)
    };
    let stats = pids().into_iter().filter(of_user).filter_map(stat);
    stats.map(|stat| stat.threads).sum()
}

/// Signals processes; those that ended meanwhile are left alone, and so is who took their number.
pub(super) fn signal(processes: &[Process], signal: Signal) {
    for process in processes {
        if let Some(fd) = end_of(*process) {
            // It may end between the two: then there is nothing to do.
            pidfd_send_signal(fd, signal).unwrap_or_default();
        }
    }
}

/// The name of this boot: processes of another one are gone. Where it is hidden, all boots are one: then what
/// is left of a run is looked for in vain, and the end is the same.
pub(super) fn boot() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    name.trim().to_owned()
}

fn pids() -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    names
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect()
}

fn stat(pid: i32) -> Option<Stat> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Zombies count as ended: they do nothing any more.
fn parse(text: &str) -> Option<Stat> {
    let pid = text.split(' ').next()?.parse().ok()?;
    // The name of a program may hold anything, parentheses too.
    let rest = &text[text.rfind(')')? + 1..];
    let mut fields = rest.split_whitespace();
    let (state, parent) = (fields.next()?, fields.next()?.parse().ok()?);
    let threads = fields.nth(15)?.parse().ok()?;
    let since = fields.nth(1)?.parse().ok()?;
    let process = Process { pid, since };
    (state != "Z" && state != "X").then_some(Stat {
        process,
        parent,
        threads,
    })
}

#[cfg(test)]
mod tests {
    use super::{Process, descendants, parse, process};
    use std::process::Command;

    #[test]
    fn the_line_of_a_process_is_read_whatever_its_program_is_called() {
        let line = "42 (a) R (b) S 7 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 3 0 991 1 1 1";
        let stat = parse(line).expect("a process");
        let process = Process {
            pid: 42,
            since: 991,
        };
        assert_eq!((stat.process, stat.parent, stat.threads), (process, 7, 3));
        assert!(parse(&line.replace(" S 7", " Z 7")).is_none());
        assert!(parse("42 (a").is_none());
    }

    #[test]
    fn a_child_descends_from_this_process() {
        let mut child = Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("cat runs");
        let pid = i32::try_from(child.id()).expect("a number");
        let own = i32::try_from(std::process::id()).expect("a number");
        let there = process(pid).expect("it runs");
        assert!(descendants(own).contains(&there));
        drop(child.stdin.take());
        child.wait().expect("it ends");
        assert!(process(pid).is_none_or(|now| now != there));
    }
}
