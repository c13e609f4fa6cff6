//! Registries against real servers, with a front that does harm to single requests.
//!
//! `fixture.rs` is the vocabulary; `real_registry_conformance.rs` has every adapter pass the suite; the other files are about one
//! thing each.

mod authentication;
mod failures;
mod fixture;
mod image_formats;
mod listings;
mod real_registry_conformance;
mod recorded_api_conformance;
