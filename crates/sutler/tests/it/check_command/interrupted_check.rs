//! A running check that gets real signals: the first starts a clean-up, the second makes it exit at once and
//! list what is left.

use super::stuck_broker::StuckBroker;
use super::{check, leaves_nothing, listed, started};
use crate::process::{Broker, folder, run_sutler, sutler};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit of every wait.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Pause between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A running check that has created something and whose provision takes this long.
fn under_way(folder: &Path, broker: &Broker, delay_ms: u64) -> Child {
    let given = format!("service-1: {{provision: {{delay_ms: {delay_ms}}}}}\n");
    std::fs::write(folder.join("given.yaml"), given).expect("a file");
    let process = check(folder, broker, &["--params", "given.yaml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    eventually(|| !listed(folder, broker, &["instances", "list"]).is_empty());
    process
}

fn eventually(condition: impl Fn() -> bool) {
    let until = Instant::now() + TIMEOUT;
    while !condition() {
        assert!(Instant::now() < until, "it never came to be so");
        std::thread::sleep(POLL_INTERVAL);
    }
}

fn signal(process: &Child, name: &str) {
    let pid = process.id().to_string();
    let sent = Command::new("kill").args(["-s", name, &pid]).status();
    assert!(sent.expect("kill runs").success());
}

/// Returns its exit code and its output.
fn ended(mut process: Child) -> (Option<i32>, String) {
    let mut text = String::new();
    let mut stdout = process.stdout.take().expect("it is piped");
    stdout.read_to_string(&mut text).expect("it prints text");
    let status = process.wait().expect("it ends");
    (status.code(), text)
}

#[test]
fn an_interrupted_check_removes_its_resources() {
    for name in ["INT", "TERM"] {
        let folder = folder();
        let broker = started(folder.path(), 1);
        let process = under_way(folder.path(), &broker, 1_000);
        signal(&process, name);
        let (code, text) = ended(process);
        assert_eq!(code, Some(130), "{text}");
        assert!(text.contains("stopped before its end"), "{text}");
        assert!(!text.contains("left behind"), "{text}");
        leaves_nothing(folder.path(), &broker);
    }
}

#[test]
fn a_check_that_is_interrupted_twice_exits_at_once_and_lists_what_is_left() {
    let folder = folder();
    let broker = StuckBroker::start(202, 202);
    let mut process = sutler(folder.path())
        .args(["check", &broker.url])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    eventually(|| broker.was_asked_to_make_something());
    // The first signal starts a clean-up that never ends here.
    signal(&process, "INT");
    let stderr = process.stderr.take().expect("it is piped");
    let mut line = String::new();
    let read = BufReader::new(stderr).read_line(&mut line);
    assert!(read.is_ok() && line.starts_with("stopping: "), "{line}");
    let before = Instant::now();
    signal(&process, "INT");
    let (code, text) = ended(process);
    assert!(before.elapsed() < TIMEOUT);
    assert_eq!(code, Some(130), "{text}");
    assert!(text.contains("left behind; remove it with:"), "{text}");
    let command = format!("'{}/v2/service_instances/", broker.url);
    assert!(text.contains(&command), "{text}");
}

#[test]
fn a_resource_that_cannot_be_removed_is_printed_with_the_command_that_removes_it() {
    let broker = StuckBroker::start(201, 500);
    let output = run_sutler(folder().path(), &["check", &broker.url]);
    assert_eq!(output.code, Some(4), "{}", output.stdout);
    let why = ": its delete was answered with 500\n  curl -X DELETE ";
    assert!(output.stdout.contains(why), "{}", output.stdout);
}
