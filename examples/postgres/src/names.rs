//! Names of databases and roles. Pure.
//!
//! Ids come from users and may hold anything: quotes, spaces, 512 bytes of it. A name is a prefix and a
//! digest of the ids, so it is safe in SQL, short enough, always the same for the same ids (a
//! repeated step finds the existing object), and does not reveal the id.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::{self, Write as _};
use std::str::FromStr;

/// PostgreSQL truncates longer names silently.
const NAME_BYTES_MAX: usize = 63;
/// Maximum length; leaves room for the marker and the digest.
const PREFIX_BYTES_MAX: usize = 24;
/// Enough bytes to avoid collisions.
const DIGEST_BYTES: usize = 16;

/// The name of a database or a role. `Display` quotes it for SQL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// Prefix of all names of this broker: brokers with different prefixes can share a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix(String);

/// A prefix that would not be safe in a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixError;

impl Prefix {
    /// Name of an instance's database, and of the role that owns its objects.
    pub fn instance(&self, instance: &str) -> Name {
        self.name('i', &[instance])
    }

    /// Login of a binding. Ids of bindings are unique per instance only.
    pub fn binding(&self, instance: &str, binding: &str) -> Name {
        self.name('b', &[instance, binding])
    }

    fn name(&self, mark: char, ids: &[&str]) -> Name {
        let mut digest = Sha256::new();
        for id in ids {
            // With its length, so that ("ab", "c") and ("a", "bc") differ.
            digest.update((id.len() as u64).to_be_bytes());
            digest.update(id);
        }
        let mut name = format!("{}_{mark}", self.0);
        for byte in &digest.finalize()[..DIGEST_BYTES] {
            let _ = write!(name, "{byte:02x}");
        }
        Name(name)
    }
}

impl Name {
    /// The name as a value, for queries that take it as a parameter.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a name has the form of a binding's login.
    pub fn is_of_a_binding(&self) -> bool {
        let (_, end) = self.0.rsplit_once('_').unwrap_or_default();
        end.len() == 1 + 2 * DIGEST_BYTES && end.starts_with('b')
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0)
    }
}

fn is_plain(text: &str) -> bool {
    text.starts_with(|it: char| it.is_ascii_lowercase())
        && text
            .bytes()
            .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_')
}

impl TryFrom<String> for Name {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match is_plain(&text) && text.len() <= NAME_BYTES_MAX {
            true => Ok(Self(text)),
            false => Err("not a name that this broker gives"),
        }
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        match is_plain(text) && text.len() <= PREFIX_BYTES_MAX {
            true => Ok(Self(text.to_owned())),
            false => Err(PrefixError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{NAME_BYTES_MAX, Name, PREFIX_BYTES_MAX, Prefix};

    fn prefix() -> Prefix {
        "sutler".parse().expect("a prefix")
    }

    #[test]
    fn every_id_gives_a_plain_and_short_name() {
        let long = "x".repeat(512);
        let longest: Prefix = "p".repeat(PREFIX_BYTES_MAX).parse().expect("a prefix");
        for id in ["one", "a\"b", "'; DROP ROLE postgres; --", "ä", " ", &long] {
            for name in [longest.instance(id), longest.binding(id, id)] {
                assert!(name.as_str().len() <= NAME_BYTES_MAX, "{name}");
                assert_eq!(Name::try_from(name.as_str().to_owned()), Ok(name));
            }
        }
    }

    #[test]
    fn different_ids_have_different_names_and_the_same_ids_the_same() {
        let names = [
            prefix().instance("a"),
            prefix().instance("A"),
            prefix().instance("a "),
            prefix().binding("a", "bc"),
            prefix().binding("ab", "c"),
            prefix().binding("a", "a"),
        ];
        for (n, name) in names.iter().enumerate() {
            assert!(!names[..n].contains(name), "{name}");
        }
        assert_eq!(prefix().instance("a"), prefix().instance("a"));
    }

    #[test]
    fn a_name_from_elsewhere_is_refused() {
        for text in ["", "a\"b", "A", "1a", "a-b", "ä", &"a".repeat(64)] {
            assert!(Name::try_from(text.to_owned()).is_err(), "{text}");
        }
    }

    #[test]
    fn logins_of_bindings_are_distinguished_from_other_names() {
        assert!(prefix().binding("a", "b").is_of_a_binding());
        assert!(!prefix().instance("a").is_of_a_binding());
        for other in ["postgres", "a_b", "b"] {
            let name = Name::try_from(other.to_owned()).expect("a name");
            assert!(!name.is_of_a_binding(), "{other}");
        }
    }
}
