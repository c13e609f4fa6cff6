//! Why authentication cannot be set up as asked. No password and no hash is ever repeated.

/// What is wrong with the settings of authentication, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthFault {
    /// The name of a user.
    #[error(
        "the user name {0:?} cannot be used: write 1 to 128 characters without a colon or control characters"
    )]
    UserName(String),
    /// Two users of one name.
    #[error("there are two users named {0:?}: remove one of them, or rename it")]
    DuplicateUser(String),
    /// A password that proves nothing.
    #[error("the password of {0:?} must have 1 to 1024 bytes: choose another one")]
    Password(String),
    /// A hash that cannot be read.
    #[error(
        "the password hash of {0:?} is not an Argon2id hash in PHC format ($argon2id$v=19$m=…,t=…,p=…$…$…): make one with `sutler hash-password`"
    )]
    Hash(String),
    /// A hash that is guessed too easily.
    #[error(
        "the password hash of {0:?} is too weak: memory × passes must be at least 35840 KiB with at least 7168 KiB of memory; make one with `sutler hash-password`"
    )]
    WeakHash(String),
    /// A hash that would take the machine down.
    #[error(
        "the password hash of {0:?} is too costly to check: at most 262144 KiB of memory, 16 passes and 16 lanes; make one with `sutler hash-password`"
    )]
    CostlyHash(String),
    /// Nobody could come in.
    #[error("no user is listed: add one, or ask explicitly to serve without authentication")]
    NoUsers,
    /// The system gives no random bytes.
    #[error("the system gives no random bytes: make sure that /dev/urandom can be read")]
    NoRandomness,
}
