//! Operations on the wire: their kinds, their states, and poll responses.
//!
//! The lifecycle of an operation (lanes, leases, retries) is in `sutler-journal`.

use crate::ids::OperationToken;
use crate::serde_optional;
use serde::{Deserialize, Serialize};

/// Kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationKind {
    /// Creates an instance.
    Provision,
    /// Changes an instance.
    Update,
    /// Removes an instance.
    Deprovision,
    /// Creates a binding, also by rotation.
    Bind,
    /// Removes a binding.
    Unbind,
}

impl OperationKind {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Provision,
        Self::Update,
        Self::Deprovision,
        Self::Bind,
        Self::Unbind,
    ];

    /// Name on the wire: `provision`, `unbind` …
    pub const fn word(self) -> &'static str {
        match self {
            Self::Provision => "provision",
            Self::Update => "update",
            Self::Deprovision => "deprovision",
            Self::Bind => "bind",
            Self::Unbind => "unbind",
        }
    }

    /// The kind with this name.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// Whether its failure may contain `instance_usable` (B-033, B-102).
    pub fn may_say_instance_usable(self) -> bool {
        match self {
            Self::Update | Self::Deprovision => true,
            Self::Provision | Self::Bind | Self::Unbind => false,
        }
    }

    /// Whether its failure may contain `update_repeatable` (B-034, B-102).
    pub fn may_say_update_repeatable(self) -> bool {
        match self {
            Self::Update => true,
            Self::Provision | Self::Deprovision | Self::Bind | Self::Unbind => false,
        }
    }
}

/// State of an operation (B-100).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum OperationState {
    /// Not done: poll again.
    #[serde(rename = "in progress")]
    InProgress,
    /// Done.
    #[serde(rename = "succeeded")]
    Succeeded,
    /// Over, without success.
    #[serde(rename = "failed")]
    Failed,
}

/// The answer of both `last_operation` endpoints (B-100, B-101, B-102, B-110).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastOperationResponse {
    /// State of the operation.
    pub state: OperationState,
    /// For the user; never written when empty.
    #[serde(
        default,
        skip_serializing_if = "serde_optional::is_empty_or_absent",
        deserialize_with = "serde_optional::empty_is_absent"
    )]
    pub description: Option<String>,
    /// Whether the instance can still be used; only after a failed update or deprovision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_usable: Option<bool>,
    /// Whether the same update may be sent again; only after a failed update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_repeatable: Option<bool>,
}

impl LastOperationResponse {
    /// Only a state.
    pub fn of_state(state: OperationState) -> Self {
        Self {
            state,
            description: None,
            instance_usable: None,
            update_repeatable: None,
        }
    }

    /// Removes the fields that an operation of this kind, in this state, must not have (B-102).
    pub fn scoped_to(mut self, kind: OperationKind) -> Self {
        let failed = match self.state {
            OperationState::Failed => true,
            OperationState::InProgress | OperationState::Succeeded => false,
        };
        if !failed || !kind.may_say_instance_usable() {
            self.instance_usable = None;
        }
        if !failed || !kind.may_say_update_repeatable() {
            self.update_repeatable = None;
        }
        self
    }
}

/// The answer to a deprovision or an unbind: `{}`, or the operation of a 202 (B-242, B-252).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteResponse {
    /// Operation token for polls.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "serde_optional::empty_is_absent"
    )]
    pub operation: Option<OperationToken>,
}
