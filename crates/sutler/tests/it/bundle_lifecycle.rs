//! The lifecycle of one instance of a bundle, with a binding, on any store.

use crate::http_request::BrokerRequest;
use crate::process::{Broker, folder};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const MANIFEST: &str = r"
version: 1.0
name: lives
id: lives-id
description: Lives.
bindable: true
plans: [{name: small, id: small-id, description: A small one.}]
";
const QUERY: &str = "service_id=lives-id&plan_id=small-id";

/// The script of each action; it fails if the values set by earlier actions are missing.
const ACTIONS: [(&str, &str); 4] = [
    (
        "provision",
        r#"printf '{"db":"d1"}' > "$SUTLER_RESULT_DIR/state.json""#,
    ),
    (
        "bind",
        r#"grep -q '"state_db":"d1"' "${3#@}"
printf '{"user":"u1"}' > "$SUTLER_RESULT_DIR/credentials.json"
printf '{"login":"l1"}' > "$SUTLER_RESULT_DIR/binding_state.json"
printf '{"bound":true}' > "$SUTLER_RESULT_DIR/state.json""#,
    ),
    (
        "unbind",
        r#"grep -q '"binding_state_login":"l1"' "${3#@}"
grep -q '"user":"u1"' "${3#@}"
printf '{"bound":null}' > "$SUTLER_RESULT_DIR/state.json""#,
    ),
    (
        "deprovision",
        r#"grep -q '"state_db":"d1"' "${3#@}"
! grep -q state_bound "${3#@}""#,
    ),
];

fn write_bundle(at: &Path) {
    fs::create_dir_all(at.join("actions")).expect("a folder");
    fs::write(at.join("bundle.yml"), MANIFEST).expect("a manifest");
    for (action, text) in ACTIONS {
        let path = at.join("actions").join(action);
        fs::write(&path, format!("#!/bin/sh\nset -e\n{text}\n")).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
    }
}

#[track_caller]
fn expect_status(broker: &Broker, method: &str, path: &str, body: &Value, expected: u16) -> Value {
    let request = BrokerRequest::new(method, &format!("/v2/service_instances/{path}"));
    let request = match body {
        Value::Null => request,
        body => request.json(body),
    };
    let answer = request.send(broker.address());
    assert_eq!(answer.status, expected, "{}", answer.text);
    let text = answer.text.split_once("\r\n\r\n");
    serde_json::from_str(text.map_or("", |(_, body)| body)).unwrap_or_default()
}

/// Provision, two bindings, unbind and deprovision; each gets the values set by the earlier actions.
pub(crate) fn unbinds_and_deprovisions(store: &str) {
    let folder = folder();
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.path(), open).expect("permissions");
    write_bundle(&folder.path().join("lives"));
    let config = format!("auth: none\nstore: {store}\nbundles: {{folder: lives, work: work}}\n");
    fs::write(folder.path().join("sutler.yaml"), config).expect("a file");
    let broker = Broker::start(folder.path(), &["broker", "--config", "sutler.yaml"]);
    let ids = json!({ "service_id": "lives-id", "plan_id": "small-id" });
    let mut body = ids.clone();
    body["organization_guid"] = json!("o");
    body["space_guid"] = json!("s");
    expect_status(&broker, "PUT", "i", &body, 201);
    let bound = expect_status(&broker, "PUT", "i/service_bindings/b", &ids, 201);
    assert_eq!(bound["credentials"], json!({ "user": "u1" }));
    let unbind = format!("i/service_bindings/b?{QUERY}");
    expect_status(&broker, "DELETE", &unbind, &Value::Null, 200);
    expect_status(&broker, "DELETE", &unbind, &Value::Null, 410);
    expect_status(&broker, "GET", "i/service_bindings/b", &Value::Null, 404);
    let deprovision = format!("i?{QUERY}");
    expect_status(&broker, "DELETE", &deprovision, &Value::Null, 200);
    expect_status(&broker, "DELETE", &deprovision, &Value::Null, 410);
}

/// Regression: R13.
#[test]
fn an_unbind_and_then_a_deprovision_work_in_memory_and_in_a_file() {
    for store in ["{url: 'memory:'}", "{url: 'sqlite:store.db'}"] {
        unbinds_and_deprovisions(store);
    }
}
