//! The name of an instance or a binding, taken: the only guard of its uniqueness.

use super::record::TypedRecord;
use serde::{Deserialize, Serialize};
use sutler_journal::Term;
use uuid::Uuid;

/// The holder of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameRecord {
    /// Uid of the instance, or of the instance of the binding.
    pub instance: Uuid,
    /// Uid of the binding, if it is the name of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<Uuid>,
}

impl TypedRecord for NameRecord {
    fn terms(&self) -> Vec<Term> {
        Vec::new()
    }
}
