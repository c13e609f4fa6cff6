//! Values of the metric labels: closed sets, so that no external input creates a new series.

use crate::lifecycle::Verb;
use sutler_journal::Outcome;

/// Kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationLabel {
    /// Creates an instance.
    Provision,
    /// Changes an instance.
    Update,
    /// Deletes an instance.
    Deprovision,
    /// Creates a binding.
    Bind,
    /// Deletes a binding.
    Unbind,
}

impl OperationLabel {
    pub(crate) const COUNT: usize = Self::Unbind as usize + 1;

    /// The label.
    pub fn word(self) -> &'static str {
        match self {
            Self::Provision => "provision",
            Self::Update => "update",
            Self::Deprovision => "deprovision",
            Self::Bind => "bind",
            Self::Unbind => "unbind",
        }
    }
}

impl From<Verb> for OperationLabel {
    fn from(verb: Verb) -> Self {
        match verb {
            Verb::Provision => Self::Provision,
            Verb::Update => Self::Update,
            Verb::Deprovision => Self::Deprovision,
            Verb::Bind => Self::Bind,
            Verb::Unbind => Self::Unbind,
        }
    }
}

pub(crate) fn outcome_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded => "succeeded",
        Outcome::Failed => "failed",
        Outcome::Cancelled => "cancelled",
    }
}

/// Part that is replaced at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReloadKind {
    /// The configuration file as a whole.
    Configuration,
    /// The catalog.
    Catalog,
    /// Users and other callers.
    Users,
    /// Certificate and key.
    Tls,
    /// The log level.
    LogLevel,
    /// The keys of the store.
    Keys,
}

impl ReloadKind {
    pub(crate) const COUNT: usize = Self::Keys as usize + 1;

    /// The label.
    pub fn word(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Catalog => "catalog",
            Self::Users => "users",
            Self::Tls => "tls",
            Self::LogLevel => "log_level",
            Self::Keys => "keys",
        }
    }
}
