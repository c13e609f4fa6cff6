//! State of instances and bindings between actions, and how it changes. Pure.
//!
//! One JSON document each, sealed by the broker like any author's state. A run returns keys to set and to remove;
//! they are merged here and nowhere else. Values are never printed.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;
use sutler_broker::AuthorState;
use sutler_bundle::Action;
use sutler_runner::Vars;
use uuid::Uuid;

/// Maximum bytes of a state, as JSON.
pub const STATE_BYTES_MAX: usize = 256 * 1024;
/// Maximum keys of a state: each is a variable and a file.
pub const STATE_KEYS_MAX: usize = 1_000;
/// Maximum entries of a history; the oldest are dropped first.
pub const HISTORY_MAX: usize = 50;
/// Maximum keys named by one entry of a history.
const HISTORY_KEYS_MAX: usize = 50;

/// The version of a bundle that made an instance: later actions run this one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundlePin {
    /// The bundle's name.
    pub name: String,
    /// Its version in the manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its content: `sha256:…`.
    pub digest: String,
}

/// One change. Keys only, never values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// Operation that made it.
    pub operation: Uuid,
    /// The action.
    pub action: String,
    /// Time of the change.
    pub at: Timestamp,
    /// Keys that were set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// Keys that were removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
}

/// State of an instance.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct InstanceState {
    /// The bundle version that made it.
    pub bundle: BundlePin,
    /// State set by the bundle; input of every later action.
    #[serde(default)]
    pub state: Map<String, Value>,
    /// State set by a failed provision, for clean-up or the next attempt.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub aside: Map<String, Value>,
    /// Credentials of the provision: for the bundle's own later actions, and by default not for bindings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Map<String, Value>>,
    /// Dashboard URL that the bundle reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dashboard_url: Option<String>,
    /// History of changes, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<HistoryEntry>,
}

/// State of a binding.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BindingState {
    /// State set by the bundle.
    #[serde(default)]
    pub state: Map<String, Value>,
    /// Credentials of the bind, for the unbind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Map<String, Value>>,
    /// Whether it has the provision's credentials: no action ran, and none is needed for the unbind.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
}

/// The stored state cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("what is kept was not written by this version; restore the store, or purge the resource")]
pub struct StateReadError;

/// The state exceeds its limits.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "The bundle's state would have {bytes} bytes and {keys} keys; at most {STATE_BYTES_MAX} and \
     {STATE_KEYS_MAX} are kept. Keep less in it, or remove keys by setting them to null."
)]
pub struct StateTooLargeError {
    bytes: usize,
    keys: usize,
}

impl fmt::Debug for InstanceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<&String> = self.state.keys().collect();
        f.debug_struct("InstanceState")
            .field("bundle", &self.bundle)
            .field("keys", &keys)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for BindingState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<&String> = self.state.keys().collect();
        f.debug_struct("BindingState")
            .field("keys", &keys)
            .finish_non_exhaustive()
    }
}

/// Origin of a change of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeOrigin {
    /// The operation.
    pub operation: Uuid,
    /// The action.
    pub action: Action,
    /// Time of the change.
    pub at: Timestamp,
}

impl InstanceState {
    /// State of a new instance.
    #[must_use]
    pub fn of(bundle: BundlePin) -> Self {
        Self {
            bundle,
            ..Self::default()
        }
    }

    /// Reads the state that the broker stored.
    ///
    /// # Errors
    /// The state was not written by this service.
    pub fn read(kept: &AuthorState) -> Result<Self, StateReadError> {
        serde_json::from_value(kept.0.clone()).map_err(|_| StateReadError)
    }

    /// The state, in the form the broker stores.
    #[must_use]
    pub fn kept(&self) -> AuthorState {
        AuthorState(serde_json::to_value(self).unwrap_or_default())
    }

    /// State as input of an action; keys set aside by a failed provision are added where the state lacks them.
    /// `None` if nothing was ever set.
    #[must_use]
    pub fn as_vars(&self) -> Option<Map<String, Value>> {
        let mut all = self.aside.clone();
        all.extend(self.state.clone());
        (!all.is_empty()).then_some(all)
    }

    /// Whether an operation has changed it already.
    #[must_use]
    pub fn has_entry_of(&self, operation: Uuid) -> bool {
        self.history.iter().any(|it| it.operation == operation)
    }

    /// Merges the keys set by a run.
    ///
    /// # Errors
    /// The state would be too large; nothing is changed.
    pub fn merge(
        &mut self,
        patch: Option<&Vars>,
        by: ChangeOrigin,
    ) -> Result<(), StateTooLargeError> {
        let Some(patch) = patch else { return Ok(()) };
        let (next, set, removed) = merged(&self.state, &patch.0)?;
        self.state = next;
        if !set.is_empty() || !removed.is_empty() {
            self.history.push(HistoryEntry {
                operation: by.operation,
                action: by.action.to_string(),
                at: by.at,
                set,
                removed,
            });
            let over = self.history.len().saturating_sub(HISTORY_MAX);
            self.history.drain(..over);
        }
        Ok(())
    }

    /// Makes the state set aside by a failed provision part of the state: a later provision that got it has
    /// succeeded.
    pub fn promote_aside(&mut self) {
        self.state = self.as_vars().unwrap_or_default();
        self.aside.clear();
    }

    /// Puts the state set by a failed provision aside, for clean-up. Keys over the limit are dropped: a partial
    /// state is better for clean-up than none.
    pub fn set_aside(&mut self, patch: Option<&Vars>) {
        keep_what_fits(&mut self.aside, patch);
    }
}

impl BindingState {
    /// Reads the state that the broker stored.
    ///
    /// # Errors
    /// The state was not written by this service.
    pub fn read(kept: &AuthorState) -> Result<Self, StateReadError> {
        serde_json::from_value(kept.0.clone()).map_err(|_| StateReadError)
    }

    /// State as input of an unbind. `None` if none was ever set.
    #[must_use]
    pub fn as_vars(&self) -> Option<Map<String, Value>> {
        (!self.state.is_empty()).then(|| self.state.clone())
    }

    /// Merges the keys set by a run.
    ///
    /// # Errors
    /// The state would be too large; nothing is changed.
    pub fn merge(&mut self, patch: Option<&Vars>) -> Result<(), StateTooLargeError> {
        if let Some(patch) = patch {
            self.state = merged(&self.state, &patch.0)?.0;
        }
        Ok(())
    }

    /// Merges the keys set by a failed bind, within the limits: a partial state is better for clean-up than none.
    pub fn keep_what_fits(&mut self, patch: Option<&Vars>) {
        keep_what_fits(&mut self.state, patch);
    }
}

/// Merges as much of a patch as the limits allow, the smallest values first.
fn keep_what_fits(state: &mut Map<String, Value>, patch: Option<&Vars>) {
    let Some(patch) = patch else { return };
    let (removed, mut set): (Vec<_>, Vec<_>) = patch.0.iter().partition(|it| it.1.is_null());
    for (key, _) in removed {
        state.remove(key);
    }
    let written = |value: &Value| serde_json::to_vec(value).map_or(usize::MAX, |it| it.len());
    set.sort_by_cached_key(|(_, value)| written(value));
    for (key, value) in set {
        let before = state.insert(key.clone(), value.clone());
        if fits(state).is_ok() {
            continue;
        }
        match before {
            Some(before) => state.insert(key.clone(), before),
            None => state.remove(key),
        };
    }
}

type MergedState = (Map<String, Value>, Vec<String>, Vec<String>);

/// The state after a patch, with the keys that were set and removed.
fn merged(
    state: &Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<MergedState, StateTooLargeError> {
    let mut next = state.clone();
    let (mut set, mut removed) = (Vec::new(), Vec::new());
    for (key, value) in patch {
        if value.is_null() {
            if next.remove(key).is_some() {
                removed.push(key.clone());
            }
        } else {
            next.insert(key.clone(), value.clone());
            set.push(key.clone());
        }
    }
    fits(&next)?;
    set.truncate(HISTORY_KEYS_MAX);
    removed.truncate(HISTORY_KEYS_MAX);
    Ok((next, set, removed))
}

fn fits(state: &Map<String, Value>) -> Result<(), StateTooLargeError> {
    let bytes = serde_json::to_vec(state).map_or(usize::MAX, |it| it.len());
    let keys = state.len();
    if bytes > STATE_BYTES_MAX || keys > STATE_KEYS_MAX {
        return Err(StateTooLargeError { bytes, keys });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{BundlePin, ChangeOrigin, HISTORY_MAX, InstanceState, STATE_BYTES_MAX};
    use jiff::Timestamp;
    use serde_json::{Value, json};
    use sutler_bundle::Action;
    use sutler_runner::Vars;
    use uuid::Uuid;

    fn vars(value: Value) -> Vars {
        Vars(serde_json::from_value(value).expect("an object"))
    }

    fn by(nth: u128) -> ChangeOrigin {
        ChangeOrigin {
            operation: Uuid::from_u128(nth),
            action: Action::Update,
            at: Timestamp::UNIX_EPOCH,
        }
    }

    fn with(state: Value) -> InstanceState {
        let mut made = InstanceState::of(BundlePin::default());
        made.merge(Some(&vars(state)), by(0)).expect("it fits");
        made
    }

    #[test]
    fn keys_are_set_and_null_removes_them() {
        let table = [
            (json!({}), json!({ "a": 1 }), json!({ "a": 1 })),
            (
                json!({ "a": 1 }),
                json!({ "b": 2 }),
                json!({ "a": 1, "b": 2 }),
            ),
            (json!({ "a": 1 }), json!({ "a": 2 }), json!({ "a": 2 })),
            (
                json!({ "a": 1, "b": 2 }),
                json!({ "a": null }),
                json!({ "b": 2 }),
            ),
            (json!({ "a": 1 }), json!({ "b": null }), json!({ "a": 1 })),
            (json!({ "a": 1 }), json!({}), json!({ "a": 1 })),
            (
                json!({ "a": { "x": 1 } }),
                json!({ "a": { "y": 2 } }),
                json!({ "a": { "y": 2 } }),
            ),
            (
                json!({ "a": false }),
                json!({ "b": "" }),
                json!({ "a": false, "b": "" }),
            ),
        ];
        for (before, patch, after) in table {
            let mut state = with(before.clone());
            state
                .merge(Some(&vars(patch.clone())), by(1))
                .expect("it fits");
            assert_eq!(Value::Object(state.state), after, "{before} with {patch}");
        }
    }

    #[test]
    fn a_too_large_state_changes_nothing_and_gives_a_hint() {
        let mut state = with(json!({ "a": 1 }));
        let before = state.clone();
        let large = vars(json!({ "b": "x".repeat(STATE_BYTES_MAX) }));
        let refused = state.merge(Some(&large), by(1)).expect_err("too large");
        assert!(refused.to_string().contains("null"), "{refused}");
        assert!(!refused.to_string().contains("xxx"));
        assert_eq!(state, before);
    }

    #[test]
    fn the_history_has_keys_and_no_values_and_an_end() {
        let mut state = with(json!({ "password": "hush" }));
        for nth in 1..=100 {
            let patch = vars(json!({ "n": nth.to_string() }));
            state.merge(Some(&patch), by(nth)).expect("it fits");
        }
        state
            .merge(Some(&vars(json!({ "n": null }))), by(200))
            .expect("it fits");
        assert_eq!(state.history.len(), HISTORY_MAX);
        let last = state.history.last().expect("an entry");
        assert_eq!(last.removed, ["n"]);
        assert!(state.has_entry_of(Uuid::from_u128(200)));
        assert!(!state.has_entry_of(Uuid::from_u128(1)), "the oldest went");
        assert!(
            !serde_json::to_string(&state.history)
                .expect("JSON")
                .contains("hush")
        );
        assert!(!format!("{state:?}").contains("hush"));
    }

    #[test]
    fn state_set_by_a_failed_provision_is_for_clean_up_only() {
        let mut state = InstanceState::of(BundlePin::default());
        assert_eq!(state.as_vars(), None);
        state.set_aside(Some(&vars(json!({ "db": "half", "x": 1 }))));
        state.set_aside(Some(&vars(json!({ "x": null }))));
        assert!(state.state.is_empty());
        assert_eq!(
            Value::Object(state.as_vars().expect("told")),
            json!({ "db": "half" })
        );
        state
            .merge(Some(&vars(json!({ "db": "whole" }))), by(1))
            .expect("it fits");
        assert_eq!(
            Value::Object(state.as_vars().expect("told")),
            json!({ "db": "whole" })
        );
    }

    #[test]
    fn stored_state_is_read_back() {
        let mut state = with(json!({ "a": [1, { "b": null }] }));
        state.credentials = Some(serde_json::from_value(json!({ "user": "admin" })).expect("it"));
        assert_eq!(InstanceState::read(&state.kept()), Ok(state));
        let foreign = sutler_broker::AuthorState(json!("something else"));
        assert!(InstanceState::read(&foreign).is_err());
    }
}
