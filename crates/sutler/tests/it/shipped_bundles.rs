//! The bundles that come with Sutler, against real servers: each is tested as its author would
//! (`sutler bundle test`), offered by a real broker and held to the protocol (`sutler check`), and leaves its
//! server as it was. What a bundle is made of and how it is run is tested in `sutler-bundle` and `sutler-runner`.

mod ansible_bundles;
mod fixture;
mod missing_image;
mod packed_image;
mod postgresql;
mod redis;
mod secrets_and_conditions;
mod templates;

use fixture::{Fixture, passes_its_test, repository_bundle};
use serde_json::json;

#[test]
fn the_bundle_hello_passes_its_test_and_keeps_every_rule() {
    let hello = repository_bundle("hello");
    passes_its_test(&hello, &json!({}), &[], 29);
    let fixture = Fixture::open(&hello, &json!({}));
    fixture.keeps_every_rule();
    // Its version is a semantic one, so that instances can be moved on to it.
    fixture.proves(&[
        "plan-maintenance-info",
        "provision-maintenance-same",
        "provision-maintenance-conflict",
        "fetch-instance-maintenance",
        "update-maintenance-same",
        "update-maintenance-conflict",
    ]);
}
