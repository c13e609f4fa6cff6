//! The same for a bundle of playbooks in the old layout, run by Ansible.

use super::fixture::{BundleFolder, Fixture, search_processes};
use super::{planted, search_under_way};
use crate::http_request::BrokerRequest;
use crate::secrets_do_not_leak::canary;
use serde_json::{Value, json};
use std::process::{Command, Stdio};

const MANIFEST: &str = r"
version: 1.0
name: vault-apb
description: Keeps things.
bindable: true
async: optional
plans:
  - name: default
    description: The only one.
    free: true
    parameters:
      - {name: note, type: string, title: A note}
      - {name: password, type: string, title: A password, display_type: password}
";

fn write_bundle(bundle: &BundleFolder) {
    bundle.write("apb.yml", MANIFEST, false);
    let (held, go) = (
        bundle.mark("held", "provision"),
        bundle.mark("go", "provision"),
    );
    let (held, go) = (held.display(), go.display());
    // Values are concatenated, so that no playbook contains one.
    let play = format!(
        r#"- hosts: localhost
  gather_facts: false
  connection: local
  tasks:
    - asb_set_state:
        fields: {{kept: "{{{{ 'canary' }}}}.a-state.7f3a9c"}}
    - asb_encode_binding:
        fields: {{root: "{{{{ 'canary' }}}}.a-provision-credential.7f3a9c"}}
    - asb_last_operation:
        description: "half of it, with {{{{ password }}}}"
    - debug: {{msg: "it is {{{{ password }}}}"}}
    - copy: {{content: "", dest: {held}}}
    - wait_for: {{path: {go}, timeout: 60, sleep: 1}}
"#
    );
    bundle.write("playbooks/provision.yml", &play, false);
}

fn ansible_is_there() -> bool {
    let mut command = Command::new("ansible-playbook");
    let command = command.arg("--version").stdout(Stdio::null());
    command.status().is_ok_and(|it| it.success())
}

/// Regression: R40.
#[test]
fn no_secret_of_a_playbook_is_anywhere_while_it_runs_and_after_it() {
    if !ansible_is_there() {
        assert!(
            std::env::var_os("CI").is_none(),
            "install ansible-core: ansible-playbook is not there"
        );
        eprintln!("skipped: ansible-playbook is not there");
        return;
    }
    let canaries = planted();
    let fixture = Fixture::start("vault-apb", "text", write_bundle);
    let catalog = fixture.expect_status(BrokerRequest::get("/v2/catalog"), 200);
    let catalog: Value = serde_json::from_str(catalog.split("\r\n\r\n").nth(1).unwrap_or_default())
        .expect("a catalog");
    let service = &catalog["services"][0];
    let body = json!({
        "service_id": service["id"], "plan_id": service["plans"][0]["id"],
        "organization_guid": "o", "space_guid": "s",
        "parameters": {
            "note": canary("a parameter"), "password": canary("a secret parameter"),
        },
    });
    let path = "/v2/service_instances/i?accepts_incomplete=true";
    fixture.expect_status(BrokerRequest::new("PUT", path).json(&body), 202);
    fixture.until_held("provision");
    let polled = fixture.until_polled("i", "half of it");
    canaries.search(polled.as_bytes(), "a poll");
    search_under_way(&fixture, &canaries);
    fixture.release("provision");
    fixture.until_done("i", "succeeded");
    fixture.until_no_run_is_left();
    search_processes(&canaries);
    let here = fixture.here().to_owned();
    canaries.search(fixture.ended().as_bytes(), "the log");
    super::search_tree(&here, &canaries);
}
