//! The catalog as the check needs it, read leniently from raw JSON.
//!
//! Its faults are reported by `cases/catalog.rs`; every plan that can be requested is tested.

use serde_json::Value;
use std::sync::Arc;

/// An offering that can be requested.
#[derive(Debug)]
pub(crate) struct Offering {
    pub id: String,
    pub name: Arc<str>,
    /// Its JSON.
    pub raw: Value,
    pub plans: Vec<Plan>,
}

/// A plan that can be requested.
#[derive(Debug)]
pub(crate) struct Plan {
    pub id: String,
    pub name: Arc<str>,
    /// Its JSON.
    pub raw: Value,
}

impl Offering {
    /// A flag of the offering.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.raw[name].as_bool().unwrap_or(false)
    }
}

impl Plan {
    /// A flag of the plan; defaults to that of its offering.
    pub(crate) fn flag(&self, offering: &Offering, name: &str) -> bool {
        self.raw[name]
            .as_bool()
            .unwrap_or_else(|| offering.flag(name))
    }
}

/// Every offering and plan that has an id and a name.
pub(crate) fn read(catalog: &Value) -> Vec<Offering> {
    let text = |value: &Value, name: &str| {
        let text = value[name].as_str()?;
        (!text.is_empty()).then(|| text.to_owned())
    };
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut offerings = Vec::new();
    for raw in list(&catalog["services"]) {
        let (Some(id), Some(name)) = (text(&raw, "id"), text(&raw, "name")) else {
            continue;
        };
        let mut plans = Vec::new();
        for plan in list(&raw["plans"]) {
            if let (Some(id), Some(name)) = (text(&plan, "id"), text(&plan, "name")) {
                plans.push(Plan {
                    id,
                    name: name.into(),
                    raw: plan,
                });
            }
        }
        offerings.push(Offering {
            id,
            name: name.into(),
            raw,
            plans,
        });
    }
    offerings
}
