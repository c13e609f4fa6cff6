//! The API version of a request: `X-Broker-API-Version`.
//!
//! Parses and compares. The broker decides which versions it serves (B-001, B-002).

use std::fmt;
use std::str::FromStr;

/// `MAJOR.MINOR`, ordered as two integers: 2.9 is less than 2.17 (B-002).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApiVersion {
    /// Incremented for breaking changes.
    pub major: u32,
    /// Incremented for additions.
    pub minor: u32,
}

/// The text of the header is not a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the API version must be two integers with a dot between them, such as 2.17")]
pub struct VersionError;

/// Maximum digits of a part of the version: more than any version needs, and fits `u32`.
const PART_DIGITS_MAX: usize = 9;

impl ApiVersion {
    /// The version this crate implements.
    pub const CURRENT: Self = Self {
        major: 2,
        minor: 17,
    };
}

impl FromStr for ApiVersion {
    type Err = VersionError;

    /// Accepts digits, one dot, digits; no sign, no space, no leading zero.
    fn from_str(text: &str) -> Result<Self, VersionError> {
        let (major, minor) = text.split_once('.').ok_or(VersionError)?;
        Ok(Self {
            major: part(major)?,
            minor: part(minor)?,
        })
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

fn part(text: &str) -> Result<u32, VersionError> {
    let all_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let leading_zero = text.len() > 1 && text.starts_with('0');
    if !all_digits || leading_zero || text.len() > PART_DIGITS_MAX {
        return Err(VersionError);
    }
    text.parse().map_err(|_| VersionError)
}
