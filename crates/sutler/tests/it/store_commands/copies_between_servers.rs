//! From store to store: PostgreSQL under load, SQLite, etcd, MariaDB, and MongoDB if it is available. The
//! program is killed repeatedly during every copy, and at the end a broker over the last store knows
//! everything that a broker over the first one acknowledged.

use super::fixture::Source;
use crate::process::{folder, sutler};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use sutler_servers::{Demands, etcd, mariadb, mongodb, postgres};

/// Number of attempts to finish while the lease of a killed broker expires.
const TRIES: u32 = 200;
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// The copy from one store to another.
struct Move<'m> {
    folder: &'m Path,
    from: &'m str,
    to: &'m str,
}

impl Move<'_> {
    /// URLs contain passwords, so they are passed by the environment.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = sutler(self.folder);
        command
            .args(["store", "copy", "-o", "json"])
            .args(arguments)
            .env("SUTLER_COPY_FROM", self.from)
            .env("SUTLER_COPY_TO", self.to);
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("it runs")
    }

    /// Starts the copy and kills it, at another moment each time; returns how often it was still running.
    fn killed_again_and_again(&self) -> u32 {
        let mut killed = 0;
        for wait in [60, 120, 180, 240, 300, 400] {
            let mut process = self
                .command(&[])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("it runs");
            until_past(Duration::from_millis(wait));
            if process.try_wait().expect("it is ours").is_none() {
                killed += 1;
            }
            process.kill().expect("it is ours");
            process.wait().expect("it ends");
        }
        killed
    }

    /// Finishes as soon as the source does not change any more; returns the output.
    fn finish_eventually(&self) -> Value {
        let mut output = self.run(&["--finish"]);
        for _ in 0..TRIES {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            if output.status.success() {
                break;
            }
            let passes = [
                "still hold leases in the source",
                "the target did not answer",
            ];
            assert!(passes.iter().any(|it| text.contains(it)), "{text}");
            std::thread::sleep(PAUSE);
            output = self.run(&["--finish"]);
        }
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }
}

/// The moments of the kills.
fn until_past(wait: Duration) {
    std::thread::sleep(wait);
}

/// Counts of `store stats`, without values that are specific to a store.
fn counted(folder: &Path, url: &str) -> Value {
    let mut command = sutler(folder);
    command.args(["store", "stats", "-o", "json"]);
    let output = command
        .env("SUTLER_STORE__URL", url)
        .output()
        .expect("it runs");
    let stats: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut operations = stats["operations"].clone();
    // Running operations are copied as ready.
    let ready = |word: &str| stats["operations"][word].as_u64().unwrap_or_default();
    operations["ready"] = (ready("ready") + ready("running")).into();
    operations["running"] = 0.into();
    serde_json::json!({ "documents": stats["documents"], "operations": operations })
}

#[test]
fn a_store_is_copied_through_all_others_under_load_and_kills() {
    let folder = folder();
    let postgres = cfg!(feature = "postgres").then(postgres::shared);
    let Some(postgres) = postgres.flatten() else {
        return;
    };
    let first = postgres.fresh_database().url();
    // A transaction of a killed process stays open in MongoDB until its time limit.
    let brief = || {
        let brief = ["--setParameter", "transactionLifetimeLimitSeconds=2"];
        mongodb::own(Demands {
            arguments: brief.map(str::to_owned).into(),
            ..Demands::default()
        })
    };
    let mongodb = cfg!(feature = "mongodb").then(brief).flatten();
    let mut stores = vec![first.clone(), "sqlite:two.db".to_owned()];
    let others = [
        cfg!(feature = "etcd").then(etcd::shared).flatten(),
        cfg!(feature = "mysql").then(mariadb::shared).flatten(),
        mongodb.as_ref(),
    ];
    stores.extend(
        others
            .into_iter()
            .flatten()
            .map(|it| it.fresh_database().url()),
    );
    let last = &stores[stores.len() - 1];
    let acknowledged = leave_the_first(folder.path(), &first, &stores[1]);
    for pair in stores[1..].windows(2) {
        let next = Move {
            folder: folder.path(),
            from: &pair[0],
            to: &pair[1],
        };
        next.killed_again_and_again();
        let end = next.finish_eventually();
        assert_eq!(end["state"], "finished");
        assert_eq!(
            counted(folder.path(), &pair[0]),
            counted(folder.path(), &pair[1])
        );
    }
    let mut check = sutler(folder.path());
    check.args(["store", "check", "--key-file", "one.key"]);
    let checked = check
        .env("SUTLER_STORE__URL", last)
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.status.success(), "{text}");
    let broker = Source::start(folder.path(), last);
    for (instance, operation) in &acknowledged {
        let (status, state) = broker.until_ended(instance, operation);
        assert!(
            status == 200 && state == "succeeded",
            "{instance}: {status} {state}"
        );
    }
    broker.stop();
}

/// The first copy: a broker works all the time, and is killed at the end. Returns what it acknowledged.
fn leave_the_first(folder: &Path, from: &str, to: &str) -> Vec<(String, String)> {
    let source = Source::start(folder, from);
    let mut acknowledged = source.fill(20);
    let first = Move { folder, from, to };
    let stop = AtomicBool::new(false);
    let (killed, loaded) = std::thread::scope(|scope| {
        let copies = scope.spawn(|| {
            let killed = first.killed_again_and_again();
            let online = first.run(&[]);
            stop.store(true, Ordering::SeqCst);
            (killed, online)
        });
        let loaded = source.load(&stop);
        let (killed, online) = copies.join().expect("the copies");
        let text = String::from_utf8_lossy(&online.stdout).into_owned();
        assert_eq!(online.status.code(), Some(3), "caught up: {online:?}");
        assert!(text.contains("\"caught_up\""), "{text}");
        (killed, loaded)
    });
    assert!(killed > 1, "it was killed in the middle {killed} times");
    assert!(loaded.len() > 20, "{} under way", loaded.len());
    acknowledged.extend(loaded);
    let slow = source.provision("last", 1500).expect("it is taken");
    acknowledged.push(("last".to_owned(), slow));
    source.kill();
    let end = first.finish_eventually();
    assert_eq!(end["state"], "finished");
    assert_eq!(counted(folder, from), counted(folder, to));
    acknowledged
}
