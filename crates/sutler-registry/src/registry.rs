//! The trait of all registries: list items, look up the version of an item, read an item.
//!
//! Adapters are one file each. What a refresh does with the items is decided in `reconcile.rs`; the suite that
//! every adapter passes is `conformance.rs`.

use crate::digest::Digest;
use crate::error::{ItemError, ListError};
use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A source of bundles.
///
/// Responses may be long and are parsed by the calling task: do not call it from a task that serves requests.
#[async_trait]
pub trait Registry: Send + Sync {
    /// Name in the configuration.
    fn name(&self) -> &str;

    /// Lists all selected items.
    ///
    /// # Guarantees
    /// An item that is missing from a listing does not exist: an incomplete listing is an error.
    ///
    /// # Errors
    /// See [`ListError`]; nothing may be concluded.
    async fn list(&self) -> Result<Listing, ListError>;

    /// Returns the current version of an item with the cheapest request. Only needed for items whose version is
    /// not in the listing.
    ///
    /// # Errors
    /// See [`ItemError`].
    async fn look_up(&self, item: &Item) -> Result<Digest, ItemError>;

    /// Reads one item: the version it names, or the current one. The item need not have been listed.
    ///
    /// # Guarantees
    /// The bytes match the digest of the spec.
    ///
    /// # Errors
    /// See [`ItemError`].
    async fn fetch(&self, item: &Item) -> Result<Spec, ItemError>;
}

/// One image under one tag.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Item {
    /// The image's name inside its registry, such as `org/hello-apb`.
    pub image: String,
    /// The tag, such as `latest`.
    pub tag: String,
    /// Version, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

impl Item {
    /// An image under a tag, without a version.
    #[must_use]
    pub fn new(image: &str, tag: &str) -> Self {
        Self {
            image: image.to_owned(),
            tag: tag.to_owned(),
            digest: None,
        }
    }

    /// Sets the version.
    #[must_use]
    pub fn at(mut self, digest: Digest) -> Self {
        self.digest = Some(digest);
        self
    }

    /// Unique key within one registry.
    #[must_use]
    pub fn key(&self) -> (&str, &str) {
        (&self.image, &self.tag)
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.image, self.tag)
    }
}

/// All selected items of a registry. Always complete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing(Vec<Item>);

impl Listing {
    /// Builds a complete listing: sorted, each item once.
    #[must_use]
    pub fn complete(mut items: Vec<Item>) -> Self {
        items.sort_unstable();
        // An item with a version sorts after the same item without one.
        items.reverse();
        items.dedup_by(|later, first| later.key() == first.key());
        items.reverse();
        Self(items)
    }

    /// Items, sorted by image and tag.
    #[must_use]
    pub fn items(&self) -> &[Item] {
        &self.0
    }

    /// Takes the items out.
    #[must_use]
    pub fn into_items(self) -> Vec<Item> {
        self.0
    }
}

/// Content of one version of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Item that was read, with its version.
    pub item: Item,
    /// Version. Content with a given digest never changes.
    pub digest: Digest,
    /// Manifest of the bundle, not parsed here.
    pub manifest: Bytes,
    /// File name of the manifest, such as `apb.yml`, which determines its format.
    pub file: String,
    /// Runtime version of the protocol between bundle and broker, if given: a number as text.
    pub runtime: Option<String>,
    /// Image by its digest, as an engine pulls it; `None` if the item is not an image.
    pub image: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_has_each_item_once_in_order_and_with_its_version_where_one_is_known() {
        let digest = Digest::of(b"x");
        let items = vec![
            Item::new("b", "latest"),
            Item::new("a", "v2"),
            Item::new("a", "v1").at(digest.clone()),
            Item::new("a", "v1"),
        ];
        let expected = [
            Item::new("a", "v1").at(digest),
            Item::new("a", "v2"),
            Item::new("b", "latest"),
        ];
        assert_eq!(Listing::complete(items).items(), expected);
    }
}
