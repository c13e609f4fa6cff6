//! Guarantees of single items. The trait of candidates: `conformance.rs`.

use super::Candidate;
use crate::digest::Digest;
use crate::error::ItemError;
use crate::registry::Item;
use crate::scan::{CONCURRENT_ITEMS, ItemState, ScannedItem, scan};

async fn scan_all(candidate: &dyn Candidate) -> Vec<ScannedItem> {
    let result = scan(candidate.registry(), &|_| None, CONCURRENT_ITEMS).await;
    result.expect("a listing").items
}

fn state<'a>(found: &'a [ScannedItem], candidate: &dyn Candidate, name: &str) -> &'a ItemState {
    let wanted = candidate.item(name);
    let found = found.iter().find(|it| it.item.key() == wanted.key());
    &found.expect("it is listed").state
}

/// # Panics
/// If the promise is broken.
pub async fn a_put_item_is_read_unchanged(candidate: &dyn Candidate) {
    let manifest = "name: apple\ndescription: with ünïcode: and more\n";
    candidate.put("apple", manifest).await;
    let found = scan_all(candidate).await;
    let ItemState::Read(spec) = state(&found, candidate, "apple") else {
        panic!("{found:?}");
    };
    assert_eq!(spec.manifest, manifest.as_bytes());
    assert_eq!(spec.item, candidate.item("apple").at(spec.digest.clone()));
    // By name alone, without a listing.
    let unlisted = candidate.registry().fetch(&candidate.item("apple")).await;
    assert_eq!(unlisted.as_ref(), Ok(spec));
    let digest = candidate.registry().look_up(&candidate.item("apple")).await;
    assert_eq!(digest.as_ref(), Ok(&spec.digest));
    if let Some(image) = &spec.image {
        let (_, pinned) = image.split_once('@').expect("an image by its digest");
        assert!(Digest::parse(pinned).is_ok(), "{image}");
    }
}

/// # Panics
/// If the promise is broken.
pub async fn changed_items_get_another_version_and_others_keep_theirs(candidate: &dyn Candidate) {
    candidate.put("apple", "name: one\n").await;
    candidate.put("banana", "name: two\n").await;
    let before = scan_all(candidate).await;
    candidate.put("apple", "name: other\n").await;
    let after = scan_all(candidate).await;
    let digest = |found: &[ScannedItem], name: &str| match state(found, candidate, name) {
        ItemState::Read(spec) => spec.digest.clone(),
        other => panic!("{name}: {other:?}"),
    };
    assert_ne!(digest(&before, "apple"), digest(&after, "apple"));
    assert_eq!(digest(&before, "banana"), digest(&after, "banana"));
}

/// # Panics
/// If the promise is broken.
pub async fn a_version_that_is_named_is_read_or_refused_and_never_another(
    candidate: &dyn Candidate,
) {
    candidate.put("apple", "name: one\n").await;
    let item = candidate.item("apple");
    let first = candidate.registry().fetch(&item).await.expect("a spec");
    candidate.put("apple", "name: other\n").await;
    drop(candidate.registry().list().await);
    match candidate.registry().fetch(&first.item).await {
        Ok(spec) => assert_eq!(spec, first),
        Err(fault) => assert_eq!(fault.kind(), "transient", "{fault}"),
    }
    let never = item.at(Digest::of(b"no such version"));
    let fault = candidate.registry().fetch(&never).await;
    let fault = fault.expect_err("there is no such version");
    assert_eq!(fault.kind(), "transient", "{fault}");
}

/// # Panics
/// If the promise is broken.
pub async fn an_unknown_item_is_gone(candidate: &dyn Candidate) {
    candidate.put("apple", "name: one\n").await;
    let item = candidate.item("never");
    let fault = candidate.registry().look_up(&item).await;
    let fault = fault.expect_err("nothing is there");
    assert_eq!(fault.kind(), "gone", "{fault}");
    let fault = candidate.registry().fetch(&item).await;
    let fault = fault.expect_err("nothing is there");
    assert!(
        matches!(&fault, ItemError::Gone(sentence) if sentence.contains("never")),
        "{fault}"
    );
}

/// # Panics
/// If the promise is broken.
pub async fn known_items_are_not_read_again(candidate: &dyn Candidate) {
    for name in ["apple", "banana", "carrot"] {
        candidate.put(name, &format!("name: {name}\n")).await;
    }
    candidate.spoil("damson").await;
    let first = scan_all(candidate).await;
    let known = |item: &Item| {
        let found = first.iter().find(|it| it.item.key() == item.key())?;
        match &found.state {
            ItemState::Read(spec) => Some(spec.digest.clone()),
            ItemState::Known(_) | ItemState::Failed(_) => None,
        }
    };
    candidate.put("carrot", "name: another\n").await;
    let before = candidate.reads();
    let result = scan(candidate.registry(), &known, CONCURRENT_ITEMS).await;
    let second = result.expect("a listing").items;
    for name in ["apple", "banana"] {
        let state = state(&second, candidate, name);
        assert!(matches!(state, ItemState::Known(_)), "{name}: {state:?}");
    }
    assert!(matches!(
        state(&second, candidate, "carrot"),
        ItemState::Read(_)
    ));
    let once_more = candidate.reads();
    let of_one = once_more - before;
    assert!(of_one <= 2, "{of_one} reads for one change");
}

/// # Panics
/// If the promise is broken.
pub async fn an_item_that_fails_is_not_gone_and_hurts_no_other(candidate: &dyn Candidate) {
    candidate.put("apple", "name: one\n").await;
    candidate.put("banana", "name: two\n").await;
    if !candidate.break_item("apple").await {
        return;
    }
    let found = scan_all(candidate).await;
    let apple = state(&found, candidate, "apple");
    assert!(
        matches!(apple, ItemState::Failed(ItemError::Transient(_))),
        "{apple:?}"
    );
    assert!(matches!(
        state(&found, candidate, "banana"),
        ItemState::Read(_)
    ));
    candidate.mend().await;
    let found = scan_all(candidate).await;
    assert!(matches!(
        state(&found, candidate, "apple"),
        ItemState::Read(_)
    ));
}

/// # Panics
/// If the promise is broken.
pub async fn a_spoiled_item_is_neither_gone_nor_read_and_affects_no_other(
    candidate: &dyn Candidate,
) {
    candidate.spoil("apple").await;
    candidate.put("banana", "name: two\n").await;
    let found = scan_all(candidate).await;
    let apple = state(&found, candidate, "apple");
    let ItemState::Failed(fault) = apple else {
        panic!("{apple:?}");
    };
    assert!(
        matches!(fault.kind(), "malformed" | "not-a-bundle"),
        "{fault}"
    );
    assert!(fault.to_string().contains("apple"), "{fault}");
    assert!(matches!(
        state(&found, candidate, "banana"),
        ItemState::Read(_)
    ));
    let before = candidate.reads();
    assert_eq!(scan_all(candidate).await.len(), 2);
    // The good item is read again, because it is not known; the spoiled one need not be.
    assert!(candidate.reads() - before <= 3);
}
