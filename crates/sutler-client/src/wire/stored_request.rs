//! The stored form of a request: written down before it is sent, and sent again after a crash, byte for byte.
//!
//! It is one JSON object, version 1:
//!
//! ```json
//! {"version":1,"method":"PUT","path":["v2","service_instances","i 1"],
//!  "query":[["accepts_incomplete","true"]],
//!  "headers":[["X-Broker-API-Version","2.17"]],
//!  "body":{"text":"{\"plan_id\":\"p\"}"}}
//! ```
//!
//! Path segments, names and values are decoded, in the order and the spelling in which they are sent. The body is
//! absent, `text` if it is UTF-8, or `hex` (lower case) otherwise. A change of this form, even one more field, is another
//! version. Credentials are never in it, because the connection adds its own: a password that was replaced meanwhile
//! makes the repeated request succeed. Parameters may be secret, so the caller seals the stored form.
//!
//! Whatever can be written can be read, and whatever can be read can be sent: both ways check the same bounds.

use super::exchange::{Method, Proof, Request};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// Version of the form that is written, and the only one that is read.
const VERSION: u32 = 1;
/// Longest stored form, in bytes: a body of several hundred kilobytes with room for escapes.
pub const STORED_REQUEST_BYTES_MAX: usize = 1024 * 1024;
/// Most path segments, query parameters and headers, each. Requests of the protocol have less than ten.
const ITEMS_MAX: usize = 64;
/// Headers that the connection writes itself: credentials, and how the request is framed.
const HEADERS_OF_CONNECTION: [&str; 8] = [
    "authorization",
    "connection",
    "content-length",
    "cookie",
    "host",
    "proxy-authorization",
    "transfer-encoding",
    "upgrade",
];

/// Why a request cannot be stored, or a stored form cannot be read. `Display` contains advice and no values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoredRequestError {
    /// The stored form is too long.
    #[error(
        "the stored request would have {0} bytes, and at most {STORED_REQUEST_BYTES_MAX} are kept; make its body smaller"
    )]
    TooLong(usize),
    /// Another build wrote it.
    #[error(
        "the stored request has version {0}, and this build reads version {VERSION}; use the build that wrote it"
    )]
    UnknownVersion(u32),
    /// The bytes are not a stored request.
    #[error("these bytes are not a stored request: {0}")]
    Malformed(String),
    /// The request has something that is not stored, or that cannot be sent.
    #[error("the request cannot be stored: {0}")]
    Unsuitable(String),
}

/// The version alone: other fields belong to that version.
#[derive(Deserialize)]
struct StoredVersion {
    version: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredForm {
    version: u32,
    method: StoredMethod,
    path: Vec<String>,
    query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<StoredBody>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum StoredMethod {
    Get,
    Put,
    Patch,
    Delete,
    Post,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StoredBody {
    Text(String),
    Hex(String),
}

impl Request {
    /// The stored form of this request: one line of UTF-8.
    ///
    /// # Guarantees
    /// [`Request::from_stored`] reads it as an equal request, in this build and in later ones.
    ///
    /// # Errors
    /// It is too long, it cannot be sent, or it has credentials of its own.
    pub fn to_stored(&self) -> Result<Vec<u8>, StoredRequestError> {
        check(self).map_err(StoredRequestError::Unsuitable)?;
        let form = StoredForm {
            version: VERSION,
            method: stored_method(self.method),
            path: self.path.clone(),
            query: self.query.clone(),
            headers: self.headers.clone(),
            body: self.body.as_ref().map(stored_body),
        };
        let bytes = serde_json::to_vec(&form)
            .map_err(|error| StoredRequestError::Unsuitable(error.to_string()))?;
        match bytes.len() {
            0..=STORED_REQUEST_BYTES_MAX => Ok(bytes),
            length => Err(StoredRequestError::TooLong(length)),
        }
    }

    /// Reads a stored form.
    ///
    /// # Errors
    /// The bytes are too long, of another version, or not a request that can be sent.
    pub fn from_stored(bytes: &[u8]) -> Result<Self, StoredRequestError> {
        if bytes.len() > STORED_REQUEST_BYTES_MAX {
            return Err(StoredRequestError::TooLong(bytes.len()));
        }
        // The parser would also read an array as an object.
        if bytes.first() != Some(&b'{') {
            let reason = "it does not begin with `{`".to_owned();
            return Err(StoredRequestError::Malformed(reason));
        }
        let StoredVersion { version } = serde_json::from_slice(bytes).map_err(not_json)?;
        if version != VERSION {
            return Err(StoredRequestError::UnknownVersion(version));
        }
        let form: StoredForm = serde_json::from_slice(bytes).map_err(not_json)?;
        let request = Self {
            method: method(form.method),
            path: form.path,
            query: form.query,
            headers: form.headers,
            body: form.body.map(body).transpose()?,
            proof: Proof::Right,
        };
        check(&request).map_err(StoredRequestError::Malformed)?;
        Ok(request)
    }
}

/// The parser's own message may quote a value, and values may be secret.
fn not_json(error: serde_json::Error) -> StoredRequestError {
    let (line, column) = (error.line(), error.column());
    let reason = match error.classify() {
        serde_json::error::Category::Data => "a field is missing, unknown, or of another type",
        _ => "it is no whole JSON text",
    };
    StoredRequestError::Malformed(format!("{reason} (line {line}, column {column})"))
}

/// The bounds of both directions.
fn check(request: &Request) -> Result<(), String> {
    let lists = [
        ("path segments", request.path.len()),
        ("query parameters", request.query.len()),
        ("headers", request.headers.len()),
    ];
    if let Some((name, count)) = lists.into_iter().find(|(_, count)| *count > ITEMS_MAX) {
        return Err(format!("it has {count} {name}, at most {ITEMS_MAX}"));
    }
    match request.proof {
        Proof::Right => (),
        Proof::Missing | Proof::Wrong => {
            return Err("it is sent without the credentials of the connection".to_owned());
        }
    }
    let is_of_connection = |name: &str| {
        HEADERS_OF_CONNECTION
            .iter()
            .any(|it| it.eq_ignore_ascii_case(name))
    };
    if let Some((name, _)) = request.headers.iter().find(|(it, _)| is_of_connection(it)) {
        return Err(format!(
            "the connection writes the header {name:?} itself; leave it out"
        ));
    }
    request.unsendable().map_or(Ok(()), Err)
}

fn stored_body(body: &Bytes) -> StoredBody {
    if let Ok(text) = std::str::from_utf8(body) {
        return StoredBody::Text(text.to_owned());
    }
    let mut hex = String::with_capacity(2 * body.len());
    for byte in body {
        let _ = write!(hex, "{byte:02x}");
    }
    StoredBody::Hex(hex)
}

fn body(stored: StoredBody) -> Result<Bytes, StoredRequestError> {
    match stored {
        StoredBody::Text(text) => Ok(text.into()),
        StoredBody::Hex(hex) => {
            let pairs = hex.as_bytes().chunks(2);
            let bytes: Option<Vec<u8>> = pairs.map(byte).collect();
            let bytes = bytes.ok_or_else(|| {
                StoredRequestError::Malformed("its body is not pairs of hex digits".to_owned())
            })?;
            Ok(bytes.into())
        }
    }
}

fn byte(pair: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let &[high, low] = pair else {
        return None;
    };
    u8::try_from(16 * digit(high)? + digit(low)?).ok()
}

fn stored_method(method: Method) -> StoredMethod {
    match method {
        Method::Get => StoredMethod::Get,
        Method::Put => StoredMethod::Put,
        Method::Patch => StoredMethod::Patch,
        Method::Delete => StoredMethod::Delete,
        Method::Post => StoredMethod::Post,
    }
}

fn method(stored: StoredMethod) -> Method {
    match stored {
        StoredMethod::Get => Method::Get,
        StoredMethod::Put => Method::Put,
        StoredMethod::Patch => Method::Patch,
        StoredMethod::Delete => Method::Delete,
        StoredMethod::Post => Method::Post,
    }
}
