//! Tests for mutants of `tools/mutants` that survived before.
//!
//! Each test names the mutation that no test had detected. The other files follow the checklist.

use crate::fixture::on_each_store;
use crate::fixture::test_catalog::{ASYNC, DB, FIXED, LARGE, SMALL, SYNC};

/// The bindings of one plan could not be fetched.
/// Holds: B-230.
#[tokio::test]
async fn bindings_of_every_bindable_plan_can_be_fetched() {
    on_each_store(async |kit| {
        for plan in [SMALL, LARGE, SYNC, ASYNC, FIXED] {
            let made = kit.provision(plan).plan(plan).accepts_incomplete();
            match made.send().await.status {
                201 => {}
                202 => drop(kit.poll_until_done(kit.poll(plan)).await.is(200)),
                status => panic!("{plan}: {status}"),
            }
            let bound = kit.bind(plan, "b").plan(plan).accepts_incomplete();
            if bound.send().await.status == 202 {
                kit.poll_until_done(kit.poll_binding(plan, "b"))
                    .await
                    .is(200);
            }
            let fetched = kit
                .fetch_binding(plan, "b")
                .service(DB)
                .send()
                .await
                .is(200);
            assert!(fetched.json["credentials"].is_object(), "{plan}");
        }
    })
    .await;
}
