//! Where bundles are found: registries that list images, and what is in those that are bundles.
//!
//! Start with `seam.rs`: what a registry is to everybody else. `fault.rs` tells failures apart by what may be
//! concluded from them, `digest.rs` names versions, `gather.rs` looks at a whole registry and reads only what
//! changed. Knows no broker, no store and no manifest: a spec is bytes, and where they came from.

mod digest;
mod fault;
mod gather;
mod seam;

pub use digest::{Digest, DigestFault};
pub use fault::{ItemFault, ListFault};
pub use gather::{AT_ONCE, Found, Gathered, State, gather};
pub use seam::{Item, Listing, Registry, Spec};
