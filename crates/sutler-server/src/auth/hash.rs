//! Argon2id hashes of passwords: read, made, and held to what is strong and what is affordable.

use super::fault::AuthFault;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, Version};
use secrecy::{ExposeSecret, SecretString};

/// Least memory, in KiB.
const MEMORY_KIB_MIN: u32 = 7 * 1024;
/// Least memory × passes: what common advice comes to, whichever way it is split.
const WORK_KIB_MIN: u64 = 35 * 1024;
/// Most memory, in KiB: it is taken for each check that runs.
const MEMORY_KIB_MAX: u32 = 256 * 1024;
const PASSES_MAX: u32 = 16;
const LANES_MAX: u32 = 16;
/// A shorter hash is guessed.
const OUTPUT_BYTES_MIN: usize = 16;
const SALT_BYTES_MIN: usize = 8;
/// Longest text that is read as a hash.
const TEXT_BYTES_MAX: usize = 512;
/// What `hash_password` uses: memory in KiB, passes, lanes.
const MADE_WITH: (u32, u32, u32) = (19 * 1024, 2, 1);

/// A hash that keeps the rules.
#[derive(Clone)]
pub(super) struct Hash(PasswordHash);

impl Hash {
    /// Reads a hash in PHC format. `user` is for the sentence.
    pub(super) fn parse(user: &str, text: &str) -> Result<Self, AuthFault> {
        let unreadable = || AuthFault::Hash(user.to_owned());
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
            return Err(AuthFault::WeakHash(user.to_owned()));
        }
        if params.m_cost() > MEMORY_KIB_MAX
            || params.t_cost() > PASSES_MAX
            || params.p_cost() > LANES_MAX
        {
            return Err(AuthFault::CostlyHash(user.to_owned()));
        }
        Ok(Self(hash))
    }

    /// Whether a password is the one. Slow on purpose: never on a thread that serves requests.
    pub(super) fn admits(&self, password: &[u8]) -> bool {
        Argon2::default().verify_password(password, &self.0).is_ok()
    }
}

/// The Argon2id hash of a password, in the format that configuration files take. Takes some
/// milliseconds, on purpose.
///
/// # Errors
/// The password cannot be used, or the system gives no random bytes.
pub fn hash_password(password: &SecretString) -> Result<String, AuthFault> {
    let password = password.expose_secret();
    if password.is_empty() || password.len() > super::users::PASSWORD_BYTES_MAX {
        return Err(AuthFault::Password("this user".to_owned()));
    }
    let (memory, passes, lanes) = MADE_WITH;
    let params = Params::new(memory, passes, lanes, None).expect("constants within the rules");
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let made: Result<PasswordHash, _> = argon2.hash_password(password.as_bytes());
    let made = made.map_err(|_| AuthFault::NoRandomness)?;
    Ok(made.to_string())
}

#[cfg(test)]
mod tests {
    use super::{Hash, hash_password};
    use crate::auth::AuthFault;

    const TAIL: &str = "c2FsdHNhbHRzYWx0c2FsdA$YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXoxMjM0NTY";

    fn fault(start: &str) -> Option<AuthFault> {
        Hash::parse("u", &format!("{start}${TAIL}")).err()
    }

    #[test]
    fn a_hash_made_here_admits_its_password_only() {
        let text = hash_password(&"correct horse".into()).expect("a hash");
        assert!(
            text.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
            "{text}"
        );
        let hash = Hash::parse("u", &text).expect("it keeps the rules");
        assert!(hash.admits(b"correct horse"));
        assert!(!hash.admits(b"correct horse "));
        assert!(!hash.admits(b""));
        assert!(hash_password(&"".into()).is_err());
    }

    #[test]
    fn only_strong_and_affordable_hashes_are_taken() {
        let weak = Some(AuthFault::WeakHash("u".to_owned()));
        let costly = Some(AuthFault::CostlyHash("u".to_owned()));
        let unreadable = Some(AuthFault::Hash("u".to_owned()));
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
        assert_eq!(Hash::parse("u", short).err(), weak);
        let bare = "$argon2id$v=19$m=19456,t=2,p=1";
        assert_eq!(Hash::parse("u", bare).err(), unreadable);
    }

    #[test]
    fn a_fault_never_repeats_the_hash() {
        for start in ["$argon2id$v=19$m=7168,t=4,p=1", "$2b$10$canary"] {
            let said = fault(start).expect("a fault").to_string();
            assert!(
                !said.contains("canary") && !said.contains("c2Fsd"),
                "{said}"
            );
        }
    }
}
