//! Authentication block: users with passwords, bearer tokens, and their conversion by [`AccessConfig`].
//!
//! Credentials are verified by the server (`sutler_server::Auth`). Which path has which access is up to the
//! root of the configuration.

use crate::config::findings::CheckFindings;
use crate::config::secret::{EnvLookup, SecretSource};
use crate::config::value_types::{DurationText, FilePath, HttpUrl};
use schemars::JsonSchema;
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use sutler_server::{Auth, AuthMethods, Issuer, Users};

/// Reason why a block cannot be converted; the text suggests a fix.
pub type ResolveError = Box<dyn std::error::Error + Send + Sync>;

/// Whether requests must prove who they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuthMode {
    /// By `users` or `bearer`; without either the broker does not start.
    #[default]
    Required,
    /// Everybody is served. For tests, and behind something that authenticates.
    None,
}

/// A name and a password. One of `password` and `password_hash` is needed.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "User")]
pub struct UserConfig {
    /// The name, unique in its list, without a colon.
    pub name: String,
    /// The password.
    #[serde(default)]
    pub password: Option<SecretSource>,
    /// The password's Argon2id hash, as `sutler hash-password` prints it.
    #[serde(default)]
    pub password_hash: Option<SecretSource>,
}

/// Tokens (JWT) of an OpenID provider, such as UAA, Keycloak or Kubernetes.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Bearer")]
pub struct BearerConfig {
    /// What `iss` of a token must be.
    pub issuer: String,
    /// Where the provider's keys are.
    pub jwks_url: HttpUrl,
    /// What `aud` of a token must contain one of.
    pub audience: Vec<String>,
    /// What `scope` of a token must contain all of.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// How far the clocks of provider and broker may differ.
    #[serde(default = "default_skew")]
    pub skew: DurationText,
    /// Certificates, in PEM, that the provider's TLS must descend from; otherwise those of the system.
    #[serde(default)]
    pub ca: Option<FilePath>,
}

fn default_skew() -> DurationText {
    DurationText::seconds(60)
}

/// The access to one path: a view of the keys `auth`, `users` and `bearer` of a section.
#[derive(Clone, Copy, Debug)]
pub struct AccessConfig<'a> {
    /// Whether authentication is required.
    pub auth: AuthMode,
    /// Users with a name and a password.
    pub users: &'a [UserConfig],
    /// The issuer of bearer tokens.
    pub bearer: Option<&'a BearerConfig>,
}

impl AccessConfig<'_> {
    /// Whether authentication is required and no credential is configured.
    pub fn admits_nobody(&self) -> bool {
        self.auth == AuthMode::Required && self.users.is_empty() && self.bearer.is_none()
    }

    /// Checks users and bearer tokens; `before` is the path of the section with its dot, or empty.
    pub(in crate::config) fn check(&self, before: &str, findings: &mut CheckFindings) {
        check_users(self.users, before, findings);
        if let Some(bearer) = self.bearer {
            check_bearer(bearer, &format!("{before}bearer"), findings);
        }
    }

    /// Reads every secret, and adds a fault for each one that is missing or cannot be used.
    pub(in crate::config) fn check_secrets(
        &self,
        before: &str,
        variable: &EnvLookup<'_>,
        findings: &mut CheckFindings,
    ) {
        for (nth, user) in self.users.iter().enumerate() {
            user.check_secrets(&format!("{before}users[{nth}]"), variable, findings);
        }
    }

    /// The path of the first password that is written into the configuration itself.
    pub(in crate::config) fn plain_secret(&self, before: &str) -> Option<String> {
        let is_plain = |user: &UserConfig| matches!(user.password, Some(SecretSource::Plain(_)));
        let nth = self.users.iter().position(is_plain)?;
        Some(format!("{before}users[{nth}].password"))
    }

    /// The files that must be readable, with their paths.
    pub(in crate::config) fn files(&self, before: &str) -> Option<(String, &FilePath)> {
        let ca = self.bearer?.ca.as_ref()?;
        Some((format!("{before}bearer.ca"), ca))
    }

    /// Converts the block into the authentication of the server. Reads secrets and certificates.
    ///
    /// # Errors
    /// A secret is missing or cannot be used, or a certificate cannot be read.
    pub fn resolve(&self, variable: &EnvLookup<'_>) -> Result<Auth, ResolveError> {
        match self.auth {
            AuthMode::None => Ok(Auth::open()),
            AuthMode::Required => authentication(self.users, self.bearer, variable),
        }
    }
}

/// The authentication of a server by users and issuers of tokens. Reads secrets and certificates.
///
/// # Errors
/// A secret is missing or cannot be used, or a certificate cannot be read.
pub(in crate::config) fn authentication<'a>(
    listed: &[UserConfig],
    bearers: impl IntoIterator<Item = &'a BearerConfig>,
    variable: &EnvLookup<'_>,
) -> Result<Auth, ResolveError> {
    let issuers = bearers.into_iter().map(issuer);
    Ok(Auth::any_of(AuthMethods {
        users: users(listed, variable)?,
        issuers: issuers.collect::<Result<_, _>>()?,
        ..AuthMethods::default()
    })?)
}

impl UserConfig {
    /// Reads every secret, and adds a fault for each one that is missing or cannot be used. `path`: that of the user.
    pub(in crate::config) fn check_secrets(
        &self,
        path: &str,
        variable: &EnvLookup<'_>,
        findings: &mut CheckFindings,
    ) {
        for (key, secret) in self.secrets() {
            if let Err(reason) = usable(&self.name, key, secret, variable) {
                findings.fault(format!("{path}.{key}"), reason);
            }
        }
    }

    /// The secrets of the user, by key.
    fn secrets(&self) -> impl Iterator<Item = (&'static str, &SecretSource)> {
        let secrets = [
            ("password", &self.password),
            ("password_hash", &self.password_hash),
        ];
        secrets
            .into_iter()
            .filter_map(|(key, secret)| Some((key, secret.as_ref()?)))
    }
}

/// Checks names, and that each user has one secret; `before` is the path of the section with its dot, or empty.
pub(in crate::config) fn check_users(
    users: &[UserConfig],
    before: &str,
    findings: &mut CheckFindings,
) {
    let mut names = HashSet::new();
    for (nth, user) in users.iter().enumerate() {
        let path = format!("{before}users[{nth}]");
        let name = &user.name;
        if name.is_empty() || name.contains(':') || name.chars().any(char::is_control) {
            let reason = "must not be empty, and must have no colon in it";
            findings.fault(format!("{path}.name"), reason);
        }
        if !names.insert(name) {
            let reason = "is a user's already; give each user another name";
            findings.fault(format!("{path}.name"), reason);
        }
        match (&user.password, &user.password_hash) {
            (Some(_), None) | (None, Some(_)) => {}
            (None, None) => findings.fault(path, "needs `password` or `password_hash`"),
            (Some(_), Some(_)) => {
                findings.fault(
                    path,
                    "has `password` and `password_hash`; remove one of them",
                );
            }
        }
    }
}

/// Checks an issuer of tokens.
pub(in crate::config) fn check_bearer(
    bearer: &BearerConfig,
    path: &str,
    findings: &mut CheckFindings,
) {
    if bearer.issuer.is_empty() {
        let reason = "must not be empty; it is `iss` of the tokens";
        findings.fault(format!("{path}.issuer"), reason);
    }
    if bearer.audience.is_empty() || bearer.audience.iter().any(String::is_empty) {
        let reason = "must name who the tokens are for; it is `aud` of the tokens";
        findings.fault(format!("{path}.audience"), reason);
    }
}

/// Checks that a secret can be read and that a user can have it.
fn usable(
    name: &str,
    key: &str,
    secret: &SecretSource,
    variable: &EnvLookup<'_>,
) -> Result<(), String> {
    let secret = secret.reveal(variable)?;
    let users = match key {
        "password" => Users::new().with_password(name, &secret),
        _ => Users::new().with_hash(name, secret.expose_secret()),
    };
    users
        .map(drop)
        .map_err(|fault| format!("cannot be used: {fault}"))
}

fn issuer(bearer: &BearerConfig) -> Result<Issuer, ResolveError> {
    let (first, others) = match bearer.audience.split_first() {
        Some((first, others)) => (first.as_str(), others),
        None => ("", &[][..]),
    };
    let issuer = Issuer::new(&bearer.issuer, first)
        .keys_at(&bearer.jwks_url.to_string())
        .clock_skew(bearer.skew.0);
    let issuer = others.iter().fold(issuer, |it, more| it.or_audience(more));
    let issuer = bearer.scopes.iter().fold(issuer, |it, more| it.scope(more));
    match &bearer.ca {
        Some(file) => Ok(issuer.authorities(&std::fs::read(&file.0)?)),
        None => Ok(issuer),
    }
}

fn users(listed: &[UserConfig], variable: &EnvLookup<'_>) -> Result<Users, ResolveError> {
    let mut users = Users::new();
    for user in listed {
        users = match (&user.password, &user.password_hash) {
            (Some(password), _) => users.with_password(&user.name, &password.reveal(variable)?)?,
            (None, Some(hash)) => {
                let hash = hash.reveal(variable)?;
                users.with_hash(&user.name, hash.expose_secret())?
            }
            (None, None) => users,
        };
    }
    Ok(users)
}
