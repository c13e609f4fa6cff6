//! Bundles of registries: read, written down, offered, withdrawn and deleted.
//!
//! What changes is decided by `sutler-registry`, purely. Here: what is written down (`reconcile/records.rs`),
//! what is made of an item that was read (`reconcile/version.rs`), the chore that asks registries
//! (`reconcile/refresh.rs`, which writes by `reconcile/writer.rs`), the one that deletes what nobody needs
//! (`reconcile/deletions.rs`), what this process offers of it (`reconcile/catalog_publisher.rs`, `reconcile/published_catalog.rs`), what
//! operators are shown (`reconcile/view.rs`, `reconcile/bundles.rs`), and the paths that Automation Broker had
//! for it (`reconcile/apb_compat_routes.rs`).

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
