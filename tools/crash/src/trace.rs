//! Reads a system-call trace and searches for responses that were sent before their commit was on the disk.
//!
//! The trace is made by `strace -f -yy` ([`TRACER`]) of a victim that gets one request after the
//! other and is otherwise idle. Then the rule is simple: when a response is sent, the write-ahead log must
//! not contain writes that a finished sync does not cover.

use std::collections::{BTreeMap, BTreeSet};

/// Runs a program under trace, as its own parent's child; the trace's file is the next argument.
pub const TRACER: [&str; 7] = [
    "strace",
    "-D",
    "-f",
    "-yy",
    "-e",
    "trace=fdatasync,fsync,write,writev,pwrite64,pwritev,pwritev2,sendto,sendmsg",
    "-o",
];

/// One sent response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentAnswer {
    /// Its status.
    pub status: u16,
    /// Writes to the log that became durable since the previous response.
    pub durable: usize,
    /// Writes to the log that were not durable when it was sent.
    pub not_durable: usize,
}

/// Result of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceReport {
    /// Every response, in order.
    pub answers: Vec<SentAnswer>,
}

impl TraceReport {
    /// Responses that were sent too early: before a sync, or without any.
    pub fn early(&self) -> Vec<&SentAnswer> {
        let early = |it: &&SentAnswer| it.not_durable > 0 || it.durable == 0;
        self.answers.iter().filter(early).collect()
    }
}

/// Kind of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    LogWrite(u64),
    LogSync,
    Answer,
    Other,
}

#[derive(Debug, Default)]
struct Reader {
    writes: u64,
    /// Writes that have returned and are not known to be on the disk.
    written: BTreeSet<u64>,
    /// Writes that have not returned.
    writing: BTreeSet<u64>,
    /// Calls that have not returned, by thread.
    open: BTreeMap<String, Call>,
    /// Writes covered by each open sync, by thread.
    covers: BTreeMap<String, BTreeSet<u64>>,
    durable: usize,
    report: TraceReport,
}

/// Checks a trace.
pub fn read_trace(text: &str) -> TraceReport {
    let mut reader = Reader::default();
    for (thread, rest) in text.lines().filter_map(thread_and_rest) {
        reader.line(thread, rest);
    }
    reader.report
}

/// Whether the trace has reached the kill of a process.
pub fn ends_with_kill_of(text: &str, pid: u32) -> bool {
    let pid = pid.to_string();
    text.lines()
        .any(|line| thread_and_rest(line) == Some((&pid, "+++ killed by SIGKILL +++")))
}

/// Splits a line into thread and rest. Process ids are padded to five characters.
fn thread_and_rest(line: &str) -> Option<(&str, &str)> {
    let (thread, rest) = line.split_once(' ')?;
    Some((thread, rest.trim_start()))
}

impl Reader {
    fn line(&mut self, thread: &str, rest: &str) {
        if rest.starts_with("<... ") {
            if let Some(call) = self.open.remove(thread) {
                self.end(thread, call, succeeded(rest));
            }
            return;
        }
        let call = self.begin(thread, rest);
        if rest.ends_with("<unfinished ...>") {
            self.open.insert(thread.to_owned(), call);
        } else {
            self.end(thread, call, succeeded(rest));
        }
    }

    fn begin(&mut self, thread: &str, rest: &str) -> Call {
        let Some((name, arguments)) = rest.split_once('(') else {
            return Call::Other;
        };
        let file = arguments.split_once('<').map_or("", |(_, path)| path);
        // Sockets contain a `>`, so the end of a path is searched by its kind.
        let is_log = file
            .split('>')
            .next()
            .is_some_and(|path| path.ends_with("-wal"));
        if is_log && matches!(name, "fsync" | "fdatasync") {
            self.covers.insert(thread.to_owned(), self.written.clone());
            return Call::LogSync;
        }
        if is_log {
            self.writes += 1;
            self.writing.insert(self.writes);
            return Call::LogWrite(self.writes);
        }
        if file.starts_with("TCP")
            && let Some(status) = status_of(arguments)
        {
            let not_durable = self.written.len() + self.writing.len();
            let durable = std::mem::take(&mut self.durable);
            self.report.answers.push(SentAnswer {
                status,
                durable,
                not_durable,
            });
            return Call::Answer;
        }
        Call::Other
    }

    fn end(&mut self, thread: &str, call: Call, succeeded: bool) {
        match call {
            Call::LogWrite(number) => {
                self.writing.remove(&number);
                if succeeded {
                    self.written.insert(number);
                }
            }
            Call::LogSync => {
                let covered = self.covers.remove(thread).unwrap_or_default();
                if succeeded {
                    self.durable += covered.len();
                    self.written = self.written.difference(&covered).copied().collect();
                }
            }
            Call::Answer | Call::Other => {}
        }
    }
}

fn succeeded(rest: &str) -> bool {
    rest.rsplit_once(" = ")
        .is_some_and(|(_, result)| !result.starts_with('-'))
}

fn status_of(arguments: &str) -> Option<u16> {
    let (_, after) = arguments.split_once("HTTP/1.1 ")?;
    after.get(..3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{SentAnswer, ends_with_kill_of, read_trace};

    const WRITE: &str = "7 pwrite64(13</d/v.db-wal>, \"\"..., 24, 0) = 24\n";
    const SYNC: &str = "7 fdatasync(13</d/v.db-wal>) = 0\n";
    const ANSWER: &str = "8 writev(18<TCP:[127.0.0.1:1->127.0.0.1:2]>, \
                          [{iov_base=\"HTTP/1.1 201 Created\\r\\n\"}], 2) = 114\n";

    fn early(lines: &[&str]) -> usize {
        read_trace(&lines.concat()).early().len()
    }

    #[test]
    fn the_kill_is_found_with_short_and_long_process_ids() {
        for pid in ["1524  ", "31524 "] {
            let text = format!("{WRITE}{pid}+++ killed by SIGKILL +++\n");
            assert!(ends_with_kill_of(
                &text,
                pid.trim().parse().expect("a number")
            ));
            assert!(!ends_with_kill_of(&text, 152));
        }
    }

    #[test]
    fn an_answer_after_its_sync_is_right() {
        let report = read_trace(&[WRITE, WRITE, SYNC, ANSWER].concat());
        assert_eq!(
            report.answers,
            [SentAnswer {
                status: 201,
                durable: 2,
                not_durable: 0
            }]
        );
        assert!(report.early().is_empty());
    }

    #[test]
    fn an_answer_before_its_sync_is_early() {
        assert_eq!(early(&[WRITE, ANSWER, SYNC]), 1);
        assert_eq!(early(&[WRITE, SYNC, WRITE, ANSWER]), 1);
    }

    #[test]
    fn an_answer_without_any_write_is_early() {
        assert_eq!(early(&[WRITE, SYNC, ANSWER, ANSWER]), 1);
    }

    #[test]
    fn a_sync_that_has_not_returned_covers_nothing() {
        let begun = "7 fdatasync(13</d/v.db-wal> <unfinished ...>\n";
        let ended = "7 <... fdatasync resumed>) = 0\n";
        assert_eq!(early(&[WRITE, begun, ANSWER, ended]), 1);
        assert_eq!(early(&[WRITE, begun, ended, ANSWER]), 0);
    }

    #[test]
    fn a_sync_covers_only_earlier_writes() {
        let begun = "7 fdatasync(13</d/v.db-wal> <unfinished ...>\n";
        let ended = "7 <... fdatasync resumed>) = 0\n";
        let other = WRITE.replace("7 pwrite64", "9 pwrite64");
        assert_eq!(early(&[WRITE, begun, &other, ended, ANSWER]), 1);
    }

    #[test]
    fn a_failed_sync_and_a_sync_of_another_file_cover_nothing() {
        let failed = "7 fdatasync(13</d/v.db-wal>) = -1 EIO (Input/output error)\n";
        assert_eq!(early(&[WRITE, failed, ANSWER]), 1);
        assert_eq!(
            early(&[WRITE, &SYNC.replace("v.db-wal", "ledger"), ANSWER]),
            1
        );
    }
}
