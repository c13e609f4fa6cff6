//! Bundles of registries: read, written down, offered, withdrawn and deleted.
//!
//! What changes is decided by `sutler-registry`, purely. Here: what is written down (`reconcile/records.rs`),
//! what is made of an item that was read (`reconcile/version.rs`), the chore that asks registries
//! (`reconcile/refresh.rs`, which writes by `reconcile/writer.rs`), the one that deletes what nobody needs
//! (`reconcile/delete.rs`), what this process offers of it (`reconcile/shop.rs`, `reconcile/window.rs`), what
//! operators are shown (`reconcile/view.rs`, `reconcile/bundles.rs`), and the paths that Automation Broker had
//! for it (`reconcile/old_paths.rs`).

mod bundles;
mod delete;
mod measure;
mod old_paths;
mod records;
mod refresh;
mod shop;
mod used;
mod verdicts;
mod version;
mod view;
mod window;
mod withdrawn;
mod writer;

pub use bundles::{BundleState, BundleView, BundlesView};
pub use delete::{DELETIONS, Deletions};
pub use measure::REGISTRY_METRICS;
pub use old_paths::OldPaths;
pub use records::REGISTRY_RECORDS;
pub use refresh::{REFRESH, Refresh, Source};
pub use shop::{Pushes, Shop, ShopFault, ShopParts};
pub use view::{RegistriesView, RegistryView, SpecView};
