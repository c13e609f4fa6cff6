//! Offerings and plans of a broker's catalog as documents.

use super::record::TypedRecord;
use super::terms::NAME_TERM;
use crate::catalog::{OfferedPlan, OfferedService};
use serde::{Deserialize, Serialize};
use sutler_journal::Term;

/// An item of a catalog as it is stored: beside the number of its form, so its kind is a member of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "item", content = "value", rename_all = "snake_case")]
pub enum CatalogRecord {
    /// An offering.
    Service(OfferedService),
    /// A plan.
    Plan(OfferedPlan),
}

impl TypedRecord for CatalogRecord {
    fn terms(&self) -> Vec<Term> {
        let name = match self {
            Self::Service(service) => service.name(),
            Self::Plan(plan) => plan.name(),
        };
        let mut name = name.as_bytes().to_vec();
        name.truncate(512);
        vec![Term::new(NAME_TERM, name)]
    }
}
