//! Two replicas over one store: each knows what the other accepted, and both follow the rules.

use super::ServerKind;
use super::fixture::{Fixture, LARGE};
use crate::process::folder;
use serde_json::Value;

pub(super) fn two_replicas_share_one_store(kind: &ServerKind) {
    let Some(server) = (kind.shared)() else {
        return;
    };
    let fixture = Fixture::over(&server.fresh_database(), "");
    let (one, other) = (fixture.replica(), fixture.replica());
    let started = one.provision("i", 3000).operation();
    // The other one does not start it again.
    assert_eq!(other.provision("i", 3000).operation(), started);
    assert_eq!(other.provision("i", 3001).status, 409);
    assert_eq!(other.update("i", LARGE).status, 422);
    assert_eq!(other.until_it_ends("i", &started), "succeeded");
    let updated = other.update("i", LARGE);
    assert_eq!(updated.status, 200, "{updated:?}");
    let fetched = one.request("GET", "i", &Value::Null);
    assert_eq!(fetched.body["plan_id"], LARGE, "{fetched:?}");
    let (bound, again) = (one.bind("i", "b"), other.bind("i", "b"));
    assert_eq!((bound.status, again.status), (201, 200), "{again:?}");
    assert_eq!(bound.body["credentials"], again.body["credentials"]);
    assert_eq!(other.delete("i/service_bindings/b").status, 200);
    assert_eq!(one.delete("i").status, 200);
    assert_eq!(other.request("GET", "i", &Value::Null).status, 404);
    assert_eq!(other.delete("i").status, 410);
    let history = one.admin("operations?state=succeeded");
    let ran = history["items"].as_array().expect("operations");
    assert_eq!(ran.len(), 5, "each ran once: {history}");
    for operation in ran {
        assert_eq!(operation["attempt"], 1, "{operation}");
        assert_eq!(operation["claims"], 1, "{operation}");
    }
}

pub(super) fn a_check_passes(kind: &ServerKind) {
    let Some(server) = (kind.shared)() else {
        return;
    };
    let fixture = Fixture::over(&server.fresh_database(), "");
    let replica = fixture.replica();
    let elsewhere = folder();
    let checked = crate::process::sutler(elsewhere.path())
        .args(["check", &format!("http://{}", replica.0.address())])
        .args(["--user", "platform", "--plan", "small"])
        .env("SUTLER_CHECK_PASSWORD", "hush-hush")
        .output()
        .expect("the program runs");
    let stdout = String::from_utf8_lossy(&checked.stdout);
    assert_eq!(checked.status.code(), Some(0), "{stdout}");
    assert!(stdout.contains("conformant"), "{stdout}");
    let left = replica.admin("instances");
    assert_eq!(left["items"].as_array().map(Vec::len), Some(0), "{left}");
}
