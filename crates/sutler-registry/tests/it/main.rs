//! Registries against real servers, behind a proxy that breaks single requests.
//!
//! `fixture.rs` is the shared fixture; `real_registry_conformance.rs` and `recorded_api_conformance.rs` run the
//! conformance suite; each of the other files has one subject.

mod authentication;
mod failures;
mod fixture;
mod image_formats;
mod listings;
mod real_registry_conformance;
mod recorded_api_conformance;
