//! Credentials for a registry. `Debug` prints no secret.

use secrecy::SecretString;
use std::fmt;

/// Credentials as configured.
#[derive(Clone, Default)]
pub enum Credentials {
    /// None: anonymous access.
    #[default]
    None,
    /// User and password. If the registry requires tokens, they are requested with these.
    Basic {
        /// User.
        user: String,
        /// Password.
        password: SecretString,
    },
    /// A bearer token that is sent as it is.
    Token(SecretString),
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Basic { user, .. } => write!(f, "Basic {{ user: {user:?}, .. }}"),
            Self::Token(_) => f.write_str("Token(..)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_do_not_print_secrets() {
        let basic = Credentials::Basic {
            user: "me".to_owned(),
            password: "hush".into(),
        };
        let printed = format!("{basic:?} {:?}", Credentials::Token("hush".into()));
        assert!(
            printed.contains("me") && !printed.contains("hush"),
            "{printed}"
        );
    }
}
