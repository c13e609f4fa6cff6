//! Who may come in: answers a [`Caller`], or why not.
//!
//! [`Auth`] is a handle. What stands behind it is replaced while requests come, so that a changed list
//! of users needs no restart. Passwords are in `auth/users.rs`. What a refusal looks like on the wire is
//! decided in `http/error.rs`; how many requests somebody may send is not decided here.

mod fault;
mod guesses;
mod hash;
mod header;
mod rejection;
mod remembered;
mod users;
mod verifier;

pub use fault::AuthFault;
pub use hash::hash_password;
pub use users::Users;

pub(crate) use rejection::Rejection;

use header::Given;
use hyper::header::HeaderMap;
use rejection::Ways;
use secrecy::SecretString;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// Who sent a request, as far as it was proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The user, the claim of the token, or the name given to a certificate.
    pub name: Arc<str>,
    /// How it was proved.
    pub via: Via,
}

impl Caller {
    pub(crate) fn new(name: &str, via: Via) -> Self {
        Self {
            name: name.into(),
            via,
        }
    }

    /// Whoever comes to a broker that asks for nothing.
    pub(crate) fn anonymous() -> Self {
        Self::new("anonymous", Via::Open)
    }
}

/// How a caller proved who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Via {
    /// Not at all: nothing is asked for.
    Open,
    /// A user name and a password.
    Basic,
    /// A token of a trusted issuer.
    Bearer,
    /// A client certificate.
    Certificate,
}

impl Via {
    /// One word, for logs and metrics.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Basic => "basic",
            Self::Bearer => "bearer",
            Self::Certificate => "certificate",
        }
    }
}

/// What a request must prove. Clones share what they ask for: replace it in one, and all ask for the
/// new.
#[derive(Clone)]
pub struct Auth(Arc<RwLock<Arc<Checks>>>);

/// What is asked for at one time.
struct Checks {
    /// Set if nothing is asked for.
    open: Option<Caller>,
    users: Option<Users>,
}

impl Auth {
    fn of(checks: Checks) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(checks))))
    }

    /// Lets everybody in. For tests, and behind something that authenticates.
    #[must_use]
    pub fn open() -> Self {
        Self::of(Checks {
            open: Some(Caller::anonymous()),
            users: None,
        })
    }

    /// Lets users in by name and password.
    #[must_use]
    pub fn users(users: Users) -> Self {
        Self::of(Checks {
            open: None,
            users: Some(users),
        })
    }

    /// Lets one user in.
    ///
    /// # Errors
    /// The name or the password cannot be used.
    pub fn basic(user: &str, password: &SecretString) -> Result<Self, AuthFault> {
        Ok(Self::users(Users::new().with_password(user, password)?))
    }

    /// Asks for something else from now on, here and in all clones. Requests under way end as they
    /// began.
    pub fn replace(&self, with: &Self) {
        let next = with.checks();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = next;
    }

    /// Whether nothing is asked for.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.checks().open.is_some()
    }

    fn checks(&self) -> Arc<Checks> {
        let checks = self.0.read().unwrap_or_else(PoisonError::into_inner);
        checks.clone()
    }

    /// B-010: who sends these headers.
    pub(crate) async fn admit(&self, headers: &HeaderMap) -> Result<Caller, Rejection> {
        self.checks().admit(headers).await
    }
}

impl Checks {
    async fn admit(&self, headers: &HeaderMap) -> Result<Caller, Rejection> {
        if let Some(caller) = &self.open {
            return Ok(caller.clone());
        }
        match (header::given(headers), &self.users) {
            (Given::Basic(pair), Some(users)) => users.admit(pair, self.ways()).await,
            (Given::Basic(_) | Given::Nothing | Given::Unreadable, _) => {
                Err(Rejection::unproven(self.ways()))
            }
        }
    }

    fn ways(&self) -> Ways {
        Ways {
            basic: self.users.is_some(),
        }
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let checks = self.checks();
        f.debug_struct("Auth")
            .field("open", &checks.open.is_some())
            .field("users", &checks.users)
            .finish_non_exhaustive()
    }
}
