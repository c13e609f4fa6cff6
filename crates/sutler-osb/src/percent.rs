//! Percent-decoding and -encoding of path segments and query values (B-020).
//!
//! Strict where the usual crates are lenient: a `%` that is not followed by two hex digits is an
//! error, never passed through, so that no two spellings of a broken URL become the same id.
//! Used by `ids.rs` and `query.rs`.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::borrow::Cow;

/// Everything but RFC 3986's unreserved characters is encoded (B-021, P-006).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Meaning of `+`: a space in a query, itself in a path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlusSign {
    /// In a query value.
    IsSpace,
    /// In a path segment.
    IsPlus,
}

/// Why a text cannot be percent-decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecodeError {
    /// A `%` without two hex digits behind it.
    BrokenEscape,
    /// The decoded bytes are not UTF-8.
    NotUtf8,
}

/// Decodes; borrows when there is nothing to decode.
pub(crate) fn decode(text: &str, plus: PlusSign) -> Result<Cow<'_, str>, DecodeError> {
    let is_special = |byte: u8| byte == b'%' || (byte == b'+' && plus == PlusSign::IsSpace);
    let Some(first) = text.bytes().position(is_special) else {
        return Ok(Cow::Borrowed(text));
    };
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    decoded.extend_from_slice(&bytes[..first]);
    let mut at = first;
    while at < bytes.len() {
        match bytes[at] {
            b'%' => {
                let high = bytes.get(at + 1).copied().and_then(hex_digit);
                let low = bytes.get(at + 2).copied().and_then(hex_digit);
                let (Some(high), Some(low)) = (high, low) else {
                    return Err(DecodeError::BrokenEscape);
                };
                decoded.push(high * 16 + low);
                at += 3;
            }
            b'+' if plus == PlusSign::IsSpace => {
                decoded.push(b' ');
                at += 1;
            }
            byte => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(decoded)
        .map(Cow::Owned)
        .map_err(|_| DecodeError::NotUtf8)
}

/// Encodes everything that is not unreserved; the result can be used as a path segment and as a query
/// value.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}
