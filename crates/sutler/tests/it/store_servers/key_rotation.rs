//! A key is rotated while two replicas work: known, current, everything sealed with it, the old one retired. A
//! replica that has only the new key then knows everything.

use super::ServerKind;
use super::fixture::{Fixture, LARGE, Replica};
use serde_json::Value;
use std::process::{Output, Stdio};

/// Number of runs that are killed before one ends.
const KILLED: usize = 3;

fn store(fixture: &Fixture, arguments: &[&str]) -> Output {
    let mut command = fixture.command();
    let arguments = arguments.iter().chain(&["--config", "sutler.yaml"]);
    let output = command.arg("store").args(arguments).output();
    output.expect("the program runs")
}

#[track_caller]
fn done(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
fn done_json(output: &Output) -> Value {
    serde_json::from_str(&done(output)).expect("JSON")
}

/// Lets replicas read the key file again.
fn reload(replicas: [&Replica; 2]) {
    for replica in replicas {
        replica.0.signal("HUP");
        replica
            .0
            .until_logged("the keys of the store were read again");
        replica.0.until_logged("the configuration was reloaded");
    }
}

/// Kills runs at different moments, while a replica accepts instances; returns those.
fn killed_runs(fixture: &Fixture, replica: &Replica) -> Vec<(String, String)> {
    let mut accepted = Vec::new();
    for run in 0..KILLED {
        let mut command = fixture.command();
        command
            .args(["store", "rekey", "--config", "sutler.yaml"])
            .stdout(Stdio::null());
        let mut process = command.spawn().expect("the program runs");
        for n in 0..=run {
            let id = format!("meanwhile-{run}-{n}");
            let operation = replica.provision(&id, 0).operation();
            accepted.push((id, operation));
        }
        process.kill().expect("it is ours");
        process.wait().expect("it ends");
    }
    accepted
}

pub(super) fn a_key_is_rotated_while_replicas_run(kind: &ServerKind) {
    let Some(server) = (kind.shared)() else {
        return;
    };
    let fixture = Fixture::over(&server.fresh_database(), "");
    let (one, other) = (fixture.replica(), fixture.replica());
    let mut accepted = Vec::new();
    for n in 0..5 {
        let id = format!("i{n}");
        let operation = one.provision(&id, 0).operation();
        assert_eq!(one.until_it_ends(&id, &operation), "succeeded");
        accepted.push((id, operation));
    }
    assert_eq!(one.update("i0", LARGE).status, 200);
    assert_eq!(one.bind("i0", "before").status, 201);
    let slow = one.provision("slow", 6000).operation();
    one.until_it_works("slow", &slow);

    done(&store(&fixture, &["keys", "make"]));
    reload([&one, &other]);
    done(&store(&fixture, &["keys", "use", "k2"]));
    reload([&one, &other]);
    let refused = store(&fixture, &["keys", "retire", "k1"]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{text}");
    assert!(text.contains("k1 still seals"), "{text}");
    accepted.extend(killed_runs(&fixture, &other));
    let end = done_json(&store(&fixture, &["rekey", "-o", "json"]));
    assert_eq!(end["state"], "complete", "{end}");
    let again = done_json(&store(&fixture, &["rekey", "-o", "json"]));
    assert_eq!(again["resealed"]["documents"], 0, "{again}");
    assert_eq!(again["resealed"]["operations"], 0, "{again}");
    done(&store(&fixture, &["keys", "retire", "k1"]));

    accepted.push(("slow".to_owned(), slow.clone()));
    for (id, operation) in &accepted {
        assert_eq!(other.until_it_ends(id, operation), "succeeded", "{id}");
    }
    let history = one.admin("operations?state=succeeded");
    let ran = history["items"].as_array().expect("operations");
    let slow = ran.iter().find(|it| it["id"] == slow.as_str());
    let slow = slow.expect("the slow one");
    assert_eq!((&slow["attempt"], &slow["claims"]), (&1.into(), &1.into()));
    one.0.ended();
    other.0.ended();
    opens_with_the_new_key(&fixture, &accepted);
}

/// A replica that was started with the file without the old key knows everything.
fn opens_with_the_new_key(fixture: &Fixture, accepted: &[(String, String)]) {
    let keys = String::from_utf8(fixture.file("store.key")).expect("text");
    let left = keys.lines().filter(|line| !line.starts_with('#'));
    let left: Vec<&str> = left.filter_map(|line| line.split(':').next()).collect();
    assert_eq!(left, ["k2"]);
    let replica = fixture.replica();
    for (id, operation) in accepted {
        let fetched = replica.request("GET", id, &Value::Null);
        assert_eq!(fetched.status, 200, "{id}: {fetched:?}");
        let polled = replica.poll(id, operation);
        assert_eq!(polled.status, 200, "{id}: {polled:?}");
    }
    let before = replica.request("GET", "i0/service_bindings/before", &Value::Null);
    assert_eq!(before.status, 200, "{before:?}");
    assert_eq!(replica.bind("i0", "after").status, 201);
    assert_eq!(replica.delete("i0/service_bindings/before").status, 200);
    replica.0.ended();
    done(&store(fixture, &["check"]));
}
