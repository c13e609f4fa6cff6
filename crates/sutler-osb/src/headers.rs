//! The names of the headers that OSB defines, in lower case as HTTP/2 wants them.
//!
//! Their values are parsed in `version.rs` and `identity.rs`.

/// The API version of the request; see [`crate::ApiVersion`].
pub const API_VERSION_HEADER: &str = "x-broker-api-version";
/// The user that caused the request; see [`crate::OriginatingIdentity`].
pub const ORIGINATING_IDENTITY_HEADER: &str = "x-broker-api-originating-identity";
/// The platform's id of the request; see [`crate::RequestIdentity`].
pub const REQUEST_IDENTITY_HEADER: &str = "x-broker-api-request-identity";
