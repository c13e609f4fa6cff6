//! An id that a broker knows, taken: the only guard that no two resources of the platform have the same one.

use super::record::TypedRecord;
use serde::{Deserialize, Serialize};
use sutler_journal::Term;
use uuid::Uuid;

/// The holder of an id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerIdRecord {
    /// Its namespace.
    pub namespace: String,
    /// Uid of the instance, or of the instance of the binding.
    pub instance: Uuid,
    /// Uid of the binding, if it is the id of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<Uuid>,
}

impl TypedRecord for BrokerIdRecord {
    fn terms(&self) -> Vec<Term> {
        Vec::new()
    }
}
