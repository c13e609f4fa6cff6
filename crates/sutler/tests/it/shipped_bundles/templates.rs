//! `sutler bundle new` creates a working bundle: it has no fault, and passes its own test.

use super::fixture::{Fixture, has, passes_its_test};
use crate::process::{folder, run_sutler};
use serde_json::json;

/// Creates a bundle from a template, and runs its test.
fn works(template: &str) {
    let folder = folder();
    let made = run_sutler(
        folder.path(),
        &["bundle", "new", "mine", "--template", template],
    );
    assert_eq!((made.code, made.stderr.as_str()), (Some(0), ""));
    let checked = run_sutler(folder.path(), &["bundle", "check", "--strict", "mine"]);
    assert_eq!(checked.stdout, "mine: 0 errors, 0 warnings\n");
    let bundle = folder.path().join("mine");
    // Playbooks are slow: one example is enough, and `greeter-apb` is checked against the protocol.
    if template == "ansible" {
        let one = ["--example", "changed later"];
        return passes_its_test(&bundle, &json!({}), &one, 16);
    }
    passes_its_test(&bundle, &json!({}), &[], 29);
    Fixture::open(&bundle, &json!({})).keeps_every_rule();
}

#[test]
fn a_new_bundle_in_shell_passes_its_test_and_keeps_every_rule() {
    if has("jq", "apt-get install jq") {
        works("shell");
    }
}

#[test]
fn a_new_bundle_in_python_passes_its_test_and_keeps_every_rule() {
    if has("python3", "apt-get install python3") {
        works("python");
    }
}

#[test]
fn a_new_bundle_of_playbooks_passes_its_test() {
    if has("ansible-playbook", "apt-get install ansible-core") {
        works("ansible");
    }
}
