//! Several secrets and parameters with conditions, from the configuration of a real broker to a script.

use super::fixture::Fixture;
use crate::process::folder;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

const MANIFEST: &str = "\
name: disks
description: Disks.
secrets:
  - server
  - {name: tls, keys: [ca.pem]}
plans:
  - name: p
    description: One.
    parameters:
      - {name: storage, type: string, enum: [none, disk, cloud], default: none}
      - name: gigabytes
        type: integer
        minimum: 1
        required: true
        dependencies: [{key: storage, value: [disk, cloud]}]
";

const PROVISION: &str = r#"#!/bin/sh
set -e
test "$(cat "$SUTLER_SECRETS_DIR/apb-server/password")" = "hush: 'quoted'"
test "$(cat "$SUTLER_SECRETS_DIR/apb-tls/ca.pem")" = "$(printf 'first: line\n second line')"
grep -q '"gigabytes":3' "$SUTLER_VARS_FILE"
"#;

/// Regression: R36, R37.
#[test]
fn two_secrets_and_a_conditional_parameter_reach_a_script_as_they_are() {
    let folder = folder();
    let actions = folder.path().join("actions");
    fs::create_dir(&actions).expect("a folder");
    fs::write(folder.path().join("bundle.yml"), MANIFEST).expect("a manifest");
    for (action, text) in [("provision", PROVISION), ("deprovision", "#!/bin/sh\n")] {
        fs::write(actions.join(action), text).expect("a script");
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(actions.join(action), mode).expect("permissions");
    }
    let secrets = json!({
        "server": { "password": "hush: 'quoted'" },
        "tls": { "ca.pem": "first: line\n second line\n" },
    });
    let fixture = Fixture::open(folder.path(), &secrets);
    for (parameters, named) in [
        (json!({ "gigabytes": 3 }), "storage"),
        (json!({ "storage": "none", "gigabytes": 3 }), "storage"),
        (json!({ "storage": "disk" }), "gigabytes"),
    ] {
        let refused = fixture.expect_status(400, "PUT", "i", json!({ "parameters": parameters }));
        let why = refused["description"].as_str().unwrap_or_default();
        assert!(why.contains(named), "{parameters}: {why}");
    }
    let parameters = json!({ "storage": "disk", "gigabytes": 3 });
    fixture.expect_status(201, "PUT", "i", json!({ "parameters": parameters }));
    fixture.expect_status(200, "DELETE", "i", Value::Null);
}
