//! Bundles of real registries, offered and run by the executable: what becomes of them when registries fail,
//! change, are slow or race with requests. The rules themselves are tested in `sutler-registry` and
//! `sutler-bundle-service`.
//!
//! `harbour.rs` is a registry behind a front that does harm to single requests, `vault.rs` one with TLS and a
//! password whose images podman built and runs; `site.rs` is the broker.

mod configured;
mod failing;
mod harbour;
mod looked_after;
mod old_images;
#[cfg(feature = "postgres")]
mod shared;
mod site;
mod untimely;
#[cfg(feature = "postgres")]
mod unwritten;
mod vault;
mod withdrawn;
