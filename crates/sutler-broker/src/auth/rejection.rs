//! Why a request is not let in, by what its sender can do about it.
//!
//! Never which part was wrong: whoever guesses learns nothing. Statuses are chosen in `http/error.rs`.

use std::time::Duration;

/// What may be tried, as a refusal says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ways {
    pub basic: bool,
}

impl Ways {
    /// The `WWW-Authenticate` headers, one for each way.
    pub(crate) fn challenges(self) -> Vec<&'static str> {
        let mut challenges = Vec::new();
        if self.basic {
            challenges.push("Basic realm=\"service broker\", charset=\"UTF-8\"");
        }
        challenges
    }

    /// The sentence for whoever must try again.
    pub(crate) fn sentence(self) -> String {
        "Authenticate with the user name and password agreed for this service broker.".to_owned()
    }
}

/// Why somebody is not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rejection {
    /// Nothing, or nothing right, was brought.
    Unproven(Ways),
    /// Too many wrong passwords for this user: wait.
    TooManyGuesses { again: Duration },
    /// Too many passwords wait to be checked.
    Busy,
}

impl Rejection {
    pub(crate) fn unproven(ways: Ways) -> Self {
        Self::Unproven(ways)
    }
}
