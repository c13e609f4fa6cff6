//! Bundles of real registries, offered and run by the executable, when registries fail, change, are slow or
//! race with requests. The rules themselves are tested in `sutler-registry` and `sutler-bundle-service`.
//!
//! `registries/token_registry.rs` is a registry behind a proxy that disturbs single requests,
//! `registries/image_registry.rs` one with TLS and a password whose images podman built and runs;
//! `registries/fixture.rs` is the broker.

mod fixture;
mod image_registry;
mod old_images;
mod provision_during_refresh;
mod registry_commands;
mod removed_registry;
#[cfg(feature = "postgres")]
mod store_refuses_refresh;
mod token_registry;
#[cfg(feature = "postgres")]
mod two_replicas;
mod unreachable_registries;
mod withdrawn_services;
