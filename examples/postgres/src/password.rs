//! Generates passwords, and the verifiers that the server gets instead of them.
//!
//! The server never sees a password: a statement may end up in its log or in its statistics. It
//! gets a SCRAM-SHA-256 verifier (RFC 5802 and 7677), which PostgreSQL stores as it is; `\password` of
//! psql does the same.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hkdf::hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// Number of rounds, as in PostgreSQL.
const ROUNDS: u32 = 4096;

/// A salt, as long as PostgreSQL's own.
pub(crate) type Salt = [u8; 16];

/// A new password: 244 random bits in letters that need no escaping in a URI.
pub(crate) fn generate() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

/// A new salt.
pub(crate) fn salt() -> Salt {
    Uuid::new_v4().into_bytes()
}

/// The verifier of a password: the server checks logins with it, but it cannot be used to log in.
pub(crate) fn verifier(password: &SecretString, salt: Salt) -> String {
    let salted = salted(password.expose_secret().as_bytes(), salt);
    let stored = Sha256::digest(mac(&salted, &[b"Client Key"]));
    let server = mac(&salted, &[b"Server Key"]);
    let [salt, stored, server] =
        [&salt[..], &stored[..], &server[..]].map(|it| STANDARD.encode(it));
    format!("SCRAM-SHA-256${ROUNDS}:{salt}${stored}:{server}")
}

/// `Hi` of RFC 5802.
fn salted(password: &[u8], salt: Salt) -> [u8; 32] {
    let mut last = mac(password, &[&salt, &1u32.to_be_bytes()]);
    let mut sum = last;
    for _ in 1..ROUNDS {
        last = mac(password, &[&last]);
        for (sum, last) in sum.iter_mut().zip(last) {
            *sum ^= last;
        }
    }
    sum
}

fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::{generate, verifier};
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    #[test]
    fn the_verifier_is_the_one_that_the_server_would_make() {
        // Output of PostgreSQL 15 for `CREATE ROLE … PASSWORD 'pencil'`.
        let of_the_server = "SCRAM-SHA-256$4096:TwYPca0L8DmVytRRFLlSrQ==\
            $LVNYEr877mUX0aFqw3gfPVvx16DP7yYcIiL2mfQqeVQ=:ZFC4HcaqhX6op4hiSi7cDzSPr1wx6dAse4GdJdg5KQI=";
        let salt = STANDARD.decode("TwYPca0L8DmVytRRFLlSrQ==").expect("a salt");
        let salt = salt.try_into().expect("sixteen bytes");
        assert_eq!(verifier(&"pencil".into(), salt), of_the_server);
    }

    #[test]
    fn passwords_are_long_plain_and_never_the_same() {
        let (one, other) = (generate(), generate());
        assert_ne!(one, other);
        assert_eq!(one.len(), 64);
        assert!(one.bytes().all(|it| it.is_ascii_hexdigit()));
    }
}
