//! Users by name and password.
//!
//! A request costs one SHA-256 and one look-up, however many users there are: pairs are known by a
//! digest under a key of this process, which nobody outside can steer, so the look-up tells nothing by
//! its time. Passwords given as Argon2id hashes are checked slowly once (`verifier.rs`), then
//! remembered (`remembered.rs`). If there is one such user, every wrong pair costs a slow check,
//! whether its user exists or not.

use super::fault::AuthFault;
use super::guesses::Guesses;
use super::hash::Hash;
use super::header::Pair;
use super::rejection::{Rejection, Ways};
use super::remembered::Remembered;
use super::verifier::{self, Turn, Verifier};
use super::{Caller, Via};
use argon2::password_hash::try_generate_salt;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use subtle::ConstantTimeEq;
use tokio::time::Instant;

/// Longest user name, in bytes.
const USER_BYTES_MAX: usize = 128;
/// Longest password, in bytes.
pub(super) const PASSWORD_BYTES_MAX: usize = 1024;

/// The users that may come in, each with a password or with the hash of one.
pub struct Users {
    key: [u8; 32],
    names: BTreeSet<Arc<str>>,
    /// Digests of the pairs whose password was given.
    known: HashMap<[u8; 32], ([u8; 32], Caller)>,
    hashed: BTreeMap<Arc<str>, Hash>,
    slow: Arc<Slow>,
}

/// What slow checks change.
struct Slow {
    remembered: Remembered,
    guesses: Mutex<Guesses>,
    verifier: Verifier,
}

impl Default for Users {
    fn default() -> Self {
        Self::new()
    }
}

impl Users {
    /// Nobody yet.
    ///
    /// # Panics
    /// The system gives no random bytes.
    #[must_use]
    pub fn new() -> Self {
        let mut key = [0; 32];
        for half in key.chunks_exact_mut(16) {
            half.copy_from_slice(&try_generate_salt().expect("the system gives random bytes"));
        }
        Self {
            key,
            names: BTreeSet::new(),
            known: HashMap::new(),
            hashed: BTreeMap::new(),
            slow: Arc::new(Slow {
                remembered: Remembered::new(Instant::now()),
                guesses: Mutex::default(),
                verifier: Verifier::default(),
            }),
        }
    }

    /// Adds a user by password. Only a digest of it is kept.
    ///
    /// # Errors
    /// The name or the password cannot be used, or the name is taken.
    pub fn with_password(mut self, user: &str, password: &SecretString) -> Result<Self, AuthFault> {
        let name = self.new_name(user)?;
        let password = password.expose_secret();
        if password.is_empty() || password.len() > PASSWORD_BYTES_MAX {
            return Err(AuthFault::Password(user.to_owned()));
        }
        let digest = self.digest(&[user.as_bytes(), b":", password.as_bytes()]);
        let caller = Caller::named(name.clone(), Via::Basic);
        self.known.insert(digest, (digest, caller));
        self.names.insert(name);
        Ok(self)
    }

    /// Adds a user by the Argon2id hash of a password, in PHC format.
    ///
    /// # Errors
    /// The name or the hash cannot be used, the hash is too weak or too costly, or the name is taken.
    pub fn with_hash(mut self, user: &str, hash: &str) -> Result<Self, AuthFault> {
        let name = self.new_name(user)?;
        self.hashed.insert(name.clone(), Hash::parse(user, hash)?);
        self.names.insert(name);
        Ok(self)
    }

    /// How many users there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether nobody could come in.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    fn new_name(&self, user: &str) -> Result<Arc<str>, AuthFault> {
        let usable = (1..=USER_BYTES_MAX).contains(&user.len())
            && !user.contains(|c: char| c == ':' || c.is_control());
        if !usable {
            return Err(AuthFault::UserName(user.to_owned()));
        }
        if self.names.contains(user) {
            return Err(AuthFault::DuplicateUser(user.to_owned()));
        }
        Ok(user.into())
    }

    fn digest(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut sha = Sha256::new_with_prefix(self.key);
        for part in parts {
            sha.update(part);
        }
        sha.finalize().into()
    }

    /// Who brings this pair.
    pub(super) async fn admit(&self, pair: Pair, ways: Ways) -> Result<Caller, Rejection> {
        let digest = self.digest(&[&pair]);
        if let Some((expected, caller)) = self.known.get(&digest)
            && bool::from(expected.ct_eq(&digest))
        {
            return Ok(caller.clone());
        }
        if self.hashed.is_empty() {
            return Err(Rejection::unproven(ways));
        }
        let now = Instant::now();
        if let Some(caller) = self.slow.remembered.find(&digest, now) {
            return Ok(caller);
        }
        let right = Box::pin(self.check_slowly(pair, digest, now)).await?;
        let found = || self.slow.remembered.find(&digest, Instant::now());
        let caller = right.then(found).flatten();
        caller.ok_or_else(|| Rejection::unproven(ways))
    }

    async fn check_slowly(
        &self,
        pair: Pair,
        digest: [u8; 32],
        now: Instant,
    ) -> Result<bool, Rejection> {
        let ticket = match self.slow.verifier.turn(digest) {
            Turn::Shared(verdict) => return Ok(verifier::right(verdict).await),
            Turn::Full => return Err(Rejection::Busy),
            Turn::Mine(ticket) => ticket,
        };
        let colon = pair.iter().position(|byte| *byte == b':');
        let split = colon.unwrap_or(pair.len());
        let user = self.digest(&[b"user:", &pair[..split]]);
        self.slow
            .guesses()
            .begin(user, now)
            .map_err(|again| Rejection::TooManyGuesses { again })?;
        let known = std::str::from_utf8(&pair[..split])
            .ok()
            .and_then(|name| self.hashed.get_key_value(name));
        let name = known.map(|(name, _)| name.clone());
        let hash = known.map_or_else(|| self.decoy(user), |(_, hash)| hash.clone());
        let slow = move || {
            let password = pair.get(split + 1..).unwrap_or_default();
            hash.admits(password)
        };
        let state = self.slow.clone();
        let ended = move |right: bool| {
            if let (true, Some(name)) = (right, name) {
                let caller = Caller::named(name, Via::Basic);
                state.remembered.keep(digest, caller, Instant::now());
                state.guesses().right(user);
            }
        };
        Ok(verifier::right(ticket.check(slow, ended)).await)
    }

    /// The hash that an unknown user is checked against: always the same one for the same name, so
    /// that it costs as much each time as if the user were there.
    fn decoy(&self, user: [u8; 32]) -> Hash {
        let pick = usize::from(user[0]) % self.hashed.len().max(1);
        let hash = self.hashed.values().nth(pick);
        hash.expect("only asked for where there are hashes").clone()
    }
}

impl Slow {
    fn guesses(&self) -> std::sync::MutexGuard<'_, Guesses> {
        self.guesses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Users").field(&self.names).finish()
    }
}
