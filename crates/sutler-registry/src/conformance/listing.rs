//! Guarantees of listings. The trait of candidates: `conformance.rs`.

use super::Candidate;
use crate::error::ItemError;
use crate::scan::{CONCURRENT_ITEMS, ItemState, scan};

/// Names of the items of a whole scan.
async fn found(candidate: &dyn Candidate) -> Vec<String> {
    let result = scan(candidate.registry(), &|_| None, CONCURRENT_ITEMS).await;
    let found = result.expect("a listing").items.into_iter();
    let there = found.filter(|it| !matches!(it.state, ItemState::Failed(ItemError::Gone(_))));
    there.map(|it| it.item.image).collect()
}

fn image(candidate: &dyn Candidate, name: &str) -> String {
    candidate.item(name).image
}

/// # Panics
/// If the promise is broken.
pub async fn an_empty_registry_has_an_empty_listing(candidate: &dyn Candidate) {
    let listing = candidate.registry().list().await.expect("a listing");
    assert!(listing.items().is_empty(), "{listing:?}");
}

/// # Panics
/// If the promise is broken.
pub async fn everything_is_listed_once_and_in_order(candidate: &dyn Candidate) {
    for name in ["carrot", "apple", "banana", "apple"] {
        candidate.put(name, "name: one\n").await;
    }
    let expected = ["apple", "banana", "carrot"].map(|it| image(candidate, it));
    assert_eq!(found(candidate).await, expected);
    let listing = candidate.registry().list().await.expect("a listing");
    let listed: Vec<&str> = listing.items().iter().map(|it| it.image.as_str()).collect();
    assert_eq!(listed, expected);
}

/// # Panics
/// If the promise is broken.
pub async fn a_removed_item_is_not_found_any_more(candidate: &dyn Candidate) {
    candidate.put("apple", "name: one\n").await;
    candidate.put("banana", "name: two\n").await;
    assert_eq!(found(candidate).await.len(), 2);
    candidate.remove("apple").await;
    assert_eq!(found(candidate).await, [image(candidate, "banana")]);
}

/// # Panics
/// If the promise is broken.
pub async fn a_listing_that_fails_is_no_listing(candidate: &dyn Candidate) {
    candidate.put("apple", "name: one\n").await;
    candidate.break_listings().await;
    let fault = candidate.registry().list().await.expect_err("no listing");
    let sentence = fault.to_string();
    let name = candidate.registry().name();
    assert!(
        sentence.contains(name) && sentence.contains(": "),
        "{sentence}"
    );
    let result = scan(candidate.registry(), &|_| None, CONCURRENT_ITEMS).await;
    assert!(result.is_err(), "{result:?}");
}

/// # Panics
/// If the promise is broken.
pub async fn a_registry_that_was_mended_is_as_it_was(candidate: &dyn Candidate) {
    candidate.put("apple", "name: one\n").await;
    let before = found(candidate).await;
    candidate.break_listings().await;
    assert!(candidate.registry().list().await.is_err());
    candidate.mend().await;
    assert_eq!(found(candidate).await, before);
}
