//! The names of the headers that OSB defines, in lower case as HTTP/2 wants them.
//!
//! Their values are parsed in `version.rs` and `identity.rs`.

/// The version the request speaks; see [`crate::ApiVersion`].
pub const API_VERSION_HEADER: &str = "x-broker-api-version";
/// Who caused the request; see [`crate::OriginatingIdentity`].
pub const ORIGINATING_IDENTITY_HEADER: &str = "x-broker-api-originating-identity";
/// The platform's name for the request; see [`crate::RequestIdentity`].
pub const REQUEST_IDENTITY_HEADER: &str = "x-broker-api-request-identity";
