//! Reasons why a request is not authenticated, grouped by the remedy of its sender.
//!
//! A rejection never names the wrong part, so that guessing reveals nothing. Statuses are chosen in
//! `error_response.rs`.

use hyper::header::HeaderValue;
use std::time::Duration;

/// Accepted ways to authenticate, as a response lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenges {
    /// A user name and a password.
    pub basic: bool,
    /// A token.
    pub bearer: bool,
    /// A client certificate.
    pub certificate: bool,
}

/// Error of a bearer token (RFC 6750).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenError {
    /// The token is invalid in any respect.
    Invalid,
}

impl Challenges {
    /// The `WWW-Authenticate` headers, one for each way. There is none for certificates. `realm`: the noun
    /// that names the server, without quotes.
    pub(crate) fn headers(self, fault: Option<TokenError>, realm: &str) -> Vec<HeaderValue> {
        let mut challenges = Vec::new();
        if self.basic {
            challenges.push(format!("Basic realm=\"{realm}\", charset=\"UTF-8\""));
        }
        if self.bearer {
            challenges.push(match fault {
                Some(TokenError::Invalid) => {
                    format!("Bearer realm=\"{realm}\", error=\"invalid_token\"")
                }
                None => format!("Bearer realm=\"{realm}\""),
            });
        }
        let values = challenges.iter().map(|it| HeaderValue::from_str(it));
        values.filter_map(Result::ok).collect()
    }

    /// The description of a 401.
    pub(crate) fn sentence(self, server: &str) -> String {
        let challenges = [
            (self.basic, "the user name and password"),
            (self.bearer, "a valid token"),
            (self.certificate, "the client certificate"),
        ];
        let challenges: Vec<&str> = challenges.iter().filter(|it| it.0).map(|it| it.1).collect();
        let challenges = challenges.join(" or ");
        format!("Authenticate with {challenges} agreed for this {server}.")
    }
}

/// Why a request is not authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// Credentials are missing or wrong.
    Unproven(Challenges, Option<TokenError>),
    /// The token is valid, but lacks one of these scopes.
    LacksScope(String),
    /// Too many wrong passwords for this user.
    TooManyGuesses {
        /// How long to wait.
        again: Duration,
    },
    /// Too many passwords wait to be checked.
    Busy,
    /// The keys of the token's issuer cannot be fetched now.
    IssuerUnavailable,
}

/// The `WWW-Authenticate` header for a token without these scopes.
pub(crate) fn scope_challenge(scopes: &str, realm: &str) -> Option<HeaderValue> {
    let text =
        format!("Bearer realm=\"{realm}\", error=\"insufficient_scope\", scope=\"{scopes}\"");
    HeaderValue::from_str(&text).ok()
}

impl Rejection {
    pub(crate) fn unproven(challenges: Challenges) -> Self {
        Self::Unproven(challenges, None)
    }
}

#[cfg(test)]
mod tests {
    use super::{Challenges, TokenError, scope_challenge};

    const BOTH: Challenges = Challenges {
        basic: true,
        bearer: true,
        certificate: false,
    };

    #[test]
    fn each_method_has_its_own_header() {
        let lines = BOTH.headers(Some(TokenError::Invalid), "server");
        assert_eq!(lines.len(), 2);
        assert!(lines[0].as_bytes().starts_with(b"Basic realm="));
        assert!(lines[1].as_bytes().ends_with(b"error=\"invalid_token\""));
        let basic = Challenges {
            bearer: false,
            ..BOTH
        };
        assert_eq!(basic.headers(None, "server").len(), 1);
    }

    #[test]
    fn the_description_names_every_method_and_no_error() {
        let description = BOTH.sentence("server");
        assert!(
            description.contains("password or a valid token"),
            "{description}"
        );
        let header = scope_challenge("a b", "server").expect("a header");
        assert!(header.as_bytes().ends_with(b"scope=\"a b\""));
    }
}
