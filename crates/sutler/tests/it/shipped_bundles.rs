//! The bundles that come with Sutler, against real servers: each is tested like by its author (`sutler bundle
//! test`), offered by a real broker and checked against the protocol (`sutler check`), and leaves its server
//! unchanged. Formats and runs of bundles are tested in `sutler-bundle` and `sutler-runner`.

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
    // Its version is semantic, so that instances can be upgraded to it.
    fixture.proves(&[
        "plan-maintenance-info",
        "provision-maintenance-same",
        "provision-maintenance-conflict",
        "fetch-instance-maintenance",
        "update-maintenance-same",
        "update-maintenance-conflict",
    ]);
}
