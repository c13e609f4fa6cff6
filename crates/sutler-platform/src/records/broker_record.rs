//! A registered broker: where it is, how the platform authenticates there, and what the operator chose for it.

use super::record::TypedRecord;
use super::resource_name::ResourceName;
use super::terms::UID_TERM;
use crate::author::Author;
use crate::broker_request::{Profile, UpdateParameters};
use crate::catalog::{AccessRules, BrokerScope, CatalogRestrictions};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;
use sutler_journal::Term;
use sutler_osb::Requires;
use uuid::Uuid;

/// A broker as its operator registered it. Sealed in the store; `Debug` shows no credentials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerRegistration {
    /// Our stable id.
    pub uid: Uuid,
    /// Name, unique in its scope.
    pub name: ResourceName,
    /// Namespaces that it serves.
    pub scope: BrokerScope,
    /// Address without `/v2`.
    pub url: String,
    /// How the platform authenticates.
    pub authentication: BrokerAuthentication,
    /// TLS settings.
    pub tls: BrokerTls,
    /// Shape of contexts and identities.
    pub profile: Profile,
    /// What of its catalog is offered at all.
    pub restrictions: CatalogRestrictions,
    /// Who sees which plan.
    pub access: AccessRules,
    /// Limits of requests.
    pub limits: BrokerLimits,
    /// How the platform deals with what differs between brokers.
    pub options: BrokerOptions,
    /// Number of the registration: it grows with each change of it.
    pub revision: u64,
    /// When it was registered.
    pub created: Timestamp,
    /// The person who registered it.
    pub created_by: Author,
    /// When a deregistration began that is not finished, if one did: nothing new is created.
    pub deregistering: Option<Timestamp>,
}

/// How the platform authenticates at a broker.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BrokerAuthentication {
    /// Not at all.
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
    ClientCredentials {
        /// Where tokens are fetched.
        token_url: String,
        /// Client.
        client_id: String,
        /// Secret of the client.
        client_secret: String,
        /// Scope, if one is requested.
        scope: Option<String>,
    },
}

/// Shows no credentials.
impl fmt::Debug for BrokerAuthentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Basic { .. } => "Basic(…)",
            Self::Bearer { .. } => "Bearer(…)",
            Self::ClientCredentials { .. } => "ClientCredentials(…)",
        })
    }
}

/// TLS settings of a connection to a broker.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerTls {
    /// Certificates that are trusted besides those of the system, in PEM.
    pub ca_pem: Option<String>,
    /// Certificate and key of the platform, in PEM.
    pub client_pem: Option<String>,
    /// The broker's certificate is not checked. Shown wherever the broker is.
    pub insecure_skip_verify: bool,
}

/// Shows no key.
impl fmt::Debug for BrokerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrokerTls")
            .field("insecure_skip_verify", &self.insecure_skip_verify)
            .finish_non_exhaustive()
    }
}

/// Limits of requests to a broker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerLimits {
    /// Requests in flight from all replicas together.
    pub max_in_flight: NonZeroU32,
    /// Time for one answer.
    pub answer_within: Duration,
    /// Time for all attempts of an intent.
    pub send_within: Duration,
    /// Time for polling an operation, unless the plan says less.
    pub poll_within: Duration,
    /// Time between two reads of the catalog.
    pub relist_every: Duration,
}

impl Default for BrokerLimits {
    fn default() -> Self {
        Self {
            max_in_flight: crate::lifecycle::breaker::MAX_IN_FLIGHT,
            answer_within: Duration::from_secs(60),
            send_within: Duration::from_secs(24 * 3600),
            poll_within: Duration::from_secs(7 * 24 * 3600),
            relist_every: Duration::from_secs(15 * 60),
        }
    }
}

/// How the platform deals with what differs between brokers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerOptions {
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
    /// A resource that is not found (404) counts as deleted.
    pub missing_is_gone: bool,
    /// Requests about one instance are always serialized, without having to learn it.
    pub serialize: bool,
    /// An application is named in a bind if the broker demands one.
    pub may_name_application: bool,
    /// How long replaced credentials work, if a binding does not say it.
    pub rotation_overlap: Duration,
    /// What offerings may demand of the platform.
    pub allowed_permissions: Vec<Requires>,
}

impl Default for BrokerOptions {
    fn default() -> Self {
        Self {
            exclusive: false,
            delete_waits_for_update: false,
            manual_orphan_cleanup: false,
            auto_retries: 3,
            update_parameters: UpdateParameters::default(),
            missing_is_gone: false,
            serialize: false,
            may_name_application: true,
            rotation_overlap: Duration::from_secs(3600),
            allowed_permissions: Vec::new(),
        }
    }
}

impl TypedRecord for BrokerRegistration {
    fn terms(&self) -> Vec<Term> {
        vec![Term::new(UID_TERM, self.uid.to_string().into_bytes())]
    }
}
