//! The suite every registry must pass, whatever it lists.
//!
//! An adapter's tests implement [`Candidate`] and say `sutler_registry::registry_conformance!(Mine::fresh())`;
//! that makes one test of every promise. Where the candidate is `None` (no server here), its test is skipped,
//! which whoever makes it has said. The cases are in `conformance/listing.rs` and `conformance/reading.rs`.

pub mod listing;
pub mod reading;

use crate::registry::{Item, Registry};
use async_trait::async_trait;

/// A registry under test, and what tests must be able to do behind its back. Made anew, and empty, for each.
#[async_trait]
pub trait Candidate: Send + Sync {
    /// The registry. It repeats questions after a few milliseconds at most.
    fn registry(&self) -> &dyn Registry;

    /// Puts a bundle with this manifest there, in place of what was there under that name.
    async fn put(&self, name: &str, manifest: &str);

    /// Puts something there that is listed, and can never be read as a bundle.
    async fn spoil(&self, name: &str);

    /// Takes away what is there.
    async fn remove(&self, name: &str);

    /// Has listings fail from now on.
    async fn break_listings(&self);

    /// Has everything that is asked of one item fail from now on, and nothing else, although it is still there.
    /// `false` if items of this registry cannot fail by themselves.
    async fn break_item(&self, name: &str) -> bool;

    /// Ends all failures.
    async fn mend(&self);

    /// How often the content of an item was asked for so far, be it its manifest or its labels.
    fn reads(&self) -> usize;

    /// What this registry calls the item of this name.
    fn item(&self, name: &str) -> Item;
}

/// Makes one test of every promise of a registry. Takes an expression that makes a fresh [`Candidate`], or
/// `None` where there is none; it may await.
#[macro_export]
macro_rules! registry_conformance {
    ($fresh:expr) => {
        $crate::registry_conformance! { $fresh =>
            listing: an_empty_registry_has_an_empty_listing
                everything_is_listed_once_and_in_order
                what_is_removed_is_not_found_any_more
                a_listing_that_fails_is_no_listing
                a_registry_that_was_mended_is_as_it_was;
            reading: what_was_put_is_what_is_read
                what_changes_gets_another_version_and_what_does_not_keeps_its_own
                a_version_that_is_named_is_read_or_refused_and_never_another
                what_never_was_is_gone
                what_is_known_is_not_read_again
                an_item_that_fails_is_not_gone_and_hurts_no_other
                what_is_spoiled_is_neither_gone_nor_read_and_hurts_no_other;
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
