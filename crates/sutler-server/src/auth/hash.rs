//! Argon2id hashes of passwords: parsed, created, and bounded in strength and cost.

use super::config_error::AuthConfigError;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, Version};
use secrecy::{ExposeSecret, SecretString};

/// Minimum memory, in KiB.
const MEMORY_KIB_MIN: u32 = 7 * 1024;
/// Minimum memory × passes, as commonly recommended, however it is split.
const WORK_KIB_MIN: u64 = 35 * 1024;
/// Maximum memory, in KiB: each running check takes it.
const MEMORY_KIB_MAX: u32 = 256 * 1024;
const PASSES_MAX: u32 = 16;
const LANES_MAX: u32 = 16;
/// Minimum length of a hash.
const OUTPUT_BYTES_MIN: usize = 16;
const SALT_BYTES_MIN: usize = 8;
/// Maximum length of a text that is parsed as a hash.
const TEXT_BYTES_MAX: usize = 512;
/// Cost used by `hash_password`: memory in KiB, passes, lanes.
const MADE_WITH: (u32, u32, u32) = (19 * 1024, 2, 1);

/// A hash within the bounds.
#[derive(Clone)]
pub(super) struct Argon2Hash(PasswordHash);

impl Argon2Hash {
    /// Parses a hash in PHC format. `user` is for the error message.
    pub(super) fn parse(user: &str, text: &str) -> Result<Self, AuthConfigError> {
        let unreadable = || AuthConfigError::Hash(user.to_owned());
        let text = text.trim();
        if text.len() > TEXT_BYTES_MAX {
            return Err(unreadable());
        }
        let hash = PasswordHash::new(text).map_err(|_| unreadable())?;
        let id = Algorithm::try_from(hash.algorithm.as_str()).ok();
        let version = hash.version.map(Version::try_from).and_then(Result::ok);
        if id != Some(Algorithm::Argon2id) || version != Some(Version::V0x13) {
            return Err(unreadable());
        }
        let (Some(salt), Some(output)) = (&hash.salt, &hash.hash) else {
            return Err(unreadable());
        };
        let params = Params::try_from(&hash).map_err(|_| unreadable())?;
        let work = u64::from(params.m_cost()) * u64::from(params.t_cost());
        if params.m_cost() < MEMORY_KIB_MIN
            || work < WORK_KIB_MIN
            || output.len() < OUTPUT_BYTES_MIN
            || salt.len() < SALT_BYTES_MIN
        {
            return Err(AuthConfigError::WeakHash(user.to_owned()));
        }
        if params.m_cost() > MEMORY_KIB_MAX
            || params.t_cost() > PASSES_MAX
            || params.p_cost() > LANES_MAX
        {
            return Err(AuthConfigError::CostlyHash(user.to_owned()));
        }
        Ok(Self(hash))
    }

    /// Whether a password matches. Slow by design: never call it on a thread that serves requests.
    pub(super) fn admits(&self, password: &[u8]) -> bool {
        Argon2::default().verify_password(password, &self.0).is_ok()
    }
}

/// The Argon2id hash of a password, in the format of configuration files. Takes some milliseconds, by design.
///
/// # Errors
/// The password cannot be used, or the system has no random bytes.
pub fn hash_password(password: &SecretString) -> Result<String, AuthConfigError> {
    let password = password.expose_secret();
    if password.is_empty() || password.len() > super::users::PASSWORD_BYTES_MAX {
        return Err(AuthConfigError::Password("this user".to_owned()));
    }
    let (memory, passes, lanes) = MADE_WITH;
    let params = Params::new(memory, passes, lanes, None).expect("constants within the rules");
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let made: Result<PasswordHash, _> = argon2.hash_password(password.as_bytes());
    let made = made.map_err(|_| AuthConfigError::NoRandomness)?;
    Ok(made.to_string())
}

#[cfg(test)]
mod tests {
    use super::{Argon2Hash, hash_password};
    use crate::auth::AuthConfigError;

    const TAIL: &str = "c2FsdHNhbHRzYWx0c2FsdA$YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXoxMjM0NTY";

    fn fault(start: &str) -> Option<AuthConfigError> {
        Argon2Hash::parse("u", &format!("{start}${TAIL}")).err()
    }

    #[test]
    fn a_hash_made_here_admits_its_password_only() {
        let text = hash_password(&"correct horse".into()).expect("a hash");
        assert!(
            text.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
            "{text}"
        );
        let hash = Argon2Hash::parse("u", &text).expect("it keeps the rules");
        assert!(hash.admits(b"correct horse"));
        assert!(!hash.admits(b"correct horse "));
        assert!(!hash.admits(b""));
        assert!(hash_password(&"".into()).is_err());
    }

    #[test]
    fn hashes_that_are_too_weak_or_too_costly_are_refused() {
        let weak = Some(AuthConfigError::WeakHash("u".to_owned()));
        let costly = Some(AuthConfigError::CostlyHash("u".to_owned()));
        let unreadable = Some(AuthConfigError::Hash("u".to_owned()));
        let cases = [
            ("$argon2id$v=19$m=19456,t=2,p=1", &None),
            ("$argon2id$v=19$m=7168,t=5,p=1", &None),
            ("$argon2id$v=19$m=47104,t=1,p=4", &None),
            ("$argon2id$v=19$m=7168,t=4,p=1", &weak),
            ("$argon2id$v=19$m=4096,t=16,p=1", &weak),
            ("$argon2id$v=19$m=262145,t=1,p=1", &costly),
            ("$argon2id$v=19$m=19456,t=17,p=1", &costly),
            ("$argon2id$v=19$m=19456,t=2,p=17", &costly),
            ("$argon2id$m=19456,t=2,p=1", &unreadable),
            ("$argon2id$v=16$m=19456,t=2,p=1", &unreadable),
            ("$argon2i$v=19$m=19456,t=2,p=1", &unreadable),
            ("$argon2d$v=19$m=19456,t=2,p=1", &unreadable),
            ("$argon2id$v=19$m=19456,t=2,p=0", &unreadable),
            ("$scrypt$ln=17,r=8,p=1", &unreadable),
            ("secret", &unreadable),
        ];
        for (start, expected) in cases {
            assert_eq!(&fault(start), expected, "{start}");
        }
        let short = "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0c2FsdA$YWJjZGVmZ2hpamts";
        assert_eq!(Argon2Hash::parse("u", short).err(), weak);
        let bare = "$argon2id$v=19$m=19456,t=2,p=1";
        assert_eq!(Argon2Hash::parse("u", bare).err(), unreadable);
    }

    #[test]
    fn an_error_never_contains_the_hash() {
        for start in ["$argon2id$v=19$m=7168,t=4,p=1", "$2b$10$canary"] {
            let message = fault(start).expect("a fault").to_string();
            assert!(
                !message.contains("canary") && !message.contains("c2Fsd"),
                "{message}"
            );
        }
    }
}
