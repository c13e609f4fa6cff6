//! Bodies of requests, as they are written: strict about unknown fields, checked once, and then values of the core.
//!
//! Offerings and plans are named here as a person names them; which of a namespace's offerings that is, is found in
//! `plan_search.rs`. Types with secrets have no `Debug`.

mod binding_body;
mod broker_body;
mod broker_destination;
mod instance_body;
mod namespace_body;
mod secret_body;

pub(crate) use binding_body::BindingBody;
pub(crate) use broker_body::{BrokerBody, BrokerLimitsBody, BrokerOptionsBody};
pub(crate) use instance_body::{InstanceBody, InstancePatchBody, SourceBody};
pub(crate) use namespace_body::NamespaceBody;
pub(crate) use secret_body::SecretBody;

use serde::{Deserialize, Deserializer};

/// A field that must have a value if it is named: `null` is refused, not ignored.
fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}
