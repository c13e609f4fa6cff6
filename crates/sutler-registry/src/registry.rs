//! What a registry is to everybody else: it lists, says which version of an item there is, and reads one.
//!
//! Adapters are one file each. What becomes of what they find is not decided here; the suite that each of
//! them passes is `conformance.rs`.

use crate::digest::Digest;
use crate::error::{ItemError, ListError};
use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A place where bundles are found.
///
/// What it says may be long, and is read where it is asked: ask where no request waits.
#[async_trait]
pub trait Registry: Send + Sync {
    /// What it is called in the configuration.
    fn name(&self) -> &str;

    /// Everything it has of what is wanted.
    ///
    /// # Guarantees
    /// What is not in a listing is not there: a listing that broke off is an error.
    ///
    /// # Errors
    /// See [`ListError`]; nothing may be concluded.
    async fn list(&self) -> Result<Listing, ListError>;

    /// Which version of an item there is now, as cheaply as can be. Whoever has the listing needs to ask
    /// only where it does not say.
    ///
    /// # Errors
    /// See [`ItemError`].
    async fn look_up(&self, item: &Item) -> Result<Digest, ItemError>;

    /// Reads one item: the version it names, or the one there is now. The item need not have been listed.
    ///
    /// # Guarantees
    /// The bytes are held to the digest that the spec says.
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
    /// Which version it is, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

impl Item {
    /// An image under a tag, whatever version that is.
    #[must_use]
    pub fn new(image: &str, tag: &str) -> Self {
        Self {
            image: image.to_owned(),
            tag: tag.to_owned(),
            digest: None,
        }
    }

    /// The same at one version.
    #[must_use]
    pub fn at(mut self, digest: Digest) -> Self {
        self.digest = Some(digest);
        self
    }

    /// What tells items of one registry apart.
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

/// Everything that a registry has of what is wanted. There is no such thing as half of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing(Vec<Item>);

impl Listing {
    /// A listing that came to its end. Items are put in order, and each is there once.
    #[must_use]
    pub fn complete(mut items: Vec<Item>) -> Self {
        items.sort_unstable();
        // One that says its version comes behind one that does not.
        items.reverse();
        items.dedup_by(|later, first| later.key() == first.key());
        items.reverse();
        Self(items)
    }

    /// The items, in the order of images and tags.
    #[must_use]
    pub fn items(&self) -> &[Item] {
        &self.0
    }

    /// The items, to be kept.
    #[must_use]
    pub fn into_items(self) -> Vec<Item> {
        self.0
    }
}

/// What one version of an item is, as far as registries can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// What was read, with its version.
    pub item: Item,
    /// The version: what is named by it never changes.
    pub digest: Digest,
    /// The bundle's manifest, as it was written. Nobody here reads it.
    pub manifest: Bytes,
    /// The name of the file that the manifest was, such as `apb.yml`; it says how it is to be read.
    pub file: String,
    /// How bundle and broker talk, if it says so: a number, as text.
    pub runtime: Option<String>,
    /// The image by its digest, as an engine pulls it; none for what is no image.
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
