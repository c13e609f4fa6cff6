//! Which items a scan reads, and which it skips.

use super::*;
use crate::registry::Listing;
use async_trait::async_trait;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// A registry in memory that records its calls.
#[derive(Default)]
struct FakeRegistry {
    items: BTreeMap<String, Result<&'static [u8], ItemError>>,
    says_versions: bool,
    broken: Option<ListError>,
    calls: Mutex<Vec<String>>,
}

impl FakeRegistry {
    fn note(&self, what: &str, item: &Item) {
        self.calls
            .lock()
            .expect("no test panics here")
            .push(format!("{what} {item}"));
    }

    fn calls(&self) -> Vec<String> {
        let mut calls = self.calls.lock().expect("no test panics here").clone();
        calls.sort();
        calls
    }
}

#[async_trait]
impl Registry for FakeRegistry {
    fn name(&self) -> &str {
        "told"
    }

    async fn list(&self) -> Result<Listing, ListError> {
        if let Some(fault) = &self.broken {
            return Err(fault.clone());
        }
        let items = self.items.iter().map(|(image, bytes)| {
            let item = Item::new(image, "latest");
            match bytes {
                Ok(bytes) if self.says_versions => item.at(Digest::of(bytes)),
                Ok(_) | Err(_) => item,
            }
        });
        Ok(Listing::complete(items.collect()))
    }

    async fn look_up(&self, item: &Item) -> Result<Digest, ItemError> {
        self.note("look up", item);
        self.items[&item.image].clone().map(Digest::of)
    }

    async fn fetch(&self, item: &Item) -> Result<Spec, ItemError> {
        self.note("fetch", item);
        let bytes = self.items[&item.image].clone()?;
        Ok(Spec {
            item: item.clone(),
            digest: Digest::of(bytes),
            manifest: Bytes::from_static(bytes),
            file: "bundle.yml".to_owned(),
            runtime: None,
            image: None,
        })
    }
}

fn fake_registry(says_versions: bool) -> FakeRegistry {
    let failed = ItemError::Transient("it is slow today; wait".to_owned());
    let items: [(&str, Result<&'static [u8], ItemError>); 3] =
        [("a", Ok(b"one")), ("b", Err(failed)), ("c", Ok(b"three"))];
    FakeRegistry {
        items: items.map(|(name, it)| (name.to_owned(), it)).into(),
        says_versions,
        ..FakeRegistry::default()
    }
}

#[tokio::test]
async fn known_items_are_not_read_again_and_one_failure_affects_no_other() {
    let registry = fake_registry(false);
    let known = |item: &Item| (item.image == "a").then(|| Digest::of(b"one"));
    let result = scan(&registry, &known, 4).await.expect("a listing");
    let states: Vec<&ItemState> = result.items.iter().map(|it| &it.state).collect();
    assert!(
        matches!(
            states[..],
            [
                ItemState::Known(_),
                ItemState::Failed(_),
                ItemState::Read(_)
            ]
        ),
        "{states:?}"
    );
    let calls = [
        "fetch c:latest",
        "look up a:latest",
        "look up b:latest",
        "look up c:latest",
    ];
    assert_eq!(registry.calls(), calls);
}

#[tokio::test]
async fn with_versions_in_the_listing_nothing_is_looked_up() {
    let registry = fake_registry(true);
    let known = |item: &Item| item.digest.clone();
    let result = scan(&registry, &known, 1).await.expect("a listing");
    assert_eq!(result.items.len(), 3);
    assert_eq!(registry.calls(), ["look up b:latest"]);
}

#[tokio::test]
async fn a_changed_item_is_read_at_the_version_that_was_looked_up() {
    let registry = fake_registry(true);
    let known = |_: &Item| Some(Digest::of(b"an older one"));
    let result = scan(&registry, &known, 1).await.expect("a listing");
    match &result.items[0].state {
        ItemState::Read(spec) => assert_eq!(spec.item.digest, Some(Digest::of(b"one"))),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn without_a_listing_no_item_is_read() {
    let fault = ListError::Unreachable("it is down; start it".to_owned());
    let registry = FakeRegistry {
        broken: Some(fault.clone()),
        ..fake_registry(false)
    };
    assert_eq!(scan(&registry, &|_| None, 4).await, Err(fault));
    assert!(registry.calls().is_empty());
}

#[tokio::test]
async fn a_scan_is_a_send_future() {
    fn sent<F: Future + Send>(future: F) -> F {
        future
    }
    let registry = fake_registry(true);
    let result = sent(scan(&registry, &|_| None, 2)).await;
    assert_eq!(result.expect("a listing").items.len(), 3);
}

/// A registry that never answers.
struct Slow {
    lists: bool,
}

#[async_trait]
impl Registry for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    async fn list(&self) -> Result<Listing, ListError> {
        if !self.lists {
            std::future::pending::<()>().await;
        }
        let items = (0..4).map(|nth| Item::new(&format!("image-{nth}"), "latest"));
        Ok(Listing::complete(items.collect()))
    }

    async fn look_up(&self, item: &Item) -> Result<Digest, ItemError> {
        if item.image.as_str() >= "image-2" {
            std::future::pending::<()>().await;
        }
        Ok(Digest::of(item.image.as_bytes()))
    }

    async fn fetch(&self, item: &Item) -> Result<Spec, ItemError> {
        Err(ItemError::Gone(item.to_string()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_registry_that_comes_to_no_end_is_waited_for_within_bounds() {
    let known = |item: &Item| item.digest.clone();
    let fault = scan(&Slow { lists: false }, &known, 1).await;
    let fault = fault.expect_err("no listing");
    assert_eq!(fault.kind(), "unreachable", "{fault}");
    let result = scan(&Slow { lists: true }, &known, 1).await;
    let items = result.expect("a listing").items;
    let kind = |items: &ScannedItem| match &items.state {
        ItemState::Known(_) => "known",
        ItemState::Read(_) => "read",
        ItemState::Failed(fault) => fault.kind(),
    };
    let kinds: Vec<&str> = items.iter().map(kind).collect();
    assert_eq!(kinds, ["known", "known", "transient", "transient"]);
}
