//! Parses lines of a system-call trace into steps: calls with effects that a later process can observe. Pure.
//!
//! `kill_loop.rs` decides which process is killed at which step.

use std::collections::BTreeMap;

/// The calls that are traced.
pub(super) const CALLS: &str =
    "mkdir,mkdirat,mknodat,rename,renameat,renameat2,unlink,unlinkat,rmdir,fsync,fdatasync";

/// Calls by which a broker sends requests to an engine; calls to other addresses are not steps. They are not
/// delayed: the engine executes the request even if the broker is killed.
pub(super) const ENGINE_CALLS: &str = "sendto";

/// Directories of runs, below the folder of a broker: processes and containers.
const RUNS: [&str; 2] = ["/kept/runs", "/kept/containers"];

/// A completed step.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Thread of the call.
    pub(super) thread: i32,
    /// Identifies the step; the same in every lifecycle.
    pub(super) label: String,
}

/// Parses a trace, line by line.
#[derive(Debug, Default)]
pub(super) struct Trace {
    /// Calls that have not returned, by thread.
    open: BTreeMap<i32, String>,
}

impl Trace {
    /// Returns the step of a line, if it is one.
    pub(super) fn step(&mut self, line: &str) -> Option<Step> {
        let (thread, rest) = line.split_once(' ')?;
        let thread = thread.parse().ok()?;
        let rest = rest.trim_start();
        let label = if rest.starts_with("<... ") {
            self.open.remove(&thread)?
        } else if let Some(begun) = rest.strip_suffix("<unfinished ...>") {
            if let Some(label) = label(begun) {
                self.open.insert(thread, label);
            }
            return None;
        } else {
            label(rest)?
        };
        let (_, result) = rest.rsplit_once(" = ")?;
        // For requests to an engine the result is a length.
        let to_engine = label.starts_with("ask") && !result.starts_with('-');
        (to_engine || result.starts_with('0')).then_some(Step { thread, label })
    }
}

fn label(call: &str) -> Option<String> {
    let (name, arguments) = call.split_once('(')?;
    if name == "execve" {
        return program(arguments).map(|program| format!("start {program}"));
    }
    if arguments.contains("-wal>") {
        return Some("commit".to_owned());
    }
    if ENGINE_CALLS.split(',').any(|ask| ask == name) {
        return request(arguments).map(|what| format!("ask engine to {what}"));
    }
    // A later process finds the new name of a rename.
    let last = name.starts_with("rename");
    let path = after_runs(arguments, last)?;
    let end = path.find(['"', '>']).unwrap_or(path.len());
    let normalised_path = normalised_path(&path[..end]);
    let word = match name {
        _ if name.starts_with("rename") => "name",
        "mkdir" | "mkdirat" | "mknodat" => "make",
        "fsync" | "fdatasync" => "sync",
        _ => "remove",
    };
    Some(format!("{word} {normalised_path}"))
}

/// The text after the first, or last, occurrence of a directory of runs.
fn after_runs(arguments: &str, last: bool) -> Option<&str> {
    let find = |runs: &&str| match last {
        true => arguments.rfind(runs).map(|at| at + runs.len()),
        false => arguments.find(runs).map(|at| at + runs.len()),
    };
    let end = RUNS.iter().find_map(find)?;
    Some(&arguments[end..])
}

/// Kind of a request to an engine about one container, by its first words.
fn request(arguments: &str) -> Option<&'static str> {
    let (_, request_line) = arguments.split_once('"')?;
    let (method, path) = request_line.split_once(' ')?;
    let path = path.split([' ', '?', '"']).next()?;
    if !path.contains("/containers/") {
        return None;
    }
    let word = path.rsplit('/').next()?;
    match (method, word) {
        ("POST", "create") => Some("create"),
        ("POST", "start") => Some("start"),
        ("POST", "wait") => Some("wait"),
        ("GET", "json") => Some("inspect"),
        ("GET", "logs") => Some("tell"),
        ("DELETE", _) => Some("remove"),
        _ => None,
    }
}

/// Kind of a started program: one of ours, or of the bundle.
fn program(arguments: &str) -> Option<&'static str> {
    let path = arguments.trim_start_matches('"').split('"').next()?;
    if arguments.contains("\"--launch\"") {
        return Some("launcher");
    }
    let ours = path.contains("/sutler") || path.starts_with("/proc/self/fd/");
    if after_runs(arguments, false).is_some() && ours {
        return Some("supervisor");
    }
    path.contains("/kept/bundles/").then_some("bundle")
}

/// A path without the parts that differ between lifecycles.
fn normalised_path(path: &str) -> String {
    let parts = path.split('/').filter(|part| !part.is_empty());
    let parts: Vec<&str> = parts
        .map(|part| match part {
            _ if part.starts_with(".new-") => ".new",
            _ if part.starts_with(".gone-") => ".gone",
            _ if is_run(part) => "RUN",
            other => other,
        })
        .collect();
    match parts.as_slice() {
        [] => "RUNS".to_owned(),
        parts => parts.join("/"),
    }
}

fn is_run(part: &str) -> bool {
    part.split_once('-').is_some_and(|(operation, attempt)| {
        operation.len() == 32 && attempt.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::{Step, Trace};

    const RUN: &str = "/tmp/x/kept/runs/01a1e1c353467266b0b4356252f3eb8b-1";

    fn labels(lines: &[String]) -> Vec<String> {
        let mut trace = Trace::default();
        let steps = lines.iter().filter_map(|line| trace.step(line));
        steps.map(|step| step.label).collect()
    }

    #[test]
    fn calls_with_lasting_effects_are_steps() {
        let new = "/tmp/x/kept/runs/.new-077c7163fda04dd69160c18bae068e53";
        for (line, label) in [
            (
                format!("7 mkdir(\"{new}/state\", 0700) = 0 (DELAYED)"),
                "make .new/state",
            ),
            (
                format!("7 mknodat(AT_FDCWD</tmp/x>, \"{new}/wake\", S_IFIFO|0600) = 0"),
                "make .new/wake",
            ),
            (
                format!(
                    "7 renameat2(AT_FDCWD</tmp/x>, \"{new}\", AT_FDCWD</tmp/x>, \"{RUN}\", RENAME_NOREPLACE) = 0"
                ),
                "name RUN",
            ),
            (
                format!("7 fsync(4<{RUN}/result/progress>) = 0"),
                "sync RUN/result/progress",
            ),
            ("7 fsync(4</tmp/x/kept/runs>) = 0".to_owned(), "sync RUNS"),
            (
                "7 fdatasync(14</tmp/x/one.db-wal>) = 0".to_owned(),
                "commit",
            ),
            (
                "7 unlinkat(22</tmp/x/kept/runs/.gone-12>, \"lock\", 0) = 0".to_owned(),
                "remove .gone",
            ),
            (
                format!(
                    "7 execve(\"/proc/self/fd/9\", [\"/b/sutler-supervisor\", \"{RUN}\"], 0x1 /* 0 vars */) = 0"
                ),
                "start supervisor",
            ),
            (
                "7 sendto(9<socket:[1]>, \"POST /containers/create?name=x HTTP/1.1\\r\", 145, MSG_NOSIGNAL, NULL, 0) = 145".to_owned(),
                "ask engine to create",
            ),
            (
                "7 sendto(9<socket:[1]>, \"DELETE /v1.41/containers/sutler-1?v=true HTTP\", 9, 0, NULL, 0) = 9".to_owned(),
                "ask engine to remove",
            ),
            (
                "7 execve(\"/proc/self/exe\", [\"/proc/self/exe\", \"--launch\", \"1\"], 0x1) = 0"
                    .to_owned(),
                "start launcher",
            ),
            (
                "7 execve(\"/tmp/x/kept/bundles/sha256-1/./run\", [\"run\"], 0x1) = 0".to_owned(),
                "start bundle",
            ),
        ] {
            assert_eq!(labels(&[line]), [label]);
        }
    }

    #[test]
    fn failed_calls_and_calls_elsewhere_are_not_steps() {
        for line in [
            format!("7 mkdir(\"{RUN}\", 0700) = -1 EEXIST (File exists)"),
            "7 mkdir(\"/tmp/y\", 0700) = 0".to_owned(),
            "7 fdatasync(13</tmp/x/one.db>) = 0".to_owned(),
            "7 sendto(9<socket:[1]>, \"HTTP/1.1 200 OK\\r\", 9, 0, NULL, 0) = 9".to_owned(),
            "7 execve(\"/usr/bin/psql\", [\"psql\"], 0x1) = 0".to_owned(),
            "7 +++ killed by SIGKILL +++".to_owned(),
            String::new(),
        ] {
            assert!(labels(&[line]).is_empty());
        }
    }

    #[test]
    fn a_call_is_a_step_when_it_returns() {
        let mut trace = Trace::default();
        let begun = format!("7 rename(\"{RUN}/.exit\", \"{RUN}/exit\" <unfinished ...>");
        assert_eq!(trace.step(&begun), None);
        let of_another = trace.step("8 fdatasync(14</tmp/x/one.db-wal>) = 0");
        assert_eq!(of_another.map(|step| step.thread), Some(8));
        let expected = Step {
            thread: 7,
            label: "name RUN/exit".to_owned(),
        };
        assert_eq!(trace.step("7 <... rename resumed>) = 0"), Some(expected));
    }
}
