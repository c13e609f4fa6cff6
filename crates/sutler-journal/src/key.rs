//! Keys of records: realm, kind, ids.
//!
//! A key is bytes and is compared as bytes in every store: `a`, `A`, `a ` and `a/b` are four ids.
//! Not here: the records (`document.rs`, `operation.rs`).

use std::fmt;

/// Longest single id in a key, in bytes.
pub const ID_BYTES_MAX: usize = 512;
/// Longest realm name, in bytes.
const REALM_BYTES_MAX: usize = 64;
/// Longest kind name, in bytes.
const KIND_BYTES_MAX: usize = 32;
/// Maximum ids in one key: an instance has one, a binding two.
const IDS_MAX: usize = 3;
/// Separates the parts of a key; no part may contain it, so no two keys share an encoding.
const SEPARATOR: u8 = 0;

/// Why something is not a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// A part is empty.
    #[error("the {0} must not be empty")]
    Empty(&'static str),
    /// A part is too long.
    #[error("the {part} is {bytes} bytes long, at most {max} are allowed")]
    TooLong {
        /// The part.
        part: &'static str,
        /// Its length.
        bytes: usize,
        /// Maximum length.
        max: usize,
    },
    /// A part contains the byte 0.
    #[error("the {0} must not contain a NUL byte")]
    Nul(&'static str),
    /// More ids than a key may have, or none.
    #[error("a key has 1 to {IDS_MAX} ids, not {0}")]
    IdCount(usize),
    /// Bytes from a store that are not a key.
    #[error("these bytes are not an encoded key")]
    Encoding,
}

/// A separate set of records: the broker's, the platform's, or one path prefix's. Realms share nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Realm(String);

impl Realm {
    /// Checks the name and makes a realm.
    pub fn new(name: impl Into<String>) -> Result<Self, KeyError> {
        let name = name.into();
        check_part("realm", name.as_bytes(), REALM_BYTES_MAX)?;
        Ok(Self(name))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Kind of resource that a key names: `instance`, `binding`, `singleton` …
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind(&'static str);

impl Kind {
    /// A kind with a name fixed at compile time: an invalid one does not compile.
    pub const fn new(name: &'static str) -> Self {
        assert!(
            !name.is_empty() && name.len() <= KIND_BYTES_MAX,
            "1 to 32 bytes"
        );
        let bytes = name.as_bytes();
        let mut i = 0;
        while i < bytes.len() {
            assert!(bytes[i] != SEPARATOR, "no NUL byte");
            i += 1;
        }
        Self(name)
    }

    /// The name.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

/// (realm, kind, id…). A lane has the key of its resource.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Box<[u8]>);

impl Key {
    /// Builds a key; the ids of a binding are its instance's id and its own, in that order.
    pub fn new(realm: &Realm, kind: Kind, ids: &[&str]) -> Result<Self, KeyError> {
        if ids.is_empty() || ids.len() > IDS_MAX {
            return Err(KeyError::IdCount(ids.len()));
        }
        let mut bytes = Self::prefix(realm, kind, ids)?;
        bytes.pop();
        Ok(Self(bytes.into_boxed_slice()))
    }

    /// The common prefix of all keys below (realm, kind, ids…); for lists.
    pub fn prefix(realm: &Realm, kind: Kind, ids: &[&str]) -> Result<Vec<u8>, KeyError> {
        let mut bytes = Vec::with_capacity(96);
        for part in [realm.as_str(), kind.as_str()] {
            bytes.extend_from_slice(part.as_bytes());
            bytes.push(SEPARATOR);
        }
        for id in ids {
            check_part("id", id.as_bytes(), ID_BYTES_MAX)?;
            bytes.extend_from_slice(id.as_bytes());
            bytes.push(SEPARATOR);
        }
        Ok(bytes)
    }

    /// Decodes the result of [`Key::as_bytes`]; for stores.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        let parts: Vec<&[u8]> = bytes.split(|byte| *byte == SEPARATOR).collect();
        let well_formed = (3..=2 + IDS_MAX).contains(&parts.len())
            && parts
                .iter()
                .all(|part| !part.is_empty() && part.len() <= ID_BYTES_MAX)
            && std::str::from_utf8(bytes).is_ok();
        if !well_formed {
            return Err(KeyError::Encoding);
        }
        Ok(Self(bytes.into()))
    }

    /// The encoding, in the order in which stores sort.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The realm's name.
    pub fn realm(&self) -> &str {
        self.part(0)
    }

    /// The kind's name.
    pub fn kind(&self) -> &str {
        self.part(1)
    }

    /// The n-th id, or `""` if the key has fewer.
    pub fn id(&self, n: usize) -> &str {
        self.part(2 + n)
    }

    fn part(&self, n: usize) -> &str {
        let part = self
            .0
            .split(|byte| *byte == SEPARATOR)
            .nth(n)
            .unwrap_or_default();
        std::str::from_utf8(part).unwrap_or_default()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self
            .0
            .split(|byte| *byte == SEPARATOR)
            .map(|part| String::from_utf8_lossy(part).escape_debug().to_string())
            .collect();
        write!(f, "Key({})", parts.join(" / "))
    }
}

fn check_part(part: &'static str, bytes: &[u8], max: usize) -> Result<(), KeyError> {
    if bytes.is_empty() {
        return Err(KeyError::Empty(part));
    }
    if bytes.len() > max {
        return Err(KeyError::TooLong {
            part,
            bytes: bytes.len(),
            max,
        });
    }
    if bytes.contains(&SEPARATOR) {
        return Err(KeyError::Nul(part));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Key, KeyError, Kind, Realm};

    const BINDING: Kind = Kind::new("binding");

    fn realm() -> Realm {
        Realm::new("broker").unwrap()
    }

    #[test]
    fn a_key_gives_back_its_parts_and_its_bytes() {
        let key = Key::new(&realm(), BINDING, &["a/b ä", "x"]).unwrap();
        assert_eq!(
            (key.realm(), key.kind(), key.id(0), key.id(1)),
            ("broker", "binding", "a/b ä", "x")
        );
        assert_eq!(Key::from_bytes(key.as_bytes()).unwrap(), key);
    }

    #[test]
    fn a_prefix_covers_the_children_and_not_the_neighbours() {
        let prefix = Key::prefix(&realm(), BINDING, &["a"]).unwrap();
        let child = Key::new(&realm(), BINDING, &["a", "x"]).unwrap();
        let neighbour = Key::new(&realm(), BINDING, &["a ", "x"]).unwrap();
        assert!(child.as_bytes().starts_with(&prefix));
        assert!(!neighbour.as_bytes().starts_with(&prefix));
    }

    #[test]
    fn empty_nul_and_overlong_ids_are_refused() {
        let long = "x".repeat(513);
        assert_eq!(
            Key::new(&realm(), BINDING, &[""]),
            Err(KeyError::Empty("id"))
        );
        assert_eq!(
            Key::new(&realm(), BINDING, &["a\0b"]),
            Err(KeyError::Nul("id"))
        );
        assert!(matches!(
            Key::new(&realm(), BINDING, &[&long]),
            Err(KeyError::TooLong { .. })
        ));
        assert_eq!(Key::new(&realm(), BINDING, &[]), Err(KeyError::IdCount(0)));
        assert_eq!(Key::from_bytes(b"no separators"), Err(KeyError::Encoding));
    }
}
