//! Who may come in: answers a [`Caller`], or why not.
//!
//! [`Auth`] is a handle. What stands behind it is replaced while requests come, so that a changed list
//! of users needs no restart. Passwords are in `auth/users.rs`, tokens in `auth/tokens.rs`, client
//! certificates in `auth/certificate.rs`. What a refusal looks like on the wire is decided in
//! `http/error.rs`; how many requests somebody may send is not decided here.

mod certificate;
mod fault;
mod guesses;
mod hash;
mod header;
mod rejection;
mod remembered;
mod tokens;
mod users;
mod verifier;

pub use certificate::Certificates;
pub use fault::AuthFault;
pub use hash::hash_password;
pub use tokens::{Issuer, KeySet};
pub use users::Users;

pub use rejection::{Rejection, TokenFault, Ways};

pub(crate) use rejection::scope_challenge;

use crate::metrics::{self, AuthFailure};
use crate::server::PeerCertificate;
use header::Given;
use hyper::header::HeaderMap;
use hyper::http::Extensions;
use secrecy::SecretString;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use tokens::Tokens;

/// The authenticated sender of a request.
#[derive(Clone, PartialEq, Eq)]
pub struct Caller {
    /// The user, the claim of the token, or the name given to a certificate.
    pub name: Arc<str>,
    /// How the caller authenticated.
    pub via: Via,
    /// Id of the caller at its issuer: the token's `sub`. `None` without a token.
    pub uid: Option<Arc<str>>,
    /// Groups of the caller: the token's `groups`. Empty without a token.
    pub groups: Arc<[String]>,
    /// All claims of the token. Empty without a token.
    pub claims: Arc<Map<String, Value>>,
}

impl Caller {
    /// A caller without groups and claims.
    #[must_use]
    pub fn new(name: &str, via: Via) -> Self {
        Self::named(name.into(), via)
    }

    fn named(name: Arc<str>, via: Via) -> Self {
        Self {
            name,
            via,
            uid: None,
            groups: Arc::default(),
            claims: Arc::default(),
        }
    }

    /// Whoever comes to a broker that asks for nothing.
    #[must_use]
    pub fn anonymous() -> Self {
        Self::new("anonymous", Via::Open)
    }
}

impl fmt::Debug for Caller {
    /// Without the claims: a log must not hold them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("name", &self.name)
            .field("via", &self.via)
            .field("uid", &self.uid)
            .field("groups", &self.groups)
            .finish_non_exhaustive()
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

/// Ways to come in; any one of them will do.
#[derive(Debug, Default)]
pub struct Proofs {
    /// By name and password.
    pub users: Users,
    /// By a token of one of these.
    pub issuers: Vec<Issuer>,
    /// By a client certificate with one of these names.
    pub certificates: Certificates,
}

/// What a request must prove. Clones share what they ask for: replace it in one, and all ask for the
/// new.
#[derive(Clone)]
pub struct Auth(Arc<RwLock<Arc<Checks>>>);

/// What is asked for at one time.
#[derive(Default)]
struct Checks {
    /// Set if nothing is asked for.
    open: Option<Caller>,
    users: Option<Users>,
    tokens: Option<Tokens>,
    certificates: Option<Certificates>,
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
            ..Checks::default()
        })
    }

    /// Lets in whoever proves itself in one of several ways.
    ///
    /// # Errors
    /// One of them cannot be used, or nobody could come in.
    pub fn any_of(proofs: Proofs) -> Result<Self, AuthFault> {
        let Proofs {
            users,
            issuers,
            certificates,
        } = proofs;
        let checks = Checks {
            open: None,
            users: (!users.is_empty()).then_some(users),
            tokens: Tokens::of(issuers)?,
            certificates: (!certificates.is_empty()).then_some(certificates),
        };
        let ways = checks.ways();
        if !(ways.basic || ways.bearer || ways.certificate) {
            return Err(AuthFault::Nobody);
        }
        Ok(Self::of(checks))
    }

    /// Lets users in by name and password.
    ///
    /// # Errors
    /// There are none.
    pub fn users(users: Users) -> Result<Self, AuthFault> {
        Self::any_of(Proofs {
            users,
            ..Proofs::default()
        })
    }

    /// Lets one user in.
    ///
    /// # Errors
    /// The name or the password cannot be used.
    pub fn basic(user: &str, password: &SecretString) -> Result<Self, AuthFault> {
        Self::users(Users::new().with_password(user, password)?)
    }

    /// Asks for something else from now on, here and in all clones. Requests under way end as they
    /// began. Passwords that were checked are forgotten; keys of the same token issuers are not, so
    /// that a reload locks nobody out while an issuer is down.
    pub fn replace(&self, with: &Self) {
        let next = with.checks();
        if let (Some(tokens), Some(before)) = (&next.tokens, &self.checks().tokens) {
            tokens.take_over(before);
        }
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

    /// Fetches the keys of token issuers before anybody asks. Needs a runtime.
    pub fn warm(&self) {
        if let Some(tokens) = &self.checks().tokens {
            tokens.warm();
        }
    }

    /// B-010: who sends a request with these headers, over a connection of these extensions.
    ///
    /// # Errors
    /// Nobody is proved; see [`Rejection`].
    pub async fn admit(
        &self,
        headers: &HeaderMap,
        extensions: &Extensions,
    ) -> Result<Caller, Rejection> {
        let admitted = self.checks().admit(headers, extensions).await;
        if let Err(rejection) = &admitted {
            metrics::auth_failed(failure(rejection, headers, extensions));
        }
        admitted
    }
}

impl Checks {
    /// What is said in a header counts, and only that; without one, the certificate does.
    async fn admit(
        &self,
        headers: &HeaderMap,
        extensions: &Extensions,
    ) -> Result<Caller, Rejection> {
        if let Some(caller) = &self.open {
            return Ok(caller.clone());
        }
        let ways = self.ways();
        match (header::given(headers), &self.users, &self.tokens) {
            (Given::Basic(pair), Some(users), _) => users.admit(pair, ways).await,
            (Given::Bearer(token), _, Some(tokens)) => Box::pin(tokens.admit(token, ways)).await,
            (Given::Nothing, _, _) => {
                let certificate = extensions.get::<PeerCertificate>();
                let listed = self.certificates.as_ref().zip(certificate);
                let caller = listed.and_then(|(list, certificate)| list.admit(certificate));
                caller.ok_or_else(|| Rejection::unproven(ways))
            }
            (Given::Basic(_) | Given::Bearer(_) | Given::Unreadable, _, _) => {
                Err(Rejection::unproven(ways))
            }
        }
    }

    fn ways(&self) -> Ways {
        Ways {
            basic: self.users.is_some(),
            bearer: self.tokens.is_some(),
            certificate: self.certificates.is_some(),
        }
    }
}

/// How a rejection is counted.
fn failure(rejection: &Rejection, headers: &HeaderMap, extensions: &Extensions) -> AuthFailure {
    match rejection {
        Rejection::LacksScope(_) => AuthFailure::Scope,
        Rejection::TooManyGuesses { .. } => AuthFailure::Throttled,
        Rejection::Busy | Rejection::IssuerUnavailable => AuthFailure::Unavailable,
        Rejection::Unproven(..) => match header::given(headers) {
            Given::Basic(_) => AuthFailure::Credentials,
            Given::Bearer(_) => AuthFailure::Token,
            Given::Unreadable => AuthFailure::Malformed,
            Given::Nothing if extensions.get::<PeerCertificate>().is_some() => {
                AuthFailure::Certificate
            }
            Given::Nothing => AuthFailure::Missing,
        },
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let checks = self.checks();
        f.debug_struct("Auth")
            .field("open", &checks.open.is_some())
            .field("users", &checks.users)
            .field("issuers", &checks.tokens.as_ref().map(Tokens::issuers))
            .field("certificates", &checks.certificates)
            .finish()
    }
}
