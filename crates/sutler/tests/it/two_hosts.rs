//! Brokers with bundles on two hosts over one PostgreSQL: a host is a working directory, and runs belong to
//! the one that started them ([why](../../../../docs/adr/0009-runs-belong-to-the-host-that-started-them.md)).

use crate::http_request::BrokerRequest;
use crate::process::{Broker, folder, sutler};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const OPERATOR: &str = "root:t0ps3cret";
const QUERY: &str = "service_id=slow-id&plan_id=small-id";
const TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Twice the lease of the brokers: a takeover would have happened by then.
const TWO_LEASES: Duration = Duration::from_secs(4);

/// A bundle whose provision waits for a file, and two configurations for two hosts.
struct Fixture {
    folder: TempDir,
}

/// A line of the log that runs write: action, attempt, and the processes of the run.
struct Entry {
    action: String,
    attempt: String,
    pids: Vec<String>,
}

impl Fixture {
    /// `None` if there is no server.
    fn new(on_lost: &str) -> Option<Self> {
        let server = sutler_servers::postgres::shared()?;
        let url = server.fresh_database().url();
        let folder = folder();
        let fixture = Self { folder };
        let open = |path: &Path, mode| {
            let mode = fs::Permissions::from_mode(mode);
            fs::set_permissions(path, mode).expect("permissions");
        };
        open(fixture.folder.path(), 0o755);
        fs::write(fixture.path("ledger"), "").expect("a ledger");
        open(&fixture.path("ledger"), 0o666);
        for host in ["a", "b"] {
            let config = format!(
                "auth: none\nadmin: {{users: [{{name: root, password: t0ps3cret}}]}}\n\
                 store: {{url: '{url}', key_file: store.key}}\ntimeouts: {{lease: 2s}}\n\
                 bundles: {{folder: bundles, work: work-{host}}}\n"
            );
            fs::write(fixture.path(&format!("{host}.yaml")), config).expect("a file");
        }
        let bundle = fixture.path("bundles/slow");
        fs::create_dir_all(bundle.join("actions")).expect("a folder");
        let manifest = format!(
            "version: 1.0\nname: slow\nid: slow-id\ndescription: Slow.\non_lost: {on_lost}\n\
             plans: [{{name: small, id: small-id, description: A small one.}}]\n"
        );
        fs::write(bundle.join("bundle.yml"), manifest).expect("a manifest");
        let (run_file, go) = (fixture.path("ledger"), fixture.path("go"));
        let note = format!(
            "echo \"$SUTLER_ACTION $SUTLER_ATTEMPT $$ $PPID\" >> {}",
            run_file.display()
        );
        let waits = format!(
            "while ! test -e {}; do sleep 0.02; done\n\
             printf '{{\"db\":\"d1\"}}' > \"$SUTLER_RESULT_DIR/state.json\"",
            go.display()
        );
        for (action, text) in [("provision", waits.as_str()), ("deprovision", "")] {
            let path = bundle.join("actions").join(action);
            fs::write(&path, format!("#!/bin/sh\nset -e\n{note}\n{text}\n")).expect("a script");
            open(&path, 0o755);
        }
        Some(fixture)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn broker(&self, host: &str) -> Broker {
        let config = format!("{host}.yaml");
        Broker::start(self.folder.path(), &["broker", "--config", &config])
    }

    /// Lets provisions end.
    fn go(&self) {
        fs::write(self.path("go"), "").expect("a file");
    }

    fn run_records(&self) -> Vec<Entry> {
        let text = fs::read_to_string(self.path("ledger")).unwrap_or_default();
        let entry = |line: &str| {
            let mut words = line.split_whitespace().map(str::to_owned);
            let (action, attempt) = (words.next()?, words.next()?);
            let pids = words.collect();
            Some(Entry {
                action,
                attempt,
                pids,
            })
        };
        text.lines().filter_map(entry).collect()
    }

    /// The runs, with their attempts.
    fn ran(&self) -> Vec<String> {
        let entries = self.run_records();
        let shown = entries
            .iter()
            .map(|it| format!("{} {}", it.action, it.attempt));
        shown.collect()
    }

    /// Number of runs that left something on a host.
    fn runs_of(&self, host: &str) -> usize {
        let runs = self.path(&format!("work-{host}/runs"));
        fs::read_dir(runs).map_or(0, |it| it.count())
    }

    /// Requests an instance and waits until its run has started.
    fn begin(&self, broker: &Broker) -> String {
        let body = json!({
            "service_id": "slow-id", "plan_id": "small-id", "organization_guid": "o", "space_guid": "s",
        });
        let path = "/v2/service_instances/i?accepts_incomplete=true";
        let answer = expect_status(broker, &BrokerRequest::new("PUT", path).json(&body), 202);
        until("it runs", || self.ran() == ["provision 1"]);
        answer["operation"]
            .as_str()
            .expect("an operation")
            .to_owned()
    }
}

#[track_caller]
fn expect_status(broker: &Broker, request: &BrokerRequest, expected: u16) -> Value {
    let answer = request.send(broker.address());
    assert_eq!(answer.status, expected, "{}", answer.text);
    let text = answer.text.split_once("\r\n\r\n");
    serde_json::from_str(text.map_or("", |(_, body)| body)).unwrap_or_default()
}

fn admin(broker: &Broker, path: &str) -> Value {
    let request = BrokerRequest::get(&format!("/admin/v1/{path}")).user(OPERATOR);
    expect_status(broker, &request, 200)
}

fn poll(broker: &Broker, operation: &str) -> Value {
    let path = format!("/v2/service_instances/i/last_operation?operation={operation}");
    expect_status(broker, &BrokerRequest::get(&path), 200)["state"].clone()
}

fn delete(broker: &Broker) {
    let path = format!("/v2/service_instances/i?{QUERY}");
    expect_status(broker, &BrokerRequest::new("DELETE", &path), 200);
}

/// Waits until a condition is true.
#[track_caller]
fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < TIMEOUT, "waited in vain until {what}");
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Checks that a condition stays true for this time.
#[track_caller]
fn holds_until(elapsed: Duration, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while begun.elapsed() < elapsed {
        assert!(holds(), "after {:?}", begun.elapsed());
        std::thread::sleep(POLL_INTERVAL * 5);
    }
}

/// Kills processes; those that have ended are ignored.
fn kill(pids: &[String]) {
    for pid in pids {
        let _ = Command::new("kill").args(["-9", pid]).output();
    }
}

fn is_there(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

#[test]
fn a_run_is_continued_by_its_own_host_and_by_no_other() {
    let Some(fixture) = Fixture::new("fail") else {
        return;
    };
    let first = fixture.broker("a");
    let other = fixture.broker("b");
    let operation = fixture.begin(&first);
    first.signal("KILL");
    drop(first);
    fixture.go();
    let claims = || admin(&other, &format!("operations/{operation}"))["claims"].clone();
    holds_until(TWO_LEASES, || claims() == 1);
    assert_eq!(poll(&other, &operation), "in progress");
    let queues = admin(&other, "stats")["queues"].clone();
    let host = fs::read_to_string(fixture.path("work-a/host")).expect("a name");
    assert!(
        queues.to_string().contains(host.trim()),
        "operators see where it waits: {queues}"
    );
    let first = fixture.broker("a");
    until("it has ended", || poll(&other, &operation) == "succeeded");
    assert_eq!(fixture.ran(), ["provision 1"], "one run");
    delete(&other);
    assert_eq!(fixture.ran(), ["provision 1", "deprovision 1"]);
    until("nothing is left", || {
        fixture.runs_of("a") + fixture.runs_of("b") == 0
    });
    drop(first);
}

#[test]
fn an_operation_of_a_lost_host_is_abandoned_by_an_operator_and_cleaned_up_elsewhere() {
    let Some(fixture) = Fixture::new("rerun") else {
        return;
    };
    let first = fixture.broker("a");
    let other = fixture.broker("b");
    let operation = fixture.begin(&first);
    first.signal("KILL");
    drop(first);
    let ordered = sutler(fixture.folder.path())
        .env("SUTLER_ADMIN_PASSWORD", "t0ps3cret")
        .args(["admin", "--user", "root", "--url"])
        .arg(format!("http://{}/admin", other.address()))
        .args([
            "instances",
            "abandon",
            "i",
            "--reason",
            "the host burnt down",
            "--yes",
        ])
        .output()
        .expect("the program runs");
    assert!(ordered.status.success(), "{ordered:?}");
    until("it was given up", || poll(&other, &operation) == "failed");
    let audit = admin(&other, "audit?verb=abandon")["items"].to_string();
    assert!(audit.contains("the host burnt down"), "{audit}");
    delete(&other);
    assert_eq!(fixture.ran(), ["provision 1", "deprovision 1"]);
    // The host was not lost: its remaining processes are ended, and nothing runs again.
    let pids = fixture.run_records().remove(0).pids;
    assert!(
        pids.iter().all(|pid| is_there(pid)),
        "the run outlived its broker"
    );
    let first = fixture.broker("a");
    until("the run is ended", || !pids.iter().any(|pid| is_there(pid)));
    until("nothing is left", || {
        fixture.runs_of("a") + fixture.runs_of("b") == 0
    });
    assert_eq!(fixture.ran().len(), 2);
    drop(first);
}

#[test]
fn a_host_that_lost_power_follows_on_lost_of_the_bundle() {
    for (on_lost, state, ran) in [
        ("fail", "failed", vec!["provision 1"]),
        ("rerun", "succeeded", vec!["provision 1", "provision 2"]),
    ] {
        let Some(fixture) = Fixture::new(on_lost) else {
            return;
        };
        let first = fixture.broker("a");
        let operation = fixture.begin(&first);
        first.signal("KILL");
        drop(first);
        kill(&fixture.run_records().remove(0).pids);
        fixture.go();
        let first = fixture.broker("a");
        until("it has ended", || poll(&first, &operation) != "in progress");
        assert_eq!(poll(&first, &operation), state, "{on_lost}");
        assert_eq!(fixture.ran(), ran, "{on_lost}");
        delete(&first);
        until("nothing is left", || fixture.runs_of("a") == 0);
    }
}

#[test]
fn two_brokers_on_one_host_need_two_working_directories() {
    let Some(fixture) = Fixture::new("fail") else {
        return;
    };
    fixture.go();
    let first = fixture.broker("a");
    let refused = sutler(fixture.folder.path())
        .args(["broker", "--config", "a.yaml", "--listen", "127.0.0.1:0"])
        .output()
        .expect("the program runs");
    assert!(!refused.status.success());
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(
        stderr.contains("give each broker a folder of its own"),
        "{stderr}"
    );
    let other = fixture.broker("b");
    let operation = fixture.begin(&first);
    until("it has ended", || poll(&other, &operation) == "succeeded");
    delete(&other);
    until("nothing is left", || {
        fixture.runs_of("a") + fixture.runs_of("b") == 0
    });
}
