//! Bundles behind a real broker: in folders and in registries.

mod folder_registry;
mod registries;
mod service;
