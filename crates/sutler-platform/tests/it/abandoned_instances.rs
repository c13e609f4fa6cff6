//! Instances that are given up while others still use them.

use crate::test_platform::{TestPlatform, bound, name, namespace, person, wanted_binding};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use sutler_journal::conformance::{Call, Intercept, InterceptingStore};
use tokio::sync::Notify;

/// Source: T-30. The bind is accepted and done between the last look for bindings and the commit that gives the instance up.
#[tokio::test(start_paused = true)]
async fn a_binding_that_is_bound_while_its_instance_is_given_up_is_given_up_too() {
    let test = TestPlatform::start().await;
    let instance = test.live_instance("db", json!({})).await;
    let (held, released) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (holding, release) = (held.clone(), released.clone());
    let (uid, is_first) = (instance.uid.to_string(), AtomicBool::new(true));
    let store = InterceptingStore::new(test.store.clone(), move |call| match call {
        Call::Commit(commit) if format!("{commit:?}").contains(&uid) => {
            if !is_first.swap(false, Ordering::Relaxed) {
                return Intercept::Pass;
            }
            holding.notify_one();
            Intercept::Hold(release.clone())
        }
        _ => Intercept::Pass,
    });
    let replica = test.replica_over(Arc::new(store)).await;
    let abandoning = tokio::spawn(async move {
        let (namespace, db, olga) = (namespace(), name("db"), person("olga"));
        replica
            .abandon_instance(&namespace, &db, &olga.into())
            .await
    });
    held.notified().await;
    bound(&test.platform, &wanted_binding("db", "app-db")).await;
    released.notify_one();
    let abandoned = abandoning.await.expect("no panic");
    abandoned.expect("it is given up");
    let bindings = test.platform.bindings(None, None, 10).await;
    assert_eq!(bindings.expect("they are read").items, []);
    let orphans = test.platform.orphans(None, 10).await;
    assert_eq!(orphans.expect("they are read").items.len(), 2);
}
