//! The catalogs of brokers: what is kept of them, and what of it is offered to a namespace.
//!
//! A catalog is read item by item ([`read_offerings`], [`plan_sync`]): an unusable offering or plan harms no other one.
//! Kept items ([`KnownCatalog`]) are offered as far as the scope of the broker, its restrictions and its access rules
//! admit ([`CatalogView`]). Requests that contradict an offered plan are found in `preflight.rs`.
//!
//! Read `offered_item.rs` first, then `sync_plan.rs`. Fetching a catalog and writing the items is not done here.

mod access_rules;
mod offered_item;
mod plan_digest;
mod plan_selection;
mod received_catalog;
mod restriction_parser;
mod restriction_property;
mod restrictions;
mod service_selection;
mod sync_fault;
mod sync_plan;
#[cfg(test)]
mod tests;
mod unique_values;
mod visibility;

pub use access_rules::{
    AccessRules, Audience, EmptySelectorError, NamespaceSelector, ServiceAccess,
};
pub use offered_item::{
    CatalogItem, KnownCatalog, OfferedPlan, OfferedService, PlanKey, ServicePlan,
};
pub use plan_digest::{PlanDigest, PlanDigestError};
pub use received_catalog::{ITEM_BYTES_MAX, PLANS_MAX, SERVICES_MAX, read_offerings};
pub use restriction_parser::RestrictionError;
pub use restrictions::{CatalogRestrictions, RestrictionTexts};
pub use sync_fault::{FaultOutcome, SyncFault, SyncFaults};
pub use sync_plan::{ItemChange, SyncPlan, plan_sync};
pub use visibility::{BrokerScope, CatalogView, NamespaceFacts, PlanLookup};
