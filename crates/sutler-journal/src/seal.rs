//! Sealing: encrypts stored data, so that only the key ring can read it.
//!
//! AES-256-GCM-SIV with a random nonce: if two texts ever share a nonce, only their equality leaks.
//! The context of a text is authenticated, so that ciphertexts cannot be swapped between records.
//! Each sealed text names its key, so a ring can hold several: the first seals, all open, and a text of
//! an older key is sealed by the first when next written.
//! Not here: the path and permissions of the key file (the executable).

use crate::key::Key;
use crate::operation::OperationId;
use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use std::fmt;
use zeroize::Zeroizing;

/// First byte of everything sealed; another layout would get another number.
const LAYOUT: u8 = 1;
const KEY_BYTES: usize = 32;
/// Longest key id, in bytes.
const KEY_ID_BYTES_MAX: usize = 32;
/// Maximum keys in a ring; enough for years of rotations.
const KEYS_MAX: usize = 64;

/// Id of a key; stored in the clear before everything the key sealed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyId(String);

impl KeyId {
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
}

struct RingKey {
    id: KeyId,
    ciphers: Vec<LessSafeKey>,
}

/// The keys: the first seals, all open.
pub struct KeyRing(Vec<RingKey>);

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<&str> = self.0.iter().map(|key| key.id.as_str()).collect();
        write!(f, "KeyRing({}, …)", ids.join(", "))
    }
}

impl KeyRing {
    /// Parses a ring: one `id:base64` per line, the sealing key first; `#` starts a comment.
    pub fn parse(text: &str) -> Result<Self, KeyRingError> {
        let mut keys: Vec<RingKey> = Vec::new();
        for (n, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let key = parse_line(line).ok_or(KeyRingError::Line(n + 1))?;
            if keys.iter().any(|other| other.id == key.id) {
                return Err(KeyRingError::Twice(key.id.0));
            }
            if keys.len() == KEYS_MAX {
                return Err(KeyRingError::TooMany);
            }
            keys.push(key);
        }
        if keys.is_empty() {
            return Err(KeyRingError::Empty);
        }
        Ok(Self(keys))
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
        let key = fresh_key();
        Self(vec![RingKey {
            id: KeyId("ephemeral".to_owned()),
            ciphers: derive(&key),
        }])
    }

    /// The key that seals now.
    pub fn current(&self) -> &KeyId {
        &self.0[0].id
    }

    /// Seals a text for its context.
    pub fn seal(&self, context: SealContext<'_>, plain: &[u8]) -> Bytes {
        let key = &self.0[0];
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

    /// Opens a text that was sealed for this context.
    pub fn open(
        &self,
        context: SealContext<'_>,
        sealed: &[u8],
    ) -> Result<(Vec<u8>, SealedWith), SealError> {
        let [LAYOUT, id_len, rest @ ..] = sealed else {
            return Err(SealError::Layout);
        };
        let (id, rest) = rest
            .split_at_checked(usize::from(*id_len))
            .ok_or(SealError::Layout)?;
        let (nonce, text) = rest
            .split_first_chunk::<NONCE_LEN>()
            .ok_or(SealError::Layout)?;
        let found = self.0.iter().position(|key| key.id.0.as_bytes() == id);
        let n =
            found.ok_or_else(|| SealError::UnknownKey(String::from_utf8_lossy(id).into_owned()))?;
        let mut plain = text.to_vec();
        let opened = self.0[n].ciphers[context.purpose()].open_in_place(
            Nonce::assume_unique_for_key(*nonce),
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
    let id_fits = !id.is_empty()
        && id.len() <= KEY_ID_BYTES_MAX
        && id
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
    let bytes = Zeroizing::new(STANDARD.decode(key.trim()).ok()?);
    let key: Zeroizing<[u8; KEY_BYTES]> = Zeroizing::new(bytes.as_slice().try_into().ok()?);
    id_fits.then(|| RingKey {
        id: KeyId(id.to_owned()),
        ciphers: derive(&key),
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
mod tests {
    use super::{KeyRing, KeyRingError, SealContext, SealError, SealedWith};
    use crate::key::{Key, Kind, Realm};
    use crate::operation::OperationId;

    fn context(id: &str) -> Key {
        Key::new(&Realm::new("broker").unwrap(), Kind::new("instance"), &[id]).unwrap()
    }

    #[test]
    fn a_sealed_text_opens_in_its_context_only() {
        let ring = KeyRing::ephemeral();
        let (here, there) = (context("a"), context("b"));
        let sealed = ring.seal(SealContext::Document(&here), b"a secret");
        assert!(!sealed.windows(8).any(|window| window == b"a secret"));
        let opened = ring.open(SealContext::Document(&here), &sealed);
        assert_eq!(opened, Ok((b"a secret".to_vec(), SealedWith::Current)));
        assert_eq!(
            ring.open(SealContext::Document(&there), &sealed),
            Err(SealError::Broken)
        );
        let elsewhere = SealContext::Request(OperationId::fresh());
        assert_eq!(ring.open(elsewhere, &sealed), Err(SealError::Broken));
    }

    #[test]
    fn a_rotated_out_key_still_opens_and_is_reported_as_older() {
        let (old, new) = (KeyRing::fresh_line("2025"), KeyRing::fresh_line("2026"));
        let before = KeyRing::parse(&old).unwrap();
        let after = KeyRing::parse(&format!("# current\n{}\n{}", *new, *old)).unwrap();
        let key = context("a");
        let sealed = before.seal(SealContext::Document(&key), b"x");
        assert_eq!(
            after.open(SealContext::Document(&key), &sealed),
            Ok((b"x".to_vec(), SealedWith::Older))
        );
        let without = KeyRing::parse(&new).unwrap();
        let refused = without.open(SealContext::Document(&key), &sealed);
        assert_eq!(refused, Err(SealError::UnknownKey("2025".to_owned())));
    }

    #[test]
    fn altered_and_foreign_bytes_never_open() {
        let ring = KeyRing::ephemeral();
        let key = context("a");
        let sealed = ring.seal(SealContext::Document(&key), b"text");
        for n in 0..sealed.len() {
            let mut altered = sealed.to_vec();
            altered[n] ^= 1;
            assert!(
                ring.open(SealContext::Document(&key), &altered).is_err(),
                "byte {n}"
            );
            assert!(
                ring.open(SealContext::Document(&key), &sealed[..n])
                    .is_err(),
                "cut at {n}"
            );
        }
    }

    #[test]
    fn a_bad_ring_is_refused_with_its_line() {
        assert_eq!(KeyRing::parse("# none\n").unwrap_err(), KeyRingError::Empty);
        assert_eq!(
            KeyRing::parse("\nshort:AAAA").unwrap_err(),
            KeyRingError::Line(2)
        );
        let line = KeyRing::fresh_line("a");
        let twice = KeyRing::parse(&format!("{}{}", *line, *line)).unwrap_err();
        assert_eq!(twice, KeyRingError::Twice("a".to_owned()));
    }

    #[test]
    fn no_key_shows_in_debug() {
        let line = KeyRing::fresh_line("a");
        let ring = KeyRing::parse(&line).unwrap();
        assert_eq!(format!("{ring:?}"), "KeyRing(a, …)");
    }
}
