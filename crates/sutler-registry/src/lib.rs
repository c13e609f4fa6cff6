//! Registries: adapters that list images and read the bundles among them.
//!
//! Start with `registry.rs`, the trait of all adapters. `error.rs` classifies failures by what may be
//! concluded from them, `digest.rs` names versions, `scan.rs` lists a registry and reads only what changed,
//! `reconcile.rs` decides what a refresh changes. Adapters: `oci.rs` is the distribution API, with listings of
//! `docker_hub.rs` and `quay.rs`; `index.rs` is a file at a URL; `openshift.rs` reads image streams.
//! `selection.rs` chooses images and tags. Below the adapters: `auth.rs` (credentials and tokens),
//! `http_client.rs` (requests) and `http_error.rs`. `conformance.rs` is the suite that every adapter passes
//! (feature `testing`); `fuzzing.rs` exposes the readers of foreign bytes (feature `fuzzing`).
//! Knows no broker, no store and no manifest: a spec is bytes with their origin.

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
