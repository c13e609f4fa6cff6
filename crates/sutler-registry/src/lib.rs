//! Where bundles are found: registries that list images, and what is in those that are bundles.
//!
//! Start with `seam.rs`: what a registry is to everybody else. `fault.rs` tells failures apart by what may be
//! concluded from them, `digest.rs` names versions, `gather.rs` looks at a whole registry and reads only what
//! changed, `plan.rs` decides what becomes of what was found. `oci.rs` is the distribution API, with `hub.rs`
//! and `quay.rs` listing in front of it; `index.rs` is a file at a URL, `openshift.rs` image streams; `wanted.rs`
//! says which images and tags are wanted. Below them: `door.rs` (who asks), `web.rs` (asking), `trouble.rs`. The
//! suite that every registry passes is `conformance.rs`; `heard.rs` is for whoever throws bad answers at it.
//! Knows no broker, no store and no manifest: a spec is bytes, and where they came from.

pub mod conformance;
pub mod heard;

mod credentials;
mod digest;
mod door;
mod fault;
mod gather;
mod hub;
mod index;
mod oci;
mod openshift;
mod pages;
mod place;
mod plan;
mod quay;
mod seam;
mod trouble;
mod wanted;
mod web;

pub use credentials::Credentials;
pub use digest::{Digest, DigestFault};
pub use fault::{ItemFault, ListFault};
pub use gather::{AT_ONCE, Found, Gathered, State, gather, look_through};
pub use hub::{HUB_HOST, HUB_REGISTRY_URL, HUB_URL};
pub use index::{IndexRegistry, IndexSettings};
pub use oci::{ITEMS_MAX, ImageRegistry, ImageSettings, Names, PLATFORM};
pub use openshift::{NAMESPACE, OpenShiftRegistry, OpenShiftSettings};
pub use plan::{
    Asked, Change, Conflict, Facts, Held, Known, Mark, Offered, PUSHED, Reason, Registries, Rules,
    Seen, SpecName, UNREAD_KEPT_MAX, Wants, deletions, in_question, offered, plan, push, refresh,
    unpush,
};
pub use quay::QUAY_URL;
pub use seam::{Item, Listing, Registry, Spec};
pub use wanted::{TAG, Wanted, Wishes};
pub use web::{Pace, Reach};
