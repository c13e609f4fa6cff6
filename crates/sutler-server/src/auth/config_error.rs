//! Errors in the settings of authentication. They never contain a password or a hash.

/// Error in the settings of authentication, with advice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthConfigError {
    /// Invalid user name.
    #[error(
        "the user name {0:?} cannot be used: write 1 to 128 characters without a colon or control characters"
    )]
    UserName(String),
    /// Two users have the same name.
    #[error("there are two users named {0:?}: remove one of them, or rename it")]
    DuplicateUser(String),
    /// Invalid password.
    #[error("the password of {0:?} must have 1 to 1024 bytes: choose another one")]
    Password(String),
    /// The hash cannot be parsed.
    #[error(
        "the password hash of {0:?} is not an Argon2id hash in PHC format ($argon2id$v=19$m=…,t=…,p=…$…$…): make one with `sutler hash-password`"
    )]
    Hash(String),
    /// The hash is too weak.
    #[error(
        "the password hash of {0:?} is too weak: memory × passes must be at least 35840 KiB with at least 7168 KiB of memory; make one with `sutler hash-password`"
    )]
    WeakHash(String),
    /// Checking the hash costs too much.
    #[error(
        "the password hash of {0:?} is too costly to check: at most 262144 KiB of memory, 16 passes and 16 lanes; make one with `sutler hash-password`"
    )]
    CostlyHash(String),
    /// No caller could authenticate.
    #[error(
        "nobody could come in: name a user, a token issuer or a certificate, or ask explicitly to serve without authentication"
    )]
    Nobody,
    /// Two issuers have the same name.
    #[error("there are two token issuers {0:?}: join them into one, or remove one")]
    DuplicateIssuer(String),
    /// The issuer has no name or no audience.
    #[error(
        "the token issuer {0:?} needs its exact name (the tokens' iss) and an audience (their aud) that is not empty"
    )]
    Audience(String),
    /// Invalid scope.
    #[error(
        "the scope {0:?} cannot be used: write one word without quotes, backslashes or spaces, and list several one by one"
    )]
    Scope(String),
    /// Unsupported algorithm.
    #[error(
        "tokens signed with {0:?} are not taken: choose among RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 and EdDSA"
    )]
    Algorithm(String),
    /// Keys must not be fetched from this URL.
    #[error(
        "the keys of the token issuer {0:?} must come from an https URL without user and password; http is for this machine only, unless it is allowed explicitly"
    )]
    KeysUrl(String),
    /// The certificate authorities cannot be parsed.
    #[error(
        "the certificate authorities of a token issuer cannot be read: give certificates in PEM format"
    )]
    Authorities,
    /// The key set cannot be parsed.
    #[error(
        "this is not a JSON Web Key Set of at most 100 keys and 262144 bytes: give a document with a list named keys"
    )]
    KeySet,
    /// Invalid name of a certificate.
    #[error(
        "the certificate name {0:?} cannot be used: write it once, without a wildcard, and name its caller"
    )]
    CertificateName(String),
    /// The system has no random bytes.
    #[error("the system gives no random bytes: make sure that /dev/urandom can be read")]
    NoRandomness,
}
