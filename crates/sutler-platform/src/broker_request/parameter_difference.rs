//! What of the parameters an update sends.
//!
//! Keeps P-092 (only what this update changes) and D-14 (a changed top-level key is sent whole). The specification has
//! no way to remove a parameter; a removed key is sent as `null`. Not here: the rest of the body (`instance.rs`).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use sutler_osb::Parameters;

/// How a broker reads the parameters of an update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UpdateParameters {
    /// It merges them into those it has: only changed keys are sent, a removed one as `null`.
    #[default]
    ChangedOnly,
    /// It replaces those it has: if one changes, all are sent.
    Whole,
}

/// A field that is sent though it is equal before and after: an intent whose outcome is unknown touched it, or the value
/// that the broker has is not known, e.g. because it came from a secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ResentField {
    /// The plan.
    Plan,
    /// The maintenance version.
    MaintenanceVersion,
    /// A parameter, by its top-level key.
    Parameter(String),
}

/// `parameters` of an update; `None` if it changes none.
pub(super) fn parameter_difference(
    sent: UpdateParameters,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    resent: &BTreeSet<ResentField>,
) -> Option<Parameters> {
    let due = due_keys(before, after, resent);
    if due.is_empty() {
        return None;
    }
    let parameters = match sent {
        UpdateParameters::Whole => after.clone(),
        UpdateParameters::ChangedOnly => {
            let value = |key: &str| after.get(key).cloned().unwrap_or(Value::Null);
            let entries = due.into_iter();
            entries.map(|key| (key.to_owned(), value(key))).collect()
        }
    };
    Some(Parameters(parameters))
}

/// Keys that changed, and those that are sent again.
fn due_keys<'a>(
    before: &'a Map<String, Value>,
    after: &'a Map<String, Value>,
    resent: &'a BTreeSet<ResentField>,
) -> BTreeSet<&'a str> {
    let keys = before.keys().chain(after.keys()).map(String::as_str);
    let changed = keys.filter(|key| before.get(*key) != after.get(*key));
    changed.chain(resent.iter().filter_map(parameter)).collect()
}

fn parameter(field: &ResentField) -> Option<&str> {
    match field {
        ResentField::Parameter(key) => Some(key),
        ResentField::Plan | ResentField::MaintenanceVersion => None,
    }
}
