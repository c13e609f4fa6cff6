//! Where bundles are found: registries that list images, and what is in those that are bundles.
//!
//! Start with `seam.rs`: what a registry is to everybody else. `fault.rs` tells failures apart by what may be
//! concluded from them, `digest.rs` names versions, `gather.rs` looks at a whole registry and reads only what
//! changed, `plan.rs` decides what becomes of what was found. `oci.rs` is the distribution API, with `hub.rs`
//! and `quay.rs` listing in front of it; `index.rs` is a file at a URL, `openshift.rs` image streams; `wanted.rs`
//! says which images and tags are wanted. Below them: `auth.rs` (who asks), `http.rs` (asking), `error.rs`. The
//! suite that every registry passes is `conformance.rs`; `heard.rs` is for whoever throws bad answers at it.
//! Knows no broker, no store and no manifest: a spec is bytes, and where they came from.

#[cfg(feature = "testing")]
pub mod conformance;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;

mod auth;
mod base_url;
mod credentials;
mod digest;
mod docker_hub;
mod error;
mod http_client;
mod http_error;
mod index;
mod name_pages;
mod oci;
mod openshift;
mod quay;
mod reconcile;
mod registry;
mod scan;
mod selection;

pub use credentials::Credentials;
pub use digest::{Digest, DigestError};
pub use docker_hub::{HUB_HOST, HUB_REGISTRY_URL, HUB_URL};
pub use error::{ItemError, ListError};
pub use http_client::{HttpSettings, RetrySchedule};
pub use index::{IndexRegistry, IndexSettings};
pub use oci::{ITEMS_MAX, ImageRegistry, ImageSettings, ListingMethod, PLATFORM};
pub use openshift::{NAMESPACE, OpenShiftRegistry, OpenShiftSettings};
pub use quay::QUAY_URL;
pub use reconcile::{
    ClaimedNames, ItemOutcome, KnownRegistries, KnownRegistry, KnownSpec, ListOutcome,
    NameConflict, OfferedSpecs, PUSHED_REGISTRY, RefreshFacts, RegistryChange, SpecName,
    UNREAD_KEPT_MAX, WithdrawalMark, WithdrawalReason, WithdrawalRules, deletions, offered_specs,
    push, reconcile, refresh, unpush, usage_candidates,
};
pub use registry::{Item, Listing, Registry, Spec};
pub use scan::{CONCURRENT_ITEMS, ItemState, ScanResult, ScannedItem, scan, scan_items};
pub use selection::{DEFAULT_TAG, ImageFilter, ImageSelection};
