//! The body of `PUT` and `PATCH /brokers/{b}`: a broker as its operator registers it.
//!
//! A change is a merge patch (RFC 7396) of the whole registration: what it does not name stays, `null` goes back to the
//! default. The body with its credentials exists only in memory, has no `Debug`, and is never an answer.

use super::broker_destination::refuse_moved_secret;
use crate::api::problem::Problem;
use crate::api::time_span::TimeSpan;
use crate::broker_request::{Profile, UpdateParameters};
use crate::brokers::BrokerDefinition;
use crate::catalog::{AccessRules, CatalogRestrictions};
use crate::records::{
    BrokerAuthentication, BrokerLimits, BrokerOptions, BrokerRegistration, BrokerTls,
};
use crate::spec::apply_merge_patch;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::num::NonZeroU32;
use sutler_osb::{Requires, from_json};

/// Longest PEM text, in bytes.
const PEM_BYTES_MAX: usize = 64 * 1024;
/// Longest URL, user name, password and token, in bytes.
const TEXT_BYTES_MAX: usize = 8 * 1024;

/// A broker.
#[derive(Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct BrokerBody {
    /// Its address, with or without `/v2`.
    pub url: String,
    /// How the platform authenticates there.
    #[serde(default)]
    pub auth: BrokerAuthBody,
    /// TLS settings.
    #[serde(default)]
    pub tls: BrokerTlsBody,
    /// Shape of contexts and identities.
    #[serde(default = "default_profile")]
    pub profile: Profile,
    /// What of its catalog is offered at all.
    #[serde(default)]
    pub restrictions: CatalogRestrictions,
    /// Who sees which plan.
    #[serde(default)]
    pub access: AccessRules,
    /// Limits of requests.
    #[serde(default)]
    pub limits: BrokerLimitsBody,
    /// How the platform deals with what differs between brokers.
    #[serde(default)]
    pub options: BrokerOptionsBody,
}

/// How the platform authenticates at a broker.
#[derive(Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) enum BrokerAuthBody {
    /// Not at all.
    #[default]
    None,
    /// User and password.
    Basic {
        /// User.
        username: String,
        /// Password.
        password: String,
    },
    /// A bearer token that does not change.
    Bearer {
        /// Token.
        token: String,
    },
    /// OAuth2 client credentials.
    #[serde(rename = "oauth2", rename_all = "camelCase")]
    ClientCredentials {
        /// Where tokens are fetched.
        token_url: String,
        /// Client.
        client_id: String,
        /// Secret of the client.
        client_secret: String,
        /// Scope, if one is requested.
        #[serde(default)]
        scope: Option<String>,
    },
}

/// TLS settings of the connection.
#[derive(Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct BrokerTlsBody {
    /// Certificates that are trusted besides those of the system, in PEM.
    pub ca: Option<String>,
    /// Certificate and key of the platform, in PEM.
    pub client_identity: Option<String>,
    /// The broker's certificate is not checked.
    pub insecure_skip_verify: bool,
}

/// Limits of requests.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct BrokerLimitsBody {
    /// Requests in flight from all replicas together.
    pub max_in_flight: NonZeroU32,
    /// Time for one answer.
    pub answer_within: TimeSpan,
    /// Time for all attempts of an intent.
    pub send_within: TimeSpan,
    /// Time for polling an operation.
    pub poll_within: TimeSpan,
    /// Time between two reads of the catalog.
    pub relist_every: TimeSpan,
}

/// How the platform deals with what differs between brokers.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct BrokerOptionsBody {
    /// Changes are refused while another one is pending.
    pub exclusive: bool,
    /// A delete waits for an update in progress.
    pub delete_waits_for_update: bool,
    /// What failed creates may have left is deleted by a person.
    pub manual_orphan_cleanup: bool,
    /// Failed creates that the platform repeats by itself.
    pub auto_retries: u32,
    /// How the broker reads parameters of updates.
    pub update_parameters: UpdateParameters,
    /// A resource that is not found counts as deleted.
    pub missing_is_gone: bool,
    /// Requests about one instance are always serialized.
    pub serialize: bool,
    /// An application is named in a bind if the broker demands one.
    pub may_name_application: bool,
    /// How long replaced credentials work, if a binding does not say it.
    pub rotation_overlap: TimeSpan,
    /// What offerings may demand of the platform.
    pub allowed_permissions: Vec<Requires>,
}

fn default_profile() -> Profile {
    Profile::Sutler
}

impl Default for BrokerLimitsBody {
    fn default() -> Self {
        Self::of(&BrokerLimits::default())
    }
}

impl Default for BrokerOptionsBody {
    fn default() -> Self {
        Self::of(&BrokerOptions::default())
    }
}

impl BrokerBody {
    /// The registration as a body, with its credentials.
    pub(crate) fn of(registration: &BrokerRegistration) -> Self {
        Self {
            url: registration.url.clone(),
            auth: BrokerAuthBody::of(&registration.authentication),
            tls: BrokerTlsBody {
                ca: registration.tls.ca_pem.clone(),
                client_identity: registration.tls.client_pem.clone(),
                insecure_skip_verify: registration.tls.insecure_skip_verify,
            },
            profile: registration.profile,
            restrictions: registration.restrictions.clone(),
            access: registration.access.clone(),
            limits: BrokerLimitsBody::of(&registration.limits),
            options: BrokerOptionsBody::of(&registration.options),
        }
    }

    /// The body after a merge patch. A secret that the patch does not name goes where it went before.
    pub(crate) fn patched(&self, patch: &Map<String, Value>) -> Result<Self, Problem> {
        let mut document = match serde_json::to_value(self) {
            Ok(Value::Object(document)) => document,
            Ok(_) | Err(_) => Map::new(),
        };
        // Of another way to authenticate nothing of the old one stays.
        let way = |auth: Option<&Value>| auth?.as_object()?.keys().next().cloned();
        let wanted = way(patch.get("auth"));
        if wanted.is_some() && wanted != way(document.get("auth")) {
            document.remove("auth");
        }
        apply_merge_patch(&mut document, patch);
        let text = Value::Object(document).to_string();
        let patched: Self = from_json(text.as_bytes())?;
        refuse_moved_secret(self, &patched, patch)?;
        Ok(patched)
    }

    /// What is registered, if its texts are not too long. Bounds of limits are the platform's.
    pub(crate) fn definition(self) -> Result<BrokerDefinition, Problem> {
        self.check()?;
        Ok(BrokerDefinition {
            url: self.url,
            authentication: self.auth.into(),
            tls: BrokerTls {
                ca_pem: self.tls.ca,
                client_pem: self.tls.client_identity,
                insecure_skip_verify: self.tls.insecure_skip_verify,
            },
            profile: self.profile,
            restrictions: self.restrictions,
            access: self.access,
            limits: self.limits.into(),
            options: self.options.into(),
        })
    }

    fn check(&self) -> Result<(), Problem> {
        let tls = [
            ("/tls/ca", &self.tls.ca),
            ("/tls/clientIdentity", &self.tls.client_identity),
        ];
        for (pointer, pem) in tls {
            if pem.as_ref().is_some_and(|pem| pem.len() > PEM_BYTES_MAX) {
                let reason = format!("must not be longer than {PEM_BYTES_MAX} bytes");
                return Err(Problem::invalid_field(pointer, reason));
            }
        }
        let url = ("/url", self.url.as_str());
        for (pointer, text) in self.auth.texts().into_iter().chain([url]) {
            if !(1..=TEXT_BYTES_MAX).contains(&text.len()) {
                let reason = format!("must have 1 to {TEXT_BYTES_MAX} bytes");
                return Err(Problem::invalid_field(pointer, reason));
            }
        }
        Ok(())
    }
}

impl BrokerAuthBody {
    fn of(authentication: &BrokerAuthentication) -> Self {
        match authentication.clone() {
            BrokerAuthentication::None => Self::None,
            BrokerAuthentication::Basic { username, password } => {
                Self::Basic { username, password }
            }
            BrokerAuthentication::Bearer { token } => Self::Bearer { token },
            BrokerAuthentication::ClientCredentials {
                token_url,
                client_id,
                client_secret,
                scope,
            } => Self::ClientCredentials {
                token_url,
                client_id,
                client_secret,
                scope,
            },
        }
    }

    /// Its texts, with their pointers.
    fn texts(&self) -> Vec<(&'static str, &str)> {
        match self {
            Self::None => Vec::new(),
            Self::Basic { username, password } => {
                vec![
                    ("/auth/basic/username", username),
                    ("/auth/basic/password", password),
                ]
            }
            Self::Bearer { token } => vec![("/auth/bearer/token", token)],
            Self::ClientCredentials {
                token_url,
                client_id,
                client_secret,
                scope: _,
            } => vec![
                ("/auth/oauth2/tokenUrl", token_url),
                ("/auth/oauth2/clientId", client_id),
                ("/auth/oauth2/clientSecret", client_secret),
            ],
        }
    }
}

impl From<BrokerAuthBody> for BrokerAuthentication {
    fn from(auth: BrokerAuthBody) -> Self {
        match auth {
            BrokerAuthBody::None => Self::None,
            BrokerAuthBody::Basic { username, password } => Self::Basic { username, password },
            BrokerAuthBody::Bearer { token } => Self::Bearer { token },
            BrokerAuthBody::ClientCredentials {
                token_url,
                client_id,
                client_secret,
                scope,
            } => Self::ClientCredentials {
                token_url,
                client_id,
                client_secret,
                scope,
            },
        }
    }
}

impl BrokerLimitsBody {
    /// Limits as they are written.
    pub(crate) fn of(limits: &BrokerLimits) -> Self {
        Self {
            max_in_flight: limits.max_in_flight,
            answer_within: TimeSpan(limits.answer_within),
            send_within: TimeSpan(limits.send_within),
            poll_within: TimeSpan(limits.poll_within),
            relist_every: TimeSpan(limits.relist_every),
        }
    }
}

impl From<BrokerLimitsBody> for BrokerLimits {
    fn from(limits: BrokerLimitsBody) -> Self {
        Self {
            max_in_flight: limits.max_in_flight,
            answer_within: limits.answer_within.0,
            send_within: limits.send_within.0,
            poll_within: limits.poll_within.0,
            relist_every: limits.relist_every.0,
        }
    }
}

impl BrokerOptionsBody {
    /// Options as they are written.
    pub(crate) fn of(options: &BrokerOptions) -> Self {
        Self {
            exclusive: options.exclusive,
            delete_waits_for_update: options.delete_waits_for_update,
            manual_orphan_cleanup: options.manual_orphan_cleanup,
            auto_retries: options.auto_retries,
            update_parameters: options.update_parameters,
            missing_is_gone: options.missing_is_gone,
            serialize: options.serialize,
            may_name_application: options.may_name_application,
            rotation_overlap: TimeSpan(options.rotation_overlap),
            allowed_permissions: options.allowed_permissions.clone(),
        }
    }
}

impl From<BrokerOptionsBody> for BrokerOptions {
    fn from(options: BrokerOptionsBody) -> Self {
        Self {
            exclusive: options.exclusive,
            delete_waits_for_update: options.delete_waits_for_update,
            manual_orphan_cleanup: options.manual_orphan_cleanup,
            auto_retries: options.auto_retries,
            update_parameters: options.update_parameters,
            missing_is_gone: options.missing_is_gone,
            serialize: options.serialize,
            may_name_application: options.may_name_application,
            rotation_overlap: options.rotation_overlap.0,
            allowed_permissions: options.allowed_permissions,
        }
    }
}

#[cfg(test)]
mod tests;
