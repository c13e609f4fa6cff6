//! Access to a broker: platforms with separate paths, and operators.
//!
//! How credentials are configured is in `blocks/auth.rs`.

use crate::config::blocks::{AccessConfig, AuthMode, BearerConfig, UserConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Default path before the operators' API.
const ADMIN_PREFIX: &str = "/admin";

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

impl PlatformAccess {
    /// The access to the platform's path.
    pub fn access(&self) -> AccessConfig<'_> {
        AccessConfig {
            auth: self.auth,
            users: &self.users,
            bearer: self.bearer.as_ref(),
        }
    }
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

impl AdminConfig {
    /// The path before the operators' API.
    pub fn path(&self) -> &str {
        self.prefix.as_deref().unwrap_or(ADMIN_PREFIX)
    }

    /// The access to the operators' API.
    pub fn access(&self) -> AccessConfig<'_> {
        AccessConfig {
            auth: AuthMode::Required,
            users: &self.users,
            bearer: self.bearer.as_ref(),
        }
    }
}
