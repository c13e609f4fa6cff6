//! Versions of bundles in the executable: listing versions and upgrades of instances, and upgrading them.

use crate::http_request::BrokerRequest;
use crate::process::{Broker, folder, sutler};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use sutler_servers::until;

const CONFIG: &str = "\
auth: none
store: {url: 'memory:'}
admin: {users: [{name: root, password: t0ps3cret}]}
bundles: {folder: bundles, work: work, look_every: 100ms}
";

/// Writes a version of the bundle. Its update stores the previous version, and its deprovision works only for
/// instances that it upgraded.
fn write(bundle: &Path, version: &str) {
    fs::create_dir_all(bundle.join("actions")).expect("a folder");
    let manifest = format!(
        "name: db\nid: db-id\nbundle_version: {version}\nupgrade: Connections break for a moment.\n\
         description: A database.\nplans: [{{name: small, id: small-id, description: For few.}}]\n"
    );
    let previous_version =
        "sed -n 's/.*\"_apb_previous_bundle_version\":\"\\([^\"]*\\)\".*/\\1/p' \"${3#@}\"";
    let remember = r#"printf '{"from":"%s"}' "$from" > "$SUTLER_RESULT_DIR/state.json""#;
    for (action, text) in [
        ("provision", String::new()),
        ("update", format!("from=$({previous_version})\n{remember}")),
        (
            "deprovision",
            format!("grep -q '\"state_from\":\"1.0.0\"' \"${{3#@}}\" # {version}"),
        ),
    ] {
        let path = bundle.join("actions").join(action);
        fs::write(&path, format!("#!/bin/sh\nset -e\n{text}\n")).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
    }
    fs::write(bundle.join("bundle.yml"), manifest).expect("a manifest");
}

fn send(broker: &Broker, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let request = BrokerRequest::new(method, &format!("/v2/{path}"));
    let request = match body.is_null() {
        true => request,
        false => request.json(body),
    };
    let answer = request.send(broker.address());
    let text = answer
        .text
        .split_once("\r\n\r\n")
        .map_or("", |(_, body)| body);
    (
        answer.status,
        serde_json::from_str(text).unwrap_or_default(),
    )
}

fn instances(folder: &Path, broker: &Broker, words: &[&str]) -> String {
    let url = format!("http://{}/admin", broker.address());
    let output = sutler(folder)
        .args(["admin", "--url", &url, "--user", "root", "instances"])
        .args(words)
        .env("SUTLER_ADMIN_PASSWORD", "t0ps3cret")
        .output()
        .expect("the program runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("it prints text")
}

/// Keeps the columns up to the versions; the others differ between runs.
fn first_columns(table: &str) -> String {
    let lines = table.lines();
    let end = table.find("CREATED").expect("a column");
    let cut = lines.map(|line| line[..end].trim_end().to_owned() + "\n");
    cut.collect()
}

#[test]
fn operators_see_versions_of_instances_and_platforms_upgrade_them() {
    let folder = folder();
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.path(), open).expect("permissions");
    let bundle = folder.path().join("bundles/db");
    write(&bundle, "1.0.0");
    fs::write(folder.path().join("sutler.yaml"), CONFIG).expect("a file");
    let broker = Broker::start(folder.path(), &["broker", "--config", "sutler.yaml"]);
    let wanted = json!({
        "service_id": "db-id", "plan_id": "small-id", "organization_guid": "o", "space_guid": "s",
    });
    for id in ["orders", "users"] {
        let path = format!("service_instances/{id}");
        assert_eq!(send(&broker, "PUT", &path, &wanted).0, 201);
    }
    write(&bundle, "1.1.0");
    let offered = json!({ "version": "1.1.0", "description": "Connections break for a moment." });
    until("the new version is offered", || {
        let (_, catalog) = send(&broker, "GET", "catalog", &Value::Null);
        let plan = &catalog["services"][0]["plans"][0];
        (plan["maintenance_info"] == offered).then_some(())
    });
    let listed = |words: &[&str]| instances(folder.path(), &broker, &[&["list"], words].concat());
    let before = first_columns(&listed(&[]));

    let upgrade = json!({ "service_id": "db-id", "maintenance_info": { "version": "1.1.0" } });
    let path = "service_instances/orders";
    let (status, answer) = send(&broker, "PATCH", path, &upgrade);
    assert_eq!(status, 200, "{answer}");
    let after = first_columns(&listed(&[]));
    assert_eq!(
        format!("{before}\n{after}"),
        include_str!("cli_messages/admin-upgrades.txt")
    );
    assert_eq!(listed(&["--upgradable", "-o", "name"]), "users\n");
    assert_eq!(listed(&["--upgradable", "false", "-o", "name"]), "orders\n");
    assert_eq!(listed(&["--version", "1.0.0", "-o", "name"]), "users\n");
    let shown = instances(folder.path(), &broker, &["show", "users", "-o", "json"]);
    let shown: Value = serde_json::from_str(&shown).expect("it is JSON");
    let versions = ["bundle", "version", "maintenance_version", "upgrade_to"].map(|it| &shown[it]);
    assert_eq!(
        versions,
        [
            &json!("db"),
            &json!("1.0.0"),
            &json!("1.0.0"),
            &json!("1.1.0")
        ]
    );
    let digest = shown["bundle_digest"].as_str().unwrap_or_default();
    assert!(digest.starts_with("sha256:"), "{shown}");
    let ids = "service_id=db-id&plan_id=small-id";
    let (status, answer) = send(&broker, "DELETE", &format!("{path}?{ids}"), &Value::Null);
    assert_eq!(status, 200, "{answer}");
}
