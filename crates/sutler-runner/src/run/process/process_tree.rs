//! Processes of this host: descendants, processes of a run, and signals that reach only them.
//!
//! `shutdown_timeline.rs` and `process.rs` decide when to signal.

use crate::run_spec::RunName;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::LazyLock;

/// Environment variable that identifies processes of a run, independent of their parents.
pub(super) const MARK: &str = "SUTLER_RUN";

/// Maximum bytes of an environment that are searched for the marker.
const ENVIRONMENT_MAX: usize = 1 << 20;

/// Attempts to read a consistent list of processes.
const SNAPSHOTS: usize = 5;

/// A process, identified by pid and start time, because pids are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Process {
    pub(super) pid: i32,
    /// Start time, in ticks since the boot.
    pub(super) since: u64,
}

struct Stat {
    process: Process,
    parent: i32,
    threads: u64,
}

/// The process with this pid, if it exists and has not ended.
pub(super) fn process(pid: i32) -> Option<Process> {
    stat(pid).map(|stat| stat.process)
}

/// A descriptor that becomes readable when the process ends; `None` if it already has.
pub(super) fn end_of(process: Process) -> Option<OwnedFd> {
    let pid = Pid::from_raw(process.pid)?;
    let fd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    // The pid may have been reused before it was opened, but not after.
    (stat(process.pid)?.process == process).then_some(fd)
}

/// All descendants of a process, without itself.
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

/// All processes with the marker of a run in their environment.
pub(super) fn marked(run: &str) -> Vec<Process> {
    let mark = format!("{MARK}={run}");
    let mut found = Vec::new();
    for pid in pids() {
        // Read before the environment, so that a reused pid is not taken for it.
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

/// All processes of a user without a supervisor. A supervisor is root's and inherits the orphans of its run, so a
/// descendant of one belongs to a live run, of this broker or another.
pub(super) fn abandoned_by(uid: u32) -> Vec<Process> {
    let mut found = Vec::new();
    for _ in 0..SNAPSHOTS {
        let all: Vec<ProcessRelation> = pids().into_iter().filter_map(relative).collect();
        let whole;
        (found, whole) = abandoned(&all, uid);
        if whole {
            break;
        }
    }
    found
}

/// A process with its parent and users.
struct ProcessRelation {
    process: Process,
    parent: i32,
    /// All user ids that it has or can take.
    users: Vec<u32>,
    supervises: bool,
}

/// Processes of a user that certainly have no supervisor; `false`: the list changed while it was read, so others are
/// uncertain.
fn abandoned(all: &[ProcessRelation], uid: u32) -> (Vec<Process>, bool) {
    let by_pid: BTreeMap<i32, &ProcessRelation> =
        all.iter().map(|one| (one.process.pid, one)).collect();
    let is_watched = |one: &ProcessRelation| -> Option<bool> {
        let mut above = one.parent;
        for _ in 0..all.len() {
            if above == 0 {
                return Some(false);
            }
            let parent = by_pid.get(&above)?;
            if parent.supervises && !parent.users.contains(&uid) {
                return Some(true);
            }
            above = parent.parent;
        }
        None
    };
    let (mut found, mut whole) = (Vec::new(), true);
    for one in all.iter().filter(|one| one.users.contains(&uid)) {
        match is_watched(one) {
            Some(true) => {}
            Some(false) => found.push(one.process),
            None => whole = false,
        }
    }
    (found, whole)
}

fn relative(pid: i32) -> Option<ProcessRelation> {
    let stat = stat(pid)?;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    // The last argument of a supervisor is the directory of its run.
    let last = line.split(|byte| *byte == 0).rfind(|word| !word.is_empty());
    let last = String::from_utf8_lossy(last.unwrap_or_default()).into_owned();
    let run = last.rsplit('/').next().unwrap_or_default();
    Some(ProcessRelation {
        process: stat.process,
        parent: stat.parent,
        users: users
            .split_whitespace()
            .filter_map(|uid| uid.parse().ok())
            .collect(),
        supervises: run.parse::<RunName>().is_ok(),
    })
}

/// Number of threads of a user: the kernel counts these against its limit of processes.
pub(super) fn threads_of(uid: u32) -> u64 {
    let of_user = |pid: &i32| {
        let folder = fs::metadata(format!("/proc/{pid}"));
        folder.is_ok_and(|folder| folder.uid() == uid)
    };
    let stats = pids().into_iter().filter(of_user).filter_map(stat);
    stats.map(|stat| stat.threads).sum()
}

/// Signals processes; those that ended meanwhile are skipped, even if their pid was reused.
pub(super) fn signal(processes: &[Process], signal: Signal) {
    for process in processes {
        if let Some(fd) = end_of(*process) {
            // It may end in between, which is fine.
            pidfd_send_signal(fd, signal).unwrap_or_default();
        }
    }
}

/// Id of this boot: processes of another boot are gone. If it is hidden, all boots count as the same: then leftovers
/// of a run are searched without result, which is harmless.
pub(super) fn boot() -> &'static str {
    static BOOT: LazyLock<String> = LazyLock::new(|| {
        let name = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        name.trim().to_owned()
    });
    &BOOT
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

/// Zombies count as ended.
fn parse(text: &str) -> Option<Stat> {
    let pid = text.split(' ').next()?.parse().ok()?;
    // The name of a program may contain anything, including parentheses.
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
    use super::{Process, ProcessRelation, abandoned, descendants, parse, process};
    use std::process::Command;

    #[test]
    fn the_line_of_a_process_is_parsed_with_any_program_name() {
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
    fn descendants_of_a_supervisor_are_not_abandoned() {
        let one = |pid, parent, user, supervises| ProcessRelation {
            process: Process { pid, since: 1 },
            parent,
            users: vec![user; 4],
            supervises,
        };
        let all = [
            one(1, 0, 0, false),
            one(10, 1, 0, true),
            one(11, 10, 70_000, false),
            one(12, 11, 70_000, false),
            // Left by a run whose supervisor is dead.
            one(20, 1, 70_000, false),
            // Looks like a supervisor, but is a process of the run.
            one(30, 1, 70_000, true),
            one(31, 30, 70_000, false),
            // Another user.
            one(40, 1, 70_001, false),
        ];
        let pids = |found: Vec<Process>| found.iter().map(|it| it.pid).collect::<Vec<i32>>();
        let (found, whole) = abandoned(&all, 70_000);
        assert_eq!((pids(found), whole), (vec![20, 30, 31], true));
        // Lists that changed while they were read: no process counts as abandoned by mistake.
        let mut changed: Vec<ProcessRelation> = all.into_iter().collect();
        changed.extend([one(50, 51, 70_000, false), one(51, 50, 0, false)]);
        changed.push(one(60, 59, 70_000, false));
        let (found, whole) = abandoned(&changed, 70_000);
        assert_eq!((pids(found), whole), (vec![20, 30, 31], false));
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
