//! Who we are to a registry, and whom we trust. Nothing here prints what is secret.

use secrecy::SecretString;
use std::fmt;

/// What proves who asks.
#[derive(Clone, Default)]
pub enum Credentials {
    /// Nothing: what is public.
    #[default]
    None,
    /// A user and a password. Where the registry wants tokens, they are got with these.
    Basic {
        /// The user.
        user: String,
        /// The password.
        password: SecretString,
    },
    /// A token that is shown as it is.
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
    fn credentials_do_not_print_what_is_secret() {
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
