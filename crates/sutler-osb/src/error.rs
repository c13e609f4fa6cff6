//! The body of every error response.
//!
//! The broker chooses the status. The fields are defined in B-031 to B-034.

use crate::operation::OperationKind;
use crate::serde_optional;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An error code. The first four are the specification's, for status 422 (B-032).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ErrorCode {
    /// The request needs `accepts_incomplete=true`.
    AsyncRequired,
    /// Another operation is in progress.
    ConcurrencyError,
    /// The bind needs an application.
    RequiresApp,
    /// `maintenance_info.version` is not the catalog's.
    MaintenanceInfoConflict,
    /// A broker's own code, in camel case.
    Other(String),
}

impl ErrorCode {
    /// The code on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::AsyncRequired => "AsyncRequired",
            Self::ConcurrencyError => "ConcurrencyError",
            Self::RequiresApp => "RequiresApp",
            Self::MaintenanceInfoConflict => "MaintenanceInfoConflict",
            Self::Other(word) => word,
        }
    }
}

impl From<String> for ErrorCode {
    fn from(word: String) -> Self {
        match word.as_str() {
            "AsyncRequired" => Self::AsyncRequired,
            "ConcurrencyError" => Self::ConcurrencyError,
            "RequiresApp" => Self::RequiresApp,
            "MaintenanceInfoConflict" => Self::MaintenanceInfoConflict,
            _ => Self::Other(word),
        }
    }
}

impl From<ErrorCode> for String {
    fn from(code: ErrorCode) -> String {
        match code {
            ErrorCode::Other(word) => word,
            ErrorCode::AsyncRequired
            | ErrorCode::ConcurrencyError
            | ErrorCode::RequiresApp
            | ErrorCode::MaintenanceInfoConflict => code.as_str().to_owned(),
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The body of an error. Empty strings are neither written nor kept when read (B-031).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// One camel-case word for programs.
    #[serde(
        default,
        skip_serializing_if = "says_nothing",
        deserialize_with = "serde_optional::empty_is_absent"
    )]
    pub error: Option<ErrorCode>,
    /// A sentence for the user.
    #[serde(
        default,
        skip_serializing_if = "serde_optional::is_empty_or_absent",
        deserialize_with = "serde_optional::empty_is_absent"
    )]
    pub description: Option<String>,
    /// Whether the instance can still be used; only for update and deprovision (B-033).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_usable: Option<bool>,
    /// Whether the same update may be sent again; only for update (B-034).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_repeatable: Option<bool>,
}

impl ErrorBody {
    /// A sentence without a code.
    pub fn described(description: impl Into<String>) -> Self {
        Self {
            description: Some(description.into()),
            ..Self::default()
        }
    }

    /// A code with a sentence.
    pub fn coded(error: ErrorCode, description: impl Into<String>) -> Self {
        Self {
            error: Some(error),
            ..Self::described(description)
        }
    }

    /// Removes the flags that the failure of such a request must not contain; `None` is any request that is
    /// not an operation, such as a fetch (B-033, B-034).
    pub fn scoped_to(mut self, kind: Option<OperationKind>) -> Self {
        if !kind.is_some_and(OperationKind::may_say_instance_usable) {
            self.instance_usable = None;
        }
        if !kind.is_some_and(OperationKind::may_say_update_repeatable) {
            self.update_repeatable = None;
        }
        self
    }

    /// Whether the instance can still be used: true unless the broker denies it (P-096).
    pub fn leaves_instance_usable(&self) -> bool {
        self.instance_usable.unwrap_or(true)
    }

    /// Whether the same update may be sent again: true unless the broker denies it (P-097).
    pub fn leaves_update_repeatable(&self) -> bool {
        self.update_repeatable.unwrap_or(true)
    }
}

fn says_nothing(code: &Option<ErrorCode>) -> bool {
    code.as_ref().is_none_or(|code| code.as_str().is_empty())
}
