//! Sealing: encrypts stored data, so that only the key ring can read it.
//!
//! AES-256-GCM-SIV with a random nonce: if two texts ever share a nonce, only their equality leaks.
//! The context of a text is authenticated, so that ciphertexts cannot be swapped between records.
//! Each sealed text names its key, so a ring can hold several: the first seals, all open, and a text of
//! an older key is sealed by the first when next written, or by `rekey.rs`.
//! A ring can be replaced while it is in use; keys are only added to it then.
//! Not here: the file (`key_file.rs`).

use crate::key::Key;
use crate::operation::OperationId;
use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::digest::{self, SHA256};
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use std::fmt::{self, Write as _};
use std::sync::{Arc, PoisonError, RwLock};
use zeroize::Zeroizing;

/// First byte of everything sealed; another layout would get another number.
const LAYOUT: u8 = 1;
const KEY_BYTES: usize = 32;
/// Longest key id, in bytes.
const KEY_ID_BYTES_MAX: usize = 32;
/// Maximum keys in a ring; enough for years of rotations.
const KEYS_MAX: usize = 64;
/// Length of a check value, in bytes: enough to tell keys of one id apart.
const CHECK_BYTES: usize = 8;

/// Id of a key; stored in the clear before everything the key sealed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(String);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl KeyId {
    /// Checks an id: letters, digits, `-`, `.` and `_`, at most 32.
    ///
    /// # Errors
    /// It is not such a text.
    pub fn parse(id: &str) -> Result<Self, KeyIdError> {
        let fits = !id.is_empty()
            && id.len() <= KEY_ID_BYTES_MAX
            && id
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
        fits.then(|| Self(id.to_owned())).ok_or(KeyIdError)
    }

    /// The key that sealed a text; nothing is opened.
    ///
    /// # Errors
    /// It is not a sealed text.
    pub fn of_sealed(sealed: &[u8]) -> Result<Self, SealError> {
        let id = SealedParts::of(sealed)?.key_id;
        let id = std::str::from_utf8(id).ok();
        id.and_then(|id| Self::parse(id).ok())
            .ok_or(SealError::Layout)
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Context of a sealed text; authenticated with it.
#[derive(Clone, Copy, Debug)]
pub enum SealContext<'a> {
    /// The body of a document.
    Document(&'a Key),
    /// The request of an operation.
    Request(OperationId),
    /// The progress of an operation.
    Progress(OperationId),
    /// The detail of an operation, which a poll returns.
    Detail(OperationId),
    /// A part of a run's output.
    Log(OperationId),
}

/// Purposes, each with its own key derived from the ring's.
const PURPOSES: [&str; 5] = ["document", "request", "progress", "detail", "log"];

impl SealContext<'_> {
    fn purpose(self) -> usize {
        match self {
            Self::Document(_) => 0,
            Self::Request(_) => 1,
            Self::Progress(_) => 2,
            Self::Detail(_) => 3,
            Self::Log(_) => 4,
        }
    }

    fn name(&self) -> &[u8] {
        match self {
            Self::Document(key) => key.as_bytes(),
            Self::Request(id) | Self::Progress(id) | Self::Detail(id) | Self::Log(id) => {
                id.0.as_bytes()
            }
        }
    }
}

/// The age of the key that sealed a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealedWith {
    /// The key that seals now.
    Current,
    /// An older key: seal again at the next write.
    Older,
}

/// Why a sealed text cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// Not a sealed text.
    #[error("this is not a sealed text")]
    Layout,
    /// The ring lacks the key.
    #[error("the key {0:?} that sealed this is not in the key ring; add it back")]
    UnknownKey(String),
    /// Altered, moved from another record, or sealed by another key of that name.
    #[error(
        "a sealed text does not open at its place: altered, moved, or another key of that name"
    )]
    Broken,
}

/// Not an id of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the id of a key has 1 to {KEY_ID_BYTES_MAX} letters, digits, `-`, `.` and `_`")]
pub struct KeyIdError;

/// Why a key ring cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyRingError {
    /// No key at all.
    #[error("the key ring is empty; it needs a line `id:base64 of 32 bytes`")]
    Empty,
    /// A line that is not `id:base64`.
    #[error("line {0} of the key ring is not `id:base64 of 32 bytes`")]
    Line(usize),
    /// Two keys with one id.
    #[error("the key ring has two keys named {0:?}")]
    Twice(String),
    /// Too many keys.
    #[error("the key ring has more than {KEYS_MAX} keys")]
    TooMany,
    /// A key in use has another value in the ring that replaces it.
    #[error("the key {0:?} is not the one that is in use: give the new key another id")]
    Changed(String),
    /// The ring that replaces another one lacks the key that seals.
    #[error(
        "the key ring lacks the key {0:?}, which seals now: put it back, first or later in the file"
    )]
    LacksCurrent(String),
}

struct RingKey {
    id: KeyId,
    /// Digest of the key, to recognise another key of the same id.
    digest: Vec<u8>,
    /// Value that may be shown, to compare keys of the same id in two places.
    check: String,
    ciphers: Vec<LessSafeKey>,
}

/// The keys: the first seals, all open.
pub struct KeyRing(RwLock<Vec<Arc<RingKey>>>);

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = self.ids();
        let ids: Vec<&str> = ids.iter().map(KeyId::as_str).collect();
        write!(f, "KeyRing({}, …)", ids.join(", "))
    }
}

/// A sealed text in its parts.
struct SealedParts<'s> {
    key_id: &'s [u8],
    nonce: [u8; NONCE_LEN],
    text: &'s [u8],
}

impl<'s> SealedParts<'s> {
    fn of(sealed: &'s [u8]) -> Result<Self, SealError> {
        let [LAYOUT, id_len, rest @ ..] = sealed else {
            return Err(SealError::Layout);
        };
        let parts = rest.split_at_checked(usize::from(*id_len));
        let (key_id, rest) = parts.ok_or(SealError::Layout)?;
        let parts = rest.split_first_chunk::<NONCE_LEN>();
        let (nonce, text) = parts.ok_or(SealError::Layout)?;
        Ok(Self {
            key_id,
            nonce: *nonce,
            text,
        })
    }
}

impl KeyRing {
    /// Parses a ring: one `id:base64` per line, the sealing key first; `#` starts a comment.
    pub fn parse(text: &str) -> Result<Self, KeyRingError> {
        let mut keys: Vec<Arc<RingKey>> = Vec::new();
        for (n, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let key = parse_line(line).ok_or(KeyRingError::Line(n + 1))?;
            if keys.iter().any(|other| other.id == key.id) {
                return Err(KeyRingError::Twice(key.id.0.clone()));
            }
            if keys.len() == KEYS_MAX {
                return Err(KeyRingError::TooMany);
            }
            keys.push(Arc::new(key));
        }
        if keys.is_empty() {
            return Err(KeyRingError::Empty);
        }
        Ok(Self(RwLock::new(keys)))
    }

    /// A line with a fresh key, in the format of [`KeyRing::parse`].
    pub fn fresh_line(id: &str) -> Zeroizing<String> {
        let key = fresh_key();
        let text = Zeroizing::new(STANDARD.encode(key.as_slice()));
        Zeroizing::new(format!("{id}:{}\n", text.as_str()))
    }

    /// A ring with one random key, for stores that end with the process.
    #[must_use]
    pub fn ephemeral() -> Self {
        let key = ring_key(KeyId("ephemeral".to_owned()), &fresh_key());
        Self(RwLock::new(vec![Arc::new(key)]))
    }

    /// The key that seals now.
    ///
    /// # Panics
    /// Never: a ring has a key.
    pub fn current(&self) -> KeyId {
        self.first().id.clone()
    }

    /// All keys; the first one seals.
    pub fn ids(&self) -> Vec<KeyId> {
        let keys = self.0.read().unwrap_or_else(PoisonError::into_inner);
        keys.iter().map(|key| key.id.clone()).collect()
    }

    /// Value by which two places compare a key without showing it, as hex digits: a key is random, so that the value
    /// reveals nothing of it. `None` if the ring lacks the key.
    pub fn check_value(&self, id: &KeyId) -> Option<String> {
        let (_, key) = self.key_of(id.0.as_bytes()).ok()?;
        Some(key.check.clone())
    }

    /// Takes over the keys of another ring and their order. Keys that the other ring lacks still open until
    /// the process ends: an operation that was read before may be sealed with one.
    ///
    /// # Errors
    /// A key of the other ring has the id of a key in use and another value, or the other ring lacks the key that
    /// seals; nothing was changed.
    pub fn replace(&self, next: &Self) -> Result<(), KeyRingError> {
        let mut next = {
            let keys = next.0.read().unwrap_or_else(PoisonError::into_inner);
            keys.clone()
        };
        let mut keys = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let lacks = |key: &&Arc<RingKey>| next.iter().all(|other| other.id != key.id);
        let lacking = keys.first().filter(lacks).map(|key| key.id.0.clone());
        for key in keys.iter() {
            match next.iter().find(|other| other.id == key.id) {
                Some(other) if other.digest != key.digest => {
                    return Err(KeyRingError::Changed(key.id.0.clone()));
                }
                Some(_) => {}
                None => next.push(key.clone()),
            }
        }
        if let Some(id) = lacking {
            return Err(KeyRingError::LacksCurrent(id));
        }
        *keys = next;
        Ok(())
    }

    fn first(&self) -> Arc<RingKey> {
        let keys = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(keys.first().expect("a ring has a key"))
    }

    /// Seals a text again that an older key sealed; `None` if the current key sealed it, or if it is empty,
    /// which is not sealed.
    ///
    /// # Errors
    /// It does not open.
    pub fn reseal(
        &self,
        context: SealContext<'_>,
        sealed: &[u8],
    ) -> Result<Option<Bytes>, SealError> {
        if sealed.is_empty() || KeyId::of_sealed(sealed)? == self.current() {
            return Ok(None);
        }
        let (plain, _) = self.open(context, sealed)?;
        let plain = Zeroizing::new(plain);
        Ok(Some(self.seal(context, &plain)))
    }

    /// Seals a text for its context.
    pub fn seal(&self, context: SealContext<'_>, plain: &[u8]) -> Bytes {
        let key = self.first();
        let id = key.id.0.as_bytes();
        let nonce: [u8; NONCE_LEN] = random();
        let tag_bytes = AES_256_GCM_SIV.tag_len();
        let mut out = Vec::with_capacity(2 + id.len() + NONCE_LEN + plain.len() + tag_bytes);
        out.push(LAYOUT);
        out.push(u8::try_from(id.len()).expect("ids are at most 32 bytes"));
        out.extend_from_slice(id);
        out.extend_from_slice(&nonce);
        let head = out.len();
        out.extend_from_slice(plain);
        let tag = key.ciphers[context.purpose()]
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(context.name()),
                &mut out[head..],
            )
            .expect("the cipher takes any text that fits into memory");
        out.extend_from_slice(tag.as_ref());
        out.into()
    }

    /// The key of an id, and its position.
    fn key_of(&self, id: &[u8]) -> Result<(usize, Arc<RingKey>), SealError> {
        let keys = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let found = keys.iter().enumerate();
        let found = found.into_iter().find(|(_, key)| key.id.0.as_bytes() == id);
        found
            .map(|(n, key)| (n, Arc::clone(key)))
            .ok_or_else(|| SealError::UnknownKey(String::from_utf8_lossy(id).into_owned()))
    }

    /// Opens a text that was sealed for this context.
    pub fn open(
        &self,
        context: SealContext<'_>,
        sealed: &[u8],
    ) -> Result<(Vec<u8>, SealedWith), SealError> {
        let SealedParts {
            key_id,
            nonce,
            text,
        } = SealedParts::of(sealed)?;
        let (n, key) = self.key_of(key_id)?;
        let mut plain = text.to_vec();
        let opened = key.ciphers[context.purpose()].open_in_place(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(context.name()),
            &mut plain,
        );
        let length = opened.map_err(|_| SealError::Broken)?.len();
        plain.truncate(length);
        Ok((
            plain,
            if n == 0 {
                SealedWith::Current
            } else {
                SealedWith::Older
            },
        ))
    }
}

fn parse_line(line: &str) -> Option<RingKey> {
    let (id, key) = line.split_once(':')?;
    let id = KeyId::parse(id).ok()?;
    let bytes = Zeroizing::new(STANDARD.decode(key.trim()).ok()?);
    let key: Zeroizing<[u8; KEY_BYTES]> = Zeroizing::new(bytes.as_slice().try_into().ok()?);
    Some(ring_key(id, &key))
}

fn ring_key(id: KeyId, key: &[u8; KEY_BYTES]) -> RingKey {
    RingKey {
        id,
        digest: digest::digest(&SHA256, key).as_ref().to_vec(),
        check: check_value(key),
        ciphers: derive(key),
    }
}

fn check_value(key: &[u8; KEY_BYTES]) -> String {
    let mut context = digest::Context::new(&SHA256);
    context.update(b"sutler key check");
    context.update(key);
    let digest = context.finish();
    let bytes = digest.as_ref().iter().take(CHECK_BYTES);
    bytes.fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn derive(key: &[u8; KEY_BYTES]) -> Vec<LessSafeKey> {
    let root = Salt::new(HKDF_SHA256, b"sutler").extract(key);
    let cipher = |purpose: &&str| {
        let purpose = [purpose.as_bytes()];
        let derived = root.expand(&purpose, &AES_256_GCM_SIV);
        LessSafeKey::new(UnboundKey::from(
            derived.expect("32 bytes are short enough"),
        ))
    };
    PURPOSES.iter().map(cipher).collect()
}

fn fresh_key() -> Zeroizing<[u8; KEY_BYTES]> {
    Zeroizing::new(random())
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    aws_lc_rs::rand::fill(&mut bytes).expect("the system gives random bytes");
    bytes
}

#[cfg(test)]
mod tests;
