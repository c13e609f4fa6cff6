//! Actions of a bundle, with the names of Automation Broker's contract.
//!
//! The rules of each action are in `manifest/settings.rs`.

use std::fmt;
use std::str::FromStr;

/// An action of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// Creates an instance.
    Provision,
    /// Changes an instance.
    Update,
    /// Removes an instance.
    Deprovision,
    /// Creates a binding.
    Bind,
    /// Removes a binding.
    Unbind,
}

/// No action has this name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no action {0:?}: it is one of provision, update, deprovision, bind, unbind")]
pub struct UnknownActionError(String);

impl Action {
    /// All actions, in the order of an instance's life.
    pub const ALL: [Self; 5] = [
        Self::Provision,
        Self::Update,
        Self::Bind,
        Self::Unbind,
        Self::Deprovision,
    ];

    /// Name of the action as passed to the entry point.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Provision => "provision",
            Self::Update => "update",
            Self::Deprovision => "deprovision",
            Self::Bind => "bind",
            Self::Unbind => "unbind",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Action {
    type Err = UnknownActionError;

    fn from_str(text: &str) -> Result<Self, UnknownActionError> {
        let mut all = Self::ALL.into_iter();
        all.find(|action| action.as_str() == text)
            .ok_or_else(|| UnknownActionError(text.chars().take(64).collect()))
    }
}
