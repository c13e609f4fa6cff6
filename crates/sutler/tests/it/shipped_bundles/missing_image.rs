//! An image that cannot be pulled, behind a real broker with a real engine.

use super::fixture::Fixture;
use crate::process::folder;
use serde_json::{Value, json};
use std::fs;
use sutler_servers::podman::shared;

/// Regression: R31.
#[test]
fn a_provision_whose_image_cannot_be_pulled_fails_with_a_sentence_at_once() {
    let Some(podman) = shared() else { return };
    let folder = folder();
    // A port without a listener.
    let manifest = "name: nowhere\ndescription: An image that is not there.\nimage: 127.0.0.1:9/not/there:1\nplans: [{name: p, description: One.}]\n";
    fs::write(folder.path().join("bundle.yml"), manifest).expect("a manifest");
    let container = json!({ "container": { "socket": podman.socket } });
    let fixture = Fixture::open_with(folder.path(), &json!({}), container);
    fixture.expect_status(202, "PUT", "i?accepts_incomplete=true", Value::Null);
    let why = fixture.until_failed("i");
    assert!(why.contains("cannot be run"), "{why}");
    // No operation is running: it can be requested again.
    fixture.expect_status(202, "PUT", "i?accepts_incomplete=true", Value::Null);
    fixture.until_failed("i");
}
