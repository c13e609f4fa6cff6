//! Bundles in the layout of Automation Broker, run by `ansible-playbook`: ours, and an unmodified one.

use super::fixture::{Fixture, has, passes_its_test, repository_bundle};
use crate::process::folder;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const HOW: &str = "apt-get install ansible-core";

#[test]
fn the_old_bundle_passes_its_test_and_keeps_every_rule() {
    if !has("ansible-playbook", HOW) {
        return;
    }
    let greeter = repository_bundle("greeter-apb");
    passes_its_test(&greeter, &json!({}), &[], 16);
    Fixture::open(&greeter, &json!({})).keeps_every_rule();
}

/// Ansible evaluates templates in its extra variables; a template can run commands.
#[test]
fn texts_of_users_and_stored_texts_are_never_evaluated_as_templates() {
    if !has("ansible-playbook", HOW) {
        return;
    }
    let fixture = Fixture::open(&repository_bundle("greeter-apb"), &json!({}));
    let template = "{{lookup('pipe','echo ran')}}";
    let parameters = json!({ "parameters": { "greeting": template } });
    fixture.expect_status(201, "PUT", "i", parameters);
    let bound = fixture.expect_status(201, "PUT", "i/service_bindings/b", Value::Null);
    assert_eq!(bound["credentials"]["GREETING"], template, "{bound}");
    let change = json!({ "parameters": { "greeting": "{% set x = 1 %}{{x}}{# c #}" } });
    fixture.expect_status(200, "PATCH", "i", change);
    let bound = fixture.expect_status(201, "PUT", "i/service_bindings/c", Value::Null);
    let text = bound["credentials"]["GREETING"].as_str();
    assert_eq!(text, Some("{% set x = 1 %}{{x}}{# c #}"), "{bound}");
    for binding in ["b", "c"] {
        let path = format!("i/service_bindings/{binding}");
        fixture.expect_status(200, "DELETE", &path, Value::Null);
    }
    fixture.expect_status(200, "DELETE", "i", Value::Null);
}

/// A key cannot be marked as literal, and a loop over the keys evaluates it.
#[test]
fn keys_of_users_and_stored_keys_are_never_evaluated_as_templates() {
    if !has("ansible-playbook", HOW) {
        return;
    }
    const MANIFEST: &str = "name: labels\ndescription: Labels.\nbindable: true\nentrypoint: playbooks\n\
        plans: [{name: p, description: One., parameters: \
        [{name: labels, type: object}, {name: label, type: string}]}]\n";
    const PROVISION: &str = r#"
- hosts: localhost
  gather_facts: false
  connection: local
  tasks:
    - asb_encode_binding:
        fields: "{{ {label: 1, 'plain': 2} }}"
"#;
    const BIND: &str = r#"
- hosts: localhost
  gather_facts: false
  connection: local
  tasks:
    - set_fact:
        keys: "{{ keys | default([]) + [item.key] }}"
      loop: "{{ _apb_provision_creds | dict2items }}"
    - asb_encode_binding:
        fields:
          KEYS: "{{ keys | join(' ') }}"
"#;
    let bundle = folder();
    let playbooks = bundle.path().join("playbooks");
    fs::create_dir(&playbooks).expect("a folder");
    fs::write(bundle.path().join("bundle.yml"), MANIFEST).expect("a manifest");
    fs::write(playbooks.join("provision.yml"), PROVISION).expect("a playbook");
    fs::write(playbooks.join("bind.yml"), BIND).expect("a playbook");
    let fixture = Fixture::open(bundle.path(), &json!({}));
    let template = "{{lookup('pipe','echo ran')}}";
    // The key of the credentials is a text of the user.
    let parameters = json!({ "label": template, "labels": { "a": template } });
    fixture.expect_status(201, "PUT", "i", json!({ "parameters": parameters }));
    let bound = fixture.expect_status(201, "PUT", "i/service_bindings/b", Value::Null);
    assert_eq!(bound["credentials"]["KEYS"], "plain", "{bound}");
    let parameters = json!({ "label": "x", "labels": { template: 1 } });
    let body = json!({ "parameters": parameters });
    let refused = fixture.expect_status(400, "PUT", "j", body);
    let why = refused["description"].as_str().unwrap_or_default();
    assert!(why.contains("labels") && !why.contains("echo"), "{why}");
}

/// Its roles record their state in the folder `diary`, and call the five modules by their old names.
#[test]
fn an_unmodified_bundle_of_the_old_layout_carries_its_state_from_provision_to_deprovision() {
    if !has("ansible-playbook", HOW) {
        return;
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/shipped_bundles");
    let fixture = Fixture::open(&here.join("keepsake-apb"), &json!({}));
    let diary = fixture.open_folder("diary");
    let noted = |action: &str| -> Value {
        let path = diary.join(format!("{action}.json"));
        let text = fs::read_to_string(path).expect("the action was run");
        serde_json::from_str(&text).expect("JSON")
    };

    let parameters = json!({ "diary": diary, "motto": "tempus fugit" });
    let later = "i?accepts_incomplete=true";
    fixture.expect_status(202, "PUT", later, json!({ "parameters": parameters }));
    fixture.until_progress("i", "10% - carving");
    fs::write(diary.join("wood"), "").expect("a file");
    fixture.until_done("i");
    assert_eq!(noted("provision"), json!({}), "nothing is remembered yet");
    let fetched = fixture.expect_status(200, "GET", "i", Value::Null);
    assert_eq!(
        fetched["dashboard_url"],
        "https://keepsakes.example/keepsake-i"
    );
    assert_eq!(fetched["parameters"], parameters, "and nothing else");

    let bound = fixture.expect_status(201, "PUT", "i/service_bindings/b", Value::Null);
    let expected =
        json!({ "NAME": "keepsake-i", "LENT_BY": "owner of keepsake-i", "VISITOR": "b" });
    assert_eq!(bound["credentials"], expected);
    let mut remembered =
        json!({ "keepsake": "keepsake-i", "diary": diary, "motto": "tempus fugit" });
    assert_eq!(noted("bind"), remembered);

    let change = json!({ "parameters": { "motto": "carpe diem" } });
    fixture.expect_status(202, "PATCH", later, change);
    fixture.until_done("i");
    remembered["visitor"] = json!("b");
    assert_eq!(noted("update"), remembered, "what the bind set, too");

    remembered["motto"] = json!("carpe diem");
    fixture.expect_status(200, "DELETE", "i/service_bindings/b", Value::Null);
    let mut at_unbind = remembered.clone();
    at_unbind["goes"] = json!("b");
    assert_eq!(noted("unbind"), at_unbind);
    fixture.expect_status(200, "DELETE", "i", Value::Null);
    assert_eq!(noted("deprovision"), remembered);
    fixture.expect_status(404, "GET", "i", Value::Null);
}
