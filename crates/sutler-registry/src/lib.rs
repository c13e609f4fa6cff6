//! Where bundles are found: registries that list images, and what is in those that are bundles.
//!
//! Start with `seam.rs`: what a registry is to everybody else. `fault.rs` tells failures apart by what may be
//! concluded from them, `digest.rs` names versions, `gather.rs` looks at a whole registry and reads only what
//! changed, `plan.rs` decides what becomes of what was found. Knows no broker, no store and no manifest: a spec is bytes, and where they came from.

mod digest;
mod fault;
mod gather;
mod plan;
mod seam;

pub use digest::{Digest, DigestFault};
pub use fault::{ItemFault, ListFault};
pub use gather::{AT_ONCE, Found, Gathered, State, gather};
pub use plan::{
    Asked, Change, Conflict, Facts, Held, Known, Mark, Offered, Reason, Registries, Rules, Seen,
    SpecName, UNREAD_KEPT_MAX, deletions, in_question, offered, plan, refresh,
};
pub use seam::{Item, Listing, Registry, Spec};
