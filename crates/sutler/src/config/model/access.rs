//! Who may come in: users, tokens, certificates, platforms, operators.
//!
//! How credentials are checked is the framework's affair (`sutler-broker`, `auth`).

use crate::config::secret::SecretSource;
use crate::config::value_types::{DurationText, FilePath, HttpUrl};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    #[serde(default = "a_minute")]
    pub skew: DurationText,
    /// Certificates, in PEM, that the provider's TLS must descend from; otherwise those of the system.
    #[serde(default)]
    pub ca: Option<FilePath>,
}

fn a_minute() -> DurationText {
    DurationText::seconds(60)
}

/// Certificate and key, and what is asked of clients.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Tls")]
pub struct TlsConfig {
    /// The certificate, in PEM, followed by those that lead to its root. Read again at a reload.
    pub certificate: Option<FilePath>,
    /// The certificate's private key, in PEM. Read again at a reload.
    pub key: Option<FilePath>,
    /// Certificates, in PEM, that a client's certificate must descend from.
    pub client_ca: Option<FilePath>,
    /// Whether clients must have a certificate; needs `client_ca`.
    pub client_auth: ClientAuth,
}

/// Whether clients must have a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuth {
    /// They are not asked.
    #[default]
    None,
    /// They are asked, and need not have one.
    Optional,
    /// Without one they are not connected.
    Required,
}

/// A platform with a path, a realm and users of its own.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Platform")]
pub struct PlatformAccess {
    /// The path before `/v2`, e.g. `/cf`; unique.
    pub prefix: String,
    /// Under which name its records are kept; unique. Never change it: what was kept is found by it.
    pub realm: String,
    /// Whether requests must prove who they are.
    #[serde(default)]
    pub auth: AuthMode,
    /// Who may come in with a name and a password.
    #[serde(default)]
    pub users: Vec<UserConfig>,
    /// Who may come in with a bearer token.
    #[serde(default)]
    pub bearer: Option<BearerConfig>,
}

/// The API of operators.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Admin")]
pub struct AdminConfig {
    /// The path before the operators' API; `/admin` if none is given.
    pub prefix: Option<String>,
    /// Who may come in with a name and a password.
    pub users: Vec<UserConfig>,
    /// Who may come in with a bearer token.
    pub bearer: Option<BearerConfig>,
}

/// Who may come in somewhere, with the path of the section that says it.
#[derive(Clone, Copy, Debug)]
pub struct AccessConfig<'a> {
    /// Whether it is asked at all.
    pub auth: AuthMode,
    /// By name and password.
    pub users: &'a [UserConfig],
    /// By token.
    pub bearer: Option<&'a BearerConfig>,
}

impl AccessConfig<'_> {
    /// Whether nobody could come in.
    pub fn is_nobody(&self) -> bool {
        self.auth == AuthMode::Required && self.users.is_empty() && self.bearer.is_none()
    }
}
