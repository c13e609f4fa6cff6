//! A child process: this test program, with a role given in its environment.
//!
//! A role prints one line for each event; the test reads them. So a test can kill it,
//! trace it, or fill its disk.

use crate::fixture::{file, ids, insert};
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use sutler_journal::{CommitError, Store};
use sutler_store_sqlite::SqliteStore;
use tempfile::TempDir;

const PART: &str = "SUTLER_TEST_PART";
const FILE: &str = "SUTLER_TEST_FILE";
/// Number of documents that a role writes.
pub(crate) const COUNT: usize = 60;

/// A process with a role.
pub(crate) struct Child {
    process: std::process::Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Child {
    /// Starts a role on the store in a directory, under another program if one is given.
    pub(crate) fn start(part: &str, directory: &TempDir, below: &[&str]) -> Self {
        let own = std::env::current_exe().expect("this program");
        let own = own.to_str().expect("a path");
        let words = ["--exact", "child::runs_its_role", "--nocapture", "-q"];
        let line: Vec<&str> = below.iter().copied().chain([own]).chain(words).collect();
        let mut process = Command::new(line[0])
            .args(&line[1..])
            .env(PART, part)
            .env(FILE, file(directory))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a second process");
        let output = process.stdout.take().expect("its output");
        Self {
            process,
            lines: BufReader::new(output).lines(),
        }
    }

    /// Waits for this line.
    pub(crate) fn line(&mut self, wanted: &str) {
        let found = self.lines.any(|line| line.is_ok_and(|line| line == wanted));
        assert!(found, "the other process never said {wanted:?}");
    }

    /// Waits for its end; returns every line it printed.
    pub(crate) fn finish(mut self) -> Vec<String> {
        let said = self.lines.by_ref().map_while(Result::ok).collect();
        let status = self.process.wait().expect("its end");
        assert!(status.success(), "{status}: {said:?}");
        said
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        self.process.kill().expect("a living process");
        self.process.wait().expect("its end");
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn print_line(what: &str) {
    writeln!(std::io::stdout(), "{what}").expect("a listener");
}

/// Does nothing unless this process was started with a role.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_its_role() {
    let (Ok(part), Ok(path)) = (std::env::var(PART), std::env::var(FILE)) else {
        return;
    };
    let path = PathBuf::from(path);
    let store = SqliteStore::open(&path).await.expect("a store");
    match part.as_str() {
        "hold" => {
            print_line("open");
            let _ = std::io::stdin().read_line(&mut String::new());
        }
        "count" => count(&store).await,
        "persist" => persist(&store).await,
        "fill" => fill(&store, &path).await,
        other => panic!("no part {other}"),
    }
}

/// Commits for ever, and prints a line after each.
async fn count(store: &SqliteStore) {
    for n in 0.. {
        store
            .commit(&insert(&format!("{n:06}")))
            .await
            .expect("a commit");
        print_line(&format!("kept {n:06}"));
    }
}

/// Commits, repeats unknown or refused commits, and prints the results.
async fn persist(store: &SqliteStore) {
    for n in 0..COUNT {
        let commit = insert(&format!("{n:06}"));
        loop {
            match store.commit(&commit).await {
                Ok(()) => break,
                Err(CommitError::Unknown(_)) => print_line("unknown"),
                Err(CommitError::NotWritten(_)) => print_line("refused"),
                Err(CommitError::Stale(which)) => panic!("applied twice? {which:?}"),
            }
        }
    }
    assert_eq!(ids(store).await.len(), COUNT);
    print_line("all kept");
}

/// Commits until the disk is full, frees space, and continues.
async fn fill(store: &SqliteStore, path: &Path) {
    let ballast = path.with_extension("ballast");
    std::fs::write(&ballast, vec![7; 256 * 1024]).expect("ballast");
    let mut kept = Vec::new();
    for n in 0.. {
        let id = format!("{n:06}");
        match store.commit(&insert(&id)).await {
            Ok(()) => kept.push(id),
            Err(CommitError::NotWritten(cause)) => {
                print_line(&cause.to_string());
                break;
            }
            Err(other) => panic!("a full disk is no mystery: {other:?}"),
        }
    }
    assert_eq!(ids(store).await, kept, "all that was kept, and no more");
    std::fs::remove_file(&ballast).expect("room");
    store.commit(&insert("later")).await.expect("there is room");
    kept.push("later".to_owned());
    assert_eq!(ids(store).await, kept);
    print_line("went on");
}
