//! Identity headers: the originating identity (a user) and the request identity (one request).
//!
//! Both are read from headers and written as headers. Nothing is authenticated here: the platform
//! vouches for the values, and the broker only records them.

use crate::body::{JsonTextError, check_json_text};
use base64::Engine;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// Longest originating identity, in bytes: Kubernetes groups and extras need a few thousand.
pub const ORIGINATING_IDENTITY_BYTES_MAX: usize = 32 * 1024;
/// Longest request identity, in bytes: a GUID needs 36.
pub const REQUEST_IDENTITY_BYTES_MAX: usize = 1024;

const ANY_PADDING: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD_READER: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, ANY_PADDING);
const URL_SAFE_READER: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, ANY_PADDING);

/// The user on whose behalf a platform sends a request (B-005).
///
/// `Debug` hides the value: platforms put groups, scopes and mail addresses into it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct OriginatingIdentity {
    /// The platform's name, e.g. `cloudfoundry` or `kubernetes`; never empty.
    pub platform: String,
    /// Attributes of the user, e.g. `user_id`.
    pub value: Map<String, Value>,
}

/// A header that is not an originating identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OriginatingIdentityError {
    /// Longer than [`ORIGINATING_IDENTITY_BYTES_MAX`].
    #[error("the originating identity is longer than {ORIGINATING_IDENTITY_BYTES_MAX} bytes")]
    TooLong,
    /// No space, or nothing before it.
    #[error("the originating identity must be a platform name, a space, and a base64 value")]
    NoPlatform,
    /// The second part is not base64.
    #[error("the value of the originating identity is not base64")]
    NotBase64,
    /// The decoded value is not a JSON object.
    #[error("the value of the originating identity is not a base64-encoded JSON object")]
    NotAnObject,
    /// Nested too deeply to be stored.
    #[error("the value of the originating identity is nested too deeply")]
    TooDeep,
    /// A key has a meaning for the parser.
    #[error("the value of the originating identity has a key that is reserved")]
    Reserved,
}

impl OriginatingIdentity {
    /// Reads the header: platform, one space, base64 of a JSON object.
    ///
    /// The base64 may be standard or URL-safe, padded or not: platforms send all of them.
    pub fn parse(header: &str) -> Result<Self, OriginatingIdentityError> {
        if header.len() > ORIGINATING_IDENTITY_BYTES_MAX {
            return Err(OriginatingIdentityError::TooLong);
        }
        let (platform, encoded) = header
            .split_once(' ')
            .ok_or(OriginatingIdentityError::NoPlatform)?;
        if platform.is_empty() {
            return Err(OriginatingIdentityError::NoPlatform);
        }
        let encoded = encoded.trim();
        let json = STANDARD_READER
            .decode(encoded)
            .or_else(|_| URL_SAFE_READER.decode(encoded))
            .map_err(|_| OriginatingIdentityError::NotBase64)?;
        check_json_text(&json).map_err(|error| match error {
            JsonTextError::TooDeep => OriginatingIdentityError::TooDeep,
            JsonTextError::Reserved => OriginatingIdentityError::Reserved,
        })?;
        let value =
            serde_json::from_slice(&json).map_err(|_| OriginatingIdentityError::NotAnObject)?;
        Ok(Self {
            platform: platform.to_owned(),
            value,
        })
    }

    /// The header's value, in standard padded base64.
    pub fn to_header(&self) -> String {
        let json = Value::Object(self.value.clone()).to_string();
        format!("{} {}", self.platform, STANDARD.encode(json))
    }
}

impl fmt::Debug for OriginatingIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OriginatingIdentity({} …)", self.platform)
    }
}

/// The platform's id of one request; echoed in the response and written to logs (B-006, B-007).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RequestIdentity(String);

/// A header that is not a request identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestIdentityError {
    /// The header is empty.
    #[error("the request identity must not be empty")]
    Empty,
    /// Longer than [`REQUEST_IDENTITY_BYTES_MAX`].
    #[error("the request identity is longer than {REQUEST_IDENTITY_BYTES_MAX} bytes")]
    TooLong,
    /// A control or non-ASCII character, which could not be echoed or would forge a log line.
    #[error("the request identity must consist of visible ASCII characters and spaces")]
    NotVisible,
}

impl RequestIdentity {
    /// The header's value.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for RequestIdentity {
    type Error = RequestIdentityError;
    fn try_from(text: String) -> Result<Self, RequestIdentityError> {
        if text.trim().is_empty() {
            return Err(RequestIdentityError::Empty);
        }
        if text.len() > REQUEST_IDENTITY_BYTES_MAX {
            return Err(RequestIdentityError::TooLong);
        }
        if !text
            .bytes()
            .all(|byte| byte == b' ' || byte.is_ascii_graphic())
        {
            return Err(RequestIdentityError::NotVisible);
        }
        Ok(Self(text))
    }
}

impl TryFrom<&str> for RequestIdentity {
    type Error = RequestIdentityError;
    fn try_from(text: &str) -> Result<Self, RequestIdentityError> {
        text.to_owned().try_into()
    }
}

impl From<RequestIdentity> for String {
    fn from(identity: RequestIdentity) -> String {
        identity.0
    }
}

impl fmt::Display for RequestIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
