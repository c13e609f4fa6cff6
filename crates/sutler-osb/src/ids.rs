//! The five kinds of ids in OSB, each with its own type.
//!
//! An id is opaque: any text that is not empty, contains no NUL and stays within its limit. It is
//! compared byte by byte. `catalog.rs` looks ids up; `percent.rs` decodes URLs.

use crate::percent::{self, DecodeError, PlusSign};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Longest service, plan, instance or binding id, in bytes: every store can use it as a key.
pub const ID_BYTES_MAX: usize = 512;
/// Longest `operation`, in characters (B-086).
pub const OPERATION_CHARS_MAX: usize = 10_000;

/// A text that is not an id. Its `Display` is a sentence that names the field of the specification.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {fault}")]
pub struct IdError {
    /// The field as the specification spells it, e.g. `service_id`.
    pub field: &'static str,
    /// Reason.
    pub fault: IdFormatError,
}

/// Reason why a text is not an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdFormatError {
    /// The text is empty.
    #[error("must not be empty")]
    Empty,
    /// Longer than [`ID_BYTES_MAX`].
    #[error("must not be longer than {ID_BYTES_MAX} bytes")]
    TooManyBytes,
    /// Longer than [`OPERATION_CHARS_MAX`].
    #[error("must not be longer than {OPERATION_CHARS_MAX} characters")]
    TooManyChars,
    /// The text holds U+0000.
    #[error("must not contain a NUL character")]
    Nul,
    /// A `%` without two hex digits behind it.
    #[error("must be percent-encoded correctly: every `%` needs two hex digits behind it")]
    BrokenEscape,
    /// The percent-decoded bytes are not UTF-8.
    #[error("must be UTF-8 once it is percent-decoded")]
    NotUtf8,
}

macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident, $field:literal, $check:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The field's name in the specification.
            pub const FIELD: &'static str = $field;
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
            /// Decodes one segment of a URL path; `+` is itself there.
            pub fn from_path_segment(segment: &str) -> Result<Self, IdError> {
                decoded(segment, PlusSign::IsPlus, $field)?.try_into()
            }
            /// Decodes one value of a query string; `+` is a space there.
            pub fn from_query_value(value: &str) -> Result<Self, IdError> {
                decoded(value, PlusSign::IsSpace, $field)?.try_into()
            }
            /// The percent-encoded form, fit for a path segment and for a query value.
            pub fn to_url(&self) -> String {
                percent::encode(&self.0)
            }
        }
        string_id_conversions!($name, $field, $check);
    };
}

macro_rules! string_id_conversions {
    ($name:ident, $field:literal, $check:ident) => {
        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                match $check(&text) {
                    Ok(()) => Ok(Self(text)),
                    Err(fault) => Err(IdError {
                        field: $field,
                        fault,
                    }),
                }
            }
        }
        impl TryFrom<&str> for $name {
            type Error = IdError;
            fn try_from(text: &str) -> Result<Self, IdError> {
                text.to_owned().try_into()
            }
        }
        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

string_id!(
    /// Names a service offering of the catalog.
    ServiceId,
    "service_id",
    check_bytes
);
string_id!(
    /// Names a plan; meaningful only together with its service offering.
    PlanId,
    "plan_id",
    check_bytes
);
string_id!(
    /// Names a service instance; chosen by the platform.
    InstanceId,
    "instance_id",
    check_bytes
);
string_id!(
    /// Names a binding; chosen by the platform and unique within its instance only.
    BindingId,
    "binding_id",
    check_bytes
);
string_id!(
    /// The `operation` string by which a poll names its asynchronous operation.
    OperationToken,
    "operation",
    check_chars
);

fn check_bytes(text: &str) -> Result<(), IdFormatError> {
    match text.len() {
        0 => Err(IdFormatError::Empty),
        length if length > ID_BYTES_MAX => Err(IdFormatError::TooManyBytes),
        _ => check_nul(text),
    }
}

fn check_chars(text: &str) -> Result<(), IdFormatError> {
    if text.is_empty() {
        return Err(IdFormatError::Empty);
    }
    // Bytes are an upper bound of the characters, so short tokens are never counted.
    if text.len() > OPERATION_CHARS_MAX && text.chars().count() > OPERATION_CHARS_MAX {
        return Err(IdFormatError::TooManyChars);
    }
    check_nul(text)
}

fn check_nul(text: &str) -> Result<(), IdFormatError> {
    if text.bytes().any(|byte| byte == 0) {
        Err(IdFormatError::Nul)
    } else {
        Ok(())
    }
}

fn decoded(text: &str, plus: PlusSign, field: &'static str) -> Result<String, IdError> {
    match percent::decode(text, plus) {
        Ok(decoded) => Ok(decoded.into_owned()),
        Err(DecodeError::BrokenEscape) => Err(IdError {
            field,
            fault: IdFormatError::BrokenEscape,
        }),
        Err(DecodeError::NotUtf8) => Err(IdError {
            field,
            fault: IdFormatError::NotUtf8,
        }),
    }
}
