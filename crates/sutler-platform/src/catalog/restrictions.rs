//! Restrictions of a broker: which of its offerings and plans are offered at all, in Service Catalog's grammar.
//!
//! A requirement names a property and its allowed values, e.g. `spec.externalName in (small,large)`. All requirements
//! must hold. Restrictions apply when the catalog is shown (`visibility.rs`), not when it is fetched: an instance of a
//! plan that is restricted later goes on. The grammar is in `restriction_parser.rs`.

use super::offered_item::{OfferedPlan, OfferedService};
use super::restriction_parser::{RestrictionError, RestrictionList, parse_list, quoted_value};
use super::restriction_property::{ClassProperty, PlanProperty, RestrictionProperty};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// Requirements for offerings and plans.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RestrictionTexts", into = "RestrictionTexts")]
pub struct CatalogRestrictions {
    service_class: Vec<PropertyRequirement<ClassProperty>>,
    service_plan: Vec<PropertyRequirement<PlanProperty>>,
}

/// Restrictions as they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RestrictionTexts {
    /// Requirements for offerings.
    pub service_class: Vec<String>,
    /// Requirements for plans.
    pub service_plan: Vec<String>,
}

/// A property, and the values that it may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PropertyRequirement<P> {
    /// The property.
    pub(super) property: P,
    /// Its values.
    pub(super) allowed: AllowedValues,
}

/// Values of a property that are allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AllowedValues {
    /// `=`, `==` or `in`.
    OneOf(BTreeSet<String>),
    /// `!=` or `notin`.
    NoneOf(BTreeSet<String>),
}

impl CatalogRestrictions {
    /// Reads requirements. A text may hold several, with commas between them.
    ///
    /// # Errors
    /// The first text that does not conform to the grammar, with the position and what to write.
    pub fn parse(texts: &RestrictionTexts) -> Result<Self, RestrictionError> {
        Ok(Self {
            service_class: parse_list(RestrictionList::ServiceClass, &texts.service_class)?,
            service_plan: parse_list(RestrictionList::ServicePlan, &texts.service_plan)?,
        })
    }

    /// Whether there is no requirement.
    pub fn is_empty(&self) -> bool {
        self.service_class.is_empty() && self.service_plan.is_empty()
    }

    /// Whether an offering meets all requirements for offerings.
    pub fn admit_service(&self, service: &OfferedService) -> bool {
        let mut all = self.service_class.iter();
        all.all(|it| it.allowed.admit(&it.property.values(service)))
    }

    /// Whether a plan meets all requirements for plans. Its offering is checked apart.
    pub fn admit_plan(&self, plan: &OfferedPlan) -> bool {
        let mut all = self.service_plan.iter();
        all.all(|it| it.allowed.admit(&it.property.values(plan)))
    }
}

impl AllowedValues {
    /// Whether a value is allowed, which may have several spellings.
    fn admit(&self, spellings: &[String]) -> bool {
        match self {
            Self::OneOf(values) => spellings.iter().any(|it| values.contains(it)),
            Self::NoneOf(values) => !spellings.iter().any(|it| values.contains(it)),
        }
    }
}

impl TryFrom<RestrictionTexts> for CatalogRestrictions {
    type Error = RestrictionError;
    fn try_from(texts: RestrictionTexts) -> Result<Self, RestrictionError> {
        Self::parse(&texts)
    }
}

impl From<CatalogRestrictions> for RestrictionTexts {
    fn from(restrictions: CatalogRestrictions) -> Self {
        Self {
            service_class: texts(&restrictions.service_class),
            service_plan: texts(&restrictions.service_plan),
        }
    }
}

fn texts<P: RestrictionProperty>(requirements: &[PropertyRequirement<P>]) -> Vec<String> {
    requirements.iter().map(ToString::to_string).collect()
}

/// The text that is read as the same requirement.
impl<P: RestrictionProperty> fmt::Display for PropertyRequirement<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (values, one, several) = match &self.allowed {
            AllowedValues::OneOf(values) => (values, "=", "in"),
            AllowedValues::NoneOf(values) => (values, "!=", "notin"),
        };
        let list: Vec<String> = values.iter().map(|it| quoted_value(it)).collect();
        let name = self.property.name();
        match list.as_slice() {
            [value] => write!(f, "{name}{one}{value}"),
            values => write!(f, "{name} {several} ({})", values.join(",")),
        }
    }
}
