//! What a hostile or odd registry may not do to the rest: long words, many faults, other offers than before.

use super::town::{Town, manifest};
use serde_json::Value;
use sutler_bundle::REFRESH;
use sutler_registry::ItemFault;

/// More than are kept of one registry.
const MANY: usize = 120;

#[tokio::test]
async fn long_words_about_many_items_keep_nobody_from_writing_what_is_good() {
    let (_town, registry, hall) = Town::with_hello().await;
    for nth in 0..MANY {
        let item = format!("org/broken-{nth}:latest");
        registry.push(&item, &manifest("1.0.0"));
        let fault = ItemFault::Malformed {
            digest: None,
            sentence: format!("it is broken\u{1b}[2J {}", "very ".repeat(20_000)),
        };
        registry.fails(&item, fault);
    }
    registry.push("org/hello:latest", &manifest("1.0.1"));
    hall.refresh().await;
    let status = hall.running.chore_status(REFRESH).await;
    assert_eq!(status.expect("the store answers").failure, None);
    let (_, catalog) = hall.send("GET", "/v2/catalog", Value::Null).await;
    let version = &catalog["services"][0]["metadata"]["bundleVersion"];
    assert_eq!(version, "1.0.1");
    let view = hall.shop.view_of("dh").await.expect("the store answers");
    let unread = view.expect("it is configured").unread;
    assert_eq!(unread.len(), sutler_registry::UNREAD_KEPT_MAX);
    let plain = |it: &String| !it.contains('\u{1b}') && it.chars().count() < 1_000;
    assert!(unread.values().all(plain));
}

#[tokio::test]
async fn what_was_found_to_be_no_bundle_is_read_once() {
    let (_town, registry, hall) = Town::with_hello().await;
    registry.push("org/tool:latest", "no bundle");
    let before = registry.fetched();
    hall.refresh().await;
    assert_eq!(registry.fetched(), before + 1);
    hall.refresh().await;
    assert_eq!(registry.fetched(), before + 1);
    assert_eq!(hall.offers().await, ["hello"]);
}
