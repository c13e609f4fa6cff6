//! Users by name and password.
//!
//! A request costs one SHA-256 and one look-up, whatever the number of users: pairs are found by a digest under
//! a key of this process, which a client cannot influence, so the time of the look-up reveals nothing.
//! Passwords given as Argon2id hashes are checked slowly once (`password_verifier.rs`), then cached
//! (`password_cache.rs`). If there is one such user, every wrong pair costs a slow check, whether its user
//! exists or not.

use super::config_error::AuthConfigError;
use super::hash::Argon2Hash;
use super::header::CredentialPair;
use super::password_cache::PasswordCache;
use super::password_verifier::{self, HashJob, PasswordVerifier};
use super::rejection::{Challenges, Rejection};
use super::throttle::GuessThrottle;
use super::{AuthMethod, Caller};
use argon2::password_hash::try_generate_salt;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use subtle::ConstantTimeEq;
use tokio::time::Instant;

/// Maximum length of a user name, in bytes.
const USER_BYTES_MAX: usize = 128;
/// Maximum length of a password, in bytes.
pub(super) const PASSWORD_BYTES_MAX: usize = 1024;

/// Users that are accepted, each with a password or a password hash.
pub struct Users {
    key: [u8; 32],
    names: BTreeSet<Arc<str>>,
    /// Digests of the pairs with a plain password.
    known: HashMap<[u8; 32], ([u8; 32], Caller)>,
    hashed: BTreeMap<Arc<str>, Argon2Hash>,
    slow: Arc<SlowChecks>,
}

/// State of slow checks.
struct SlowChecks {
    cache: PasswordCache,
    throttle: Mutex<GuessThrottle>,
    verifier: PasswordVerifier,
}

impl Default for Users {
    fn default() -> Self {
        Self::new()
    }
}

impl Users {
    /// An empty list.
    ///
    /// # Panics
    /// The system has no random bytes.
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
            slow: Arc::new(SlowChecks {
                cache: PasswordCache::new(Instant::now()),
                throttle: Mutex::default(),
                verifier: PasswordVerifier::default(),
            }),
        }
    }

    /// Adds a user with a password. Only a digest of it is kept.
    ///
    /// # Errors
    /// The name or the password cannot be used, or the name is taken.
    pub fn with_password(
        mut self,
        user: &str,
        password: &SecretString,
    ) -> Result<Self, AuthConfigError> {
        let name = self.new_name(user)?;
        let password = password.expose_secret();
        if password.is_empty() || password.len() > PASSWORD_BYTES_MAX {
            return Err(AuthConfigError::Password(user.to_owned()));
        }
        let digest = self.digest(&[user.as_bytes(), b":", password.as_bytes()]);
        let caller = Caller::named(name.clone(), AuthMethod::Basic);
        self.known.insert(digest, (digest, caller));
        self.names.insert(name);
        Ok(self)
    }

    /// Adds a user with the Argon2id hash of a password, in PHC format.
    ///
    /// # Errors
    /// The name or the hash cannot be used, the hash is too weak or too costly, or the name is taken.
    pub fn with_hash(mut self, user: &str, hash: &str) -> Result<Self, AuthConfigError> {
        let name = self.new_name(user)?;
        self.hashed
            .insert(name.clone(), Argon2Hash::parse(user, hash)?);
        self.names.insert(name);
        Ok(self)
    }

    /// Number of users.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    fn new_name(&self, user: &str) -> Result<Arc<str>, AuthConfigError> {
        let usable = (1..=USER_BYTES_MAX).contains(&user.len())
            && !user.contains(|c: char| c == ':' || c.is_control());
        if !usable {
            return Err(AuthConfigError::UserName(user.to_owned()));
        }
        if self.names.contains(user) {
            return Err(AuthConfigError::DuplicateUser(user.to_owned()));
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

    /// Authenticates a pair.
    pub(super) async fn admit(
        &self,
        pair: CredentialPair,
        challenges: Challenges,
    ) -> Result<Caller, Rejection> {
        let digest = self.digest(&[&pair]);
        if let Some((expected, caller)) = self.known.get(&digest)
            && bool::from(expected.ct_eq(&digest))
        {
            return Ok(caller.clone());
        }
        if self.hashed.is_empty() {
            return Err(Rejection::unproven(challenges));
        }
        let now = Instant::now();
        if let Some(caller) = self.slow.cache.find(&digest, now) {
            return Ok(caller);
        }
        let right = Box::pin(self.check_slowly(pair, digest, now)).await?;
        let found = || self.slow.cache.find(&digest, Instant::now());
        let caller = right.then(found).flatten();
        caller.ok_or_else(|| Rejection::unproven(challenges))
    }

    async fn check_slowly(
        &self,
        pair: CredentialPair,
        digest: [u8; 32],
        now: Instant,
    ) -> Result<bool, Rejection> {
        let ticket = match self.slow.verifier.turn(digest) {
            HashJob::Shared(verdict) => return Ok(password_verifier::right(verdict).await),
            HashJob::QueueFull => return Err(Rejection::Busy),
            HashJob::Mine(ticket) => ticket,
        };
        let colon = pair.iter().position(|byte| *byte == b':');
        let split = colon.unwrap_or(pair.len());
        let user = self.digest(&[b"user:", &pair[..split]]);
        self.slow
            .throttle()
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
                let caller = Caller::named(name, AuthMethod::Basic);
                state.cache.keep(digest, caller, Instant::now());
                state.throttle().right(user);
            }
        };
        Ok(password_verifier::right(ticket.check(slow, ended)).await)
    }

    /// Hash to check an unknown user against: the same one for the same name, so that each attempt costs as
    /// much as if the user existed.
    fn decoy(&self, user: [u8; 32]) -> Argon2Hash {
        let pick = usize::from(user[0]) % self.hashed.len().max(1);
        let hash = self.hashed.values().nth(pick);
        hash.expect("only asked for where there are hashes").clone()
    }
}

impl SlowChecks {
    fn throttle(&self) -> std::sync::MutexGuard<'_, GuessThrottle> {
        self.throttle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Users").field(&self.names).finish()
    }
}
