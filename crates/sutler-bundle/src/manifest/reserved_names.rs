//! Variable names reserved for the broker. No user parameter may have one.
//!
//! A bundle gets parameters, state and the broker's variables in one map. A user who could name a parameter
//! `state_owner` could overwrite a value that only the broker knows.

use serde_json::{Map, Value};

/// Prefixes of the broker's variables.
const PREFIXES: [&str; 3] = ["_apb_", "state_", "binding_state_"];

/// The broker's own variables.
const NAMES: [&str; 3] = ["namespace", "cluster", "provision_params"];

/// Refuses parameters with reserved names.
///
/// # Errors
/// A sentence for the caller that names the first such parameter.
pub fn refuse_reserved(parameters: &Map<String, Value>) -> Result<(), String> {
    let refused = parameters.keys().find_map(|name| {
        let shown: String = name.chars().take(64).collect();
        why_not(name).map(|reason| format!("the parameter {shown:?} {reason}"))
    });
    refused.map_or(Ok(()), Err)
}

/// Reason why a name is reserved.
pub(super) fn why_not(name: &str) -> Option<String> {
    let prefix = PREFIXES.iter().find(|prefix| name.starts_with(**prefix));
    if let Some(prefix) = prefix {
        return Some(format!(
            "must not begin with `{prefix}`: choose another name, these belong to the broker"
        ));
    }
    NAMES.contains(&name).then(|| {
        "has a name that belongs to the broker: choose another, this one would never arrive"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::refuse_reserved;
    use serde_json::{Map, json};

    #[test]
    fn names_of_the_broker_are_refused_in_parameters() {
        for name in [
            "_apb_plan_id",
            "state_",
            "state_owner",
            "binding_state_x",
            "namespace",
            "cluster",
            "provision_params",
        ] {
            let parameters = Map::from_iter([(name.to_owned(), json!(1))]);
            let reason = refuse_reserved(&parameters).expect_err(name);
            assert!(reason.contains(name), "{reason}");
        }
        for name in ["size", "State_", "namespaces", "apb_", "stateful"] {
            let parameters = Map::from_iter([(name.to_owned(), json!(1))]);
            assert_eq!(refuse_reserved(&parameters), Ok(()), "{name}");
        }
    }
}
