//! What is left of a platform that was shut down: nothing that keeps its store open.

use crate::test_platform::TestPlatform;
use serde_json::json;
use std::sync::Arc;

#[tokio::test(start_paused = true)]
async fn a_platform_that_was_shut_down_lets_its_store_go() {
    let platform = TestPlatform::start().await;
    platform.live_instance("db", json!({})).await;
    let store = Arc::downgrade(&platform.store);
    platform.platform.shut_down().await;
    drop(platform);
    assert_eq!(store.strong_count(), 0);
}
