//! Authentication: turns the credentials of a request into a [`Caller`], or a [`Rejection`].
//!
//! [`Auth`] is a handle whose settings are replaced while requests arrive, so that a changed list of users needs no
//! restart. Passwords are in `auth/users.rs`, tokens in `auth/tokens.rs`, client certificates in
//! `auth/certificate.rs`. Responses to rejections are in `error_response.rs`; limits of callers are in `server/`.

mod certificate;
mod config_error;
mod hash;
mod header;
mod password_cache;
mod password_verifier;
mod rejection;
mod throttle;
mod tokens;
mod users;

pub use certificate::Certificates;
pub use config_error::AuthConfigError;
pub use hash::hash_password;
pub use tokens::{Issuer, KeySet};
pub use users::Users;

pub use rejection::{Challenges, Rejection, TokenError};

pub(crate) use rejection::scope_challenge;

use crate::metrics::{self, AuthFailure};
use crate::server::PeerCertificate;
use header::PresentedCredentials;
use hyper::header::HeaderMap;
use hyper::http::Extensions;
use secrecy::SecretString;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use tokens::TokenIssuers;

/// The authenticated sender of a request.
#[derive(Clone, PartialEq, Eq)]
pub struct Caller {
    /// User name, name claim of the token, or the name assigned to a certificate.
    pub name: Arc<str>,
    /// How the caller authenticated.
    pub via: AuthMethod,
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
    pub fn new(name: &str, via: AuthMethod) -> Self {
        Self::named(name.into(), via)
    }

    fn named(name: Arc<str>, via: AuthMethod) -> Self {
        Self {
            name,
            via,
            uid: None,
            groups: Arc::default(),
            claims: Arc::default(),
        }
    }

    /// Caller of a server that requires no credentials.
    #[must_use]
    pub fn anonymous() -> Self {
        Self::new("anonymous", AuthMethod::Open)
    }
}

impl fmt::Debug for Caller {
    /// Omits the claims: logs must not contain them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("name", &self.name)
            .field("via", &self.via)
            .field("uid", &self.uid)
            .field("groups", &self.groups)
            .finish_non_exhaustive()
    }
}

/// How a caller authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AuthMethod {
    /// Not at all: no credentials are required.
    Open,
    /// A user name and a password.
    Basic,
    /// A token of a trusted issuer.
    Bearer,
    /// A client certificate.
    Certificate,
}

impl AuthMethod {
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

/// Accepted ways to authenticate; any one of them is enough.
#[derive(Debug, Default)]
pub struct AuthMethods {
    /// Users with passwords.
    pub users: Users,
    /// Trusted issuers of tokens.
    pub issuers: Vec<Issuer>,
    /// Accepted names in client certificates.
    pub certificates: Certificates,
}

/// The credentials that requests must present. Clones share their settings: replacing them in one changes all.
#[derive(Clone)]
pub struct Auth(Arc<RwLock<Arc<AuthChecks>>>);

/// Settings at one time.
#[derive(Default)]
struct AuthChecks {
    /// Set if no credentials are required.
    open: Option<Caller>,
    users: Option<Users>,
    tokens: Option<TokenIssuers>,
    certificates: Option<Certificates>,
}

impl Auth {
    fn of(checks: AuthChecks) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(checks))))
    }

    /// Accepts every request. For tests, and behind a proxy that authenticates.
    #[must_use]
    pub fn open() -> Self {
        Self::of(AuthChecks {
            open: Some(Caller::anonymous()),
            ..AuthChecks::default()
        })
    }

    /// Accepts callers that authenticate in one of several ways.
    ///
    /// # Errors
    /// One of them cannot be used, or no caller could authenticate.
    pub fn any_of(proofs: AuthMethods) -> Result<Self, AuthConfigError> {
        let AuthMethods {
            users,
            issuers,
            certificates,
        } = proofs;
        let checks = AuthChecks {
            open: None,
            users: (!users.is_empty()).then_some(users),
            tokens: TokenIssuers::of(issuers)?,
            certificates: (!certificates.is_empty()).then_some(certificates),
        };
        let challenges = checks.challenges();
        if !(challenges.basic || challenges.bearer || challenges.certificate) {
            return Err(AuthConfigError::Nobody);
        }
        Ok(Self::of(checks))
    }

    /// Accepts users by name and password.
    ///
    /// # Errors
    /// The list of users is empty.
    pub fn users(users: Users) -> Result<Self, AuthConfigError> {
        Self::any_of(AuthMethods {
            users,
            ..AuthMethods::default()
        })
    }

    /// Accepts one user.
    ///
    /// # Errors
    /// The name or the password cannot be used.
    pub fn basic(user: &str, password: &SecretString) -> Result<Self, AuthConfigError> {
        Self::users(Users::new().with_password(user, password)?)
    }

    /// Replaces the settings, here and in all clones. Requests in progress are not affected. Checked passwords are
    /// forgotten; keys of the same token issuers are kept, so that a reload while an issuer is down locks out no
    /// caller.
    pub fn replace(&self, with: &Self) {
        let next = with.checks();
        if let (Some(tokens), Some(before)) = (&next.tokens, &self.checks().tokens) {
            tokens.take_over(before);
        }
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = next;
    }

    /// Whether no credentials are required.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.checks().open.is_some()
    }

    fn checks(&self) -> Arc<AuthChecks> {
        let checks = self.0.read().unwrap_or_else(PoisonError::into_inner);
        checks.clone()
    }

    /// Fetches the keys of token issuers before the first request. Needs a runtime.
    pub fn prefetch_keys(&self) {
        if let Some(tokens) = &self.checks().tokens {
            tokens.prefetch_keys();
        }
    }

    /// Authenticates a request by its headers and the extensions of its connection.
    ///
    /// # Errors
    /// The request is not authenticated; see [`Rejection`].
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

impl AuthChecks {
    /// Credentials in a header are decisive; without any, the client certificate is.
    async fn admit(
        &self,
        headers: &HeaderMap,
        extensions: &Extensions,
    ) -> Result<Caller, Rejection> {
        if let Some(caller) = &self.open {
            return Ok(caller.clone());
        }
        let challenges = self.challenges();
        match (header::presented(headers), &self.users, &self.tokens) {
            (PresentedCredentials::Basic(pair), Some(users), _) => {
                users.admit(pair, challenges).await
            }
            (PresentedCredentials::Bearer(token), _, Some(tokens)) => {
                Box::pin(tokens.admit(token, challenges)).await
            }
            (PresentedCredentials::Nothing, _, _) => {
                let certificate = extensions.get::<PeerCertificate>();
                let listed = self.certificates.as_ref().zip(certificate);
                let caller = listed.and_then(|(list, certificate)| list.admit(certificate));
                caller.ok_or_else(|| Rejection::unproven(challenges))
            }
            (
                PresentedCredentials::Basic(_)
                | PresentedCredentials::Bearer(_)
                | PresentedCredentials::Unreadable,
                _,
                _,
            ) => Err(Rejection::unproven(challenges)),
        }
    }

    fn challenges(&self) -> Challenges {
        Challenges {
            basic: self.users.is_some(),
            bearer: self.tokens.is_some(),
            certificate: self.certificates.is_some(),
        }
    }
}

/// The metric label of a rejection.
fn failure(rejection: &Rejection, headers: &HeaderMap, extensions: &Extensions) -> AuthFailure {
    match rejection {
        Rejection::LacksScope(_) => AuthFailure::Scope,
        Rejection::TooManyGuesses { .. } => AuthFailure::Throttled,
        Rejection::Busy | Rejection::IssuerUnavailable => AuthFailure::Unavailable,
        Rejection::Unproven(..) => match header::presented(headers) {
            PresentedCredentials::Basic(_) => AuthFailure::Credentials,
            PresentedCredentials::Bearer(_) => AuthFailure::Token,
            PresentedCredentials::Unreadable => AuthFailure::Malformed,
            PresentedCredentials::Nothing if extensions.get::<PeerCertificate>().is_some() => {
                AuthFailure::Certificate
            }
            PresentedCredentials::Nothing => AuthFailure::Missing,
        },
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let checks = self.checks();
        f.debug_struct("Auth")
            .field("open", &checks.open.is_some())
            .field("users", &checks.users)
            .field(
                "issuers",
                &checks.tokens.as_ref().map(TokenIssuers::issuers),
            )
            .field("certificates", &checks.certificates)
            .finish()
    }
}
