//! The suite that every registry must pass.
//!
//! The tests of an adapter implement [`Candidate`] and invoke
//! `sutler_registry::registry_conformance!(Mine::fresh())`, which creates one test per guarantee. If the candidate
//! is `None` (no server on this machine), the test is skipped; the constructor reports that. The cases are in
//! `conformance/listing.rs` and `conformance/items.rs`.

pub mod items;
pub mod listing;

use crate::registry::{Item, Registry};
use async_trait::async_trait;

/// A registry under test, with the means to change its content. Created empty for each test.
#[async_trait]
pub trait Candidate: Send + Sync {
    /// The registry. It retries requests after a few milliseconds at most.
    fn registry(&self) -> &dyn Registry;

    /// Puts a bundle with this manifest, replacing content of the same name.
    async fn put(&self, name: &str, manifest: &str);

    /// Puts an item that is listed and can never be read as a bundle.
    async fn spoil(&self, name: &str);

    /// Removes an item.
    async fn remove(&self, name: &str);

    /// Makes listings fail from now on.
    async fn break_listings(&self);

    /// Makes all requests for one item fail from now on, and no others, although the item still exists.
    /// Returns `false` if single items of this registry cannot fail.
    async fn break_item(&self, name: &str) -> bool;

    /// Ends all failures.
    async fn mend(&self);

    /// Number of requests for the content of items so far, manifests and labels alike.
    fn reads(&self) -> usize;

    /// The item of this name, as this registry names it.
    fn item(&self, name: &str) -> Item;
}

/// Creates one test per guarantee of a registry. Takes an expression that creates a fresh [`Candidate`], or
/// `None` if there is none; it may await.
#[macro_export]
macro_rules! registry_conformance {
    ($fresh:expr) => {
        $crate::registry_conformance! { $fresh =>
            listing: an_empty_registry_has_an_empty_listing
                everything_is_listed_once_and_in_order
                a_removed_item_is_not_found_any_more
                a_listing_that_fails_is_no_listing
                a_registry_that_was_mended_is_as_it_was;
            items: a_put_item_is_read_unchanged
                changed_items_get_another_version_and_others_keep_theirs
                a_version_that_is_named_is_read_or_refused_and_never_another
                an_unknown_item_is_gone
                known_items_are_not_read_again
                an_item_that_fails_is_not_gone_and_hurts_no_other
                a_spoiled_item_is_neither_gone_nor_read_and_affects_no_other;
        }
    };
    ($fresh:expr => $($file:ident: $($case:ident)+;)+) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                if let Some(candidate) = $fresh {
                    $crate::conformance::$file::$case(&candidate).await;
                }
            }
        )+)+
    };
}
