//! Parses the `Authorization` header of a request.
//!
//! The credentials are checked in `users.rs` and `tokens.rs`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use secrecy::zeroize::Zeroizing;

/// Maximum length of a basic authentication header that is parsed, in bytes.
const BASIC_BYTES_MAX: usize = 4096;

/// User name, colon and password; wiped when dropped.
pub(super) type CredentialPair = Zeroizing<Vec<u8>>;

/// Credentials of a request.
pub(super) enum PresentedCredentials<'a> {
    Nothing,
    Basic(CredentialPair),
    Bearer(&'a [u8]),
    /// Unknown scheme, malformed, or more than one header.
    Unreadable,
}

/// Parses the `Authorization` header. Two of them are ambiguous, and refused.
pub(super) fn presented(headers: &HeaderMap) -> PresentedCredentials<'_> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    match (all.next().map(HeaderValue::as_bytes), all.next()) {
        (None, _) => PresentedCredentials::Nothing,
        (Some(_), Some(_)) => PresentedCredentials::Unreadable,
        (Some(header), None) => match after_scheme(header, b"bearer ") {
            Some(token) => PresentedCredentials::Bearer(token),
            None => basic(header).map_or(
                PresentedCredentials::Unreadable,
                PresentedCredentials::Basic,
            ),
        },
    }
}

fn basic(header: &[u8]) -> Option<CredentialPair> {
    if header.len() > BASIC_BYTES_MAX {
        return None;
    }
    let rest = after_scheme(header, b"basic ")?;
    STANDARD.decode(rest).ok().map(Zeroizing::new)
}

/// The rest of a header after its scheme, which is case-insensitive.
fn after_scheme<'a>(header: &'a [u8], scheme: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = header.split_at_checked(scheme.len())?;
    start
        .eq_ignore_ascii_case(scheme)
        .then(|| rest.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::{PresentedCredentials, presented};
    use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};

    fn read(lines: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for line in lines {
            let value = HeaderValue::from_str(line).expect("a header value");
            headers.append(AUTHORIZATION, value);
        }
        match presented(&headers) {
            PresentedCredentials::Nothing => "nothing".to_owned(),
            PresentedCredentials::Basic(pair) => {
                format!("basic {}", String::from_utf8_lossy(&pair))
            }
            PresentedCredentials::Bearer(token) => {
                format!("bearer {}", String::from_utf8_lossy(token))
            }
            PresentedCredentials::Unreadable => "unreadable".to_owned(),
        }
    }

    /// Holds: B-010.
    #[test]
    fn a_header_is_read_by_its_scheme() {
        assert_eq!(read(&[]), "nothing");
        assert_eq!(read(&["Basic dTpw"]), "basic u:p");
        assert_eq!(read(&["bASIC   dTpw "]), "basic u:p");
        assert_eq!(read(&["bearer  a.b.c"]), "bearer a.b.c");
        assert_eq!(read(&["Bearer"]), "unreadable");
        assert_eq!(read(&["Basic"]), "unreadable");
        assert_eq!(read(&["Basic ***"]), "unreadable");
        assert_eq!(read(&["dTpw"]), "unreadable");
        assert_eq!(read(&["Digest dTpw"]), "unreadable");
    }

    #[test]
    fn two_headers_are_unreadable() {
        assert_eq!(read(&["Basic dTpw", "Basic dTpw"]), "unreadable");
    }

    #[test]
    fn an_overlong_header_is_not_decoded() {
        let long = format!("Basic {}", "A".repeat(10_000));
        assert_eq!(read(&[&long]), "unreadable");
    }
}
