//! Why a request is not let in, by what its sender can do about it.
//!
//! Never which part was wrong: whoever guesses learns nothing. Statuses are chosen in `http/error.rs`.

use hyper::header::HeaderValue;
use std::time::Duration;

/// What may be tried, as a refusal says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ways {
    /// A user name and a password.
    pub basic: bool,
    /// A token.
    pub bearer: bool,
    /// A client certificate.
    pub certificate: bool,
}

/// What is said of a token that was brought (RFC 6750).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenFault {
    /// Whatever is wrong with it.
    Invalid,
}

impl Ways {
    /// The `WWW-Authenticate` headers, one for each way. There is none for certificates. `realm`: the noun
    /// that names the server, without quotes.
    pub(crate) fn challenges(self, fault: Option<TokenFault>, realm: &str) -> Vec<HeaderValue> {
        let mut challenges = Vec::new();
        if self.basic {
            challenges.push(format!("Basic realm=\"{realm}\", charset=\"UTF-8\""));
        }
        if self.bearer {
            challenges.push(match fault {
                Some(TokenFault::Invalid) => {
                    format!("Bearer realm=\"{realm}\", error=\"invalid_token\"")
                }
                None => format!("Bearer realm=\"{realm}\""),
            });
        }
        let values = challenges.iter().map(|it| HeaderValue::from_str(it));
        values.filter_map(Result::ok).collect()
    }

    /// The sentence for whoever must try again.
    pub(crate) fn sentence(self, server: &str) -> String {
        let ways = [
            (self.basic, "the user name and password"),
            (self.bearer, "a valid token"),
            (self.certificate, "the client certificate"),
        ];
        let ways: Vec<&str> = ways.iter().filter(|it| it.0).map(|it| it.1).collect();
        let ways = ways.join(" or ");
        format!("Authenticate with {ways} agreed for this {server}.")
    }
}

/// Why somebody is not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// Nothing, or nothing right, was brought.
    Unproven(Ways, Option<TokenFault>),
    /// The token is genuine, but not for this: all of these scopes are needed.
    LacksScope(String),
    /// Too many wrong passwords for this user: wait.
    TooManyGuesses {
        /// How long.
        again: Duration,
    },
    /// Too many passwords wait to be checked.
    Busy,
    /// Whether a token is genuine cannot be found out now.
    IssuerUnavailable,
}

/// The `WWW-Authenticate` header for a token without these scopes.
pub(crate) fn scope_challenge(scopes: &str, realm: &str) -> Option<HeaderValue> {
    let text =
        format!("Bearer realm=\"{realm}\", error=\"insufficient_scope\", scope=\"{scopes}\"");
    HeaderValue::from_str(&text).ok()
}

impl Rejection {
    pub(crate) fn unproven(ways: Ways) -> Self {
        Self::Unproven(ways, None)
    }
}

#[cfg(test)]
mod tests {
    use super::{TokenFault, Ways, scope_challenge};

    const BOTH: Ways = Ways {
        basic: true,
        bearer: true,
        certificate: false,
    };

    #[test]
    fn each_way_has_a_header_of_its_own() {
        let lines = BOTH.challenges(Some(TokenFault::Invalid), "server");
        assert_eq!(lines.len(), 2);
        assert!(lines[0].as_bytes().starts_with(b"Basic realm="));
        assert!(lines[1].as_bytes().ends_with(b"error=\"invalid_token\""));
        let basic = Ways {
            bearer: false,
            ..BOTH
        };
        assert_eq!(basic.challenges(None, "server").len(), 1);
    }

    #[test]
    fn the_sentence_names_every_way_and_no_fault() {
        let said = BOTH.sentence("server");
        assert!(said.contains("password or a valid token"), "{said}");
        let header = scope_challenge("a b", "server").expect("a header");
        assert!(header.as_bytes().ends_with(b"scope=\"a b\""));
    }
}
