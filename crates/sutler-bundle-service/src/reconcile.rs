//! Bundles of registries: listed, stored, published, withdrawn and deleted.
//!
//! `sutler-registry` decides what changes; it is pure. Stored records are `reconcile/records.rs`, versions built
//! from items `reconcile/version.rs`. Two periodic tasks write them: `reconcile/refresh.rs` lists registries
//! (batches: `reconcile/writer.rs`) and `reconcile/deletions.rs` deletes specs and versions that no instance needs.
//! `reconcile/catalog_publisher.rs` publishes the records as this process's catalog
//! (`reconcile/published_catalog.rs`). Operators read `reconcile/view.rs` and `reconcile/bundles.rs`; Automation
//! Broker's old paths are `reconcile/apb_compat_routes.rs`.

mod apb_compat_routes;
mod bundles;
mod catalog_publisher;
mod change_log;
mod deletions;
mod item_verdict_cache;
mod metrics;
mod published_catalog;
mod records;
mod refresh;
mod refresh_result;
mod spec_usage;
mod version;
mod view;
mod withdrawn_plans;
mod writer;

pub use apb_compat_routes::ApbCompatRoutes;
pub use bundles::{BundleState, BundleView, BundlesView};
pub use catalog_publisher::{CatalogPublisher, PublishError, PublisherConfig, Pushes};
pub use deletions::{DELETIONS, Deletions};
pub use metrics::REGISTRY_METRICS;
pub use records::REGISTRY_RECORDS;
pub use refresh::{REFRESH, Refresh, Source};
pub use view::{RegistriesView, RegistryView, SpecView};
