//! The configuration of `sutler platform`: its types, checks and sources.
//!
//! The blocks that a broker has too are in `blocks/`; here is the root, and what only the platform has. `platform/check.rs`
//! has the rules, `platform/load.rs` reads file, environment and flags, as for a broker. Operators read the doc comments
//! of the fields.

mod check;
mod load;
#[cfg(test)]
mod tests;

pub use load::{ResolvedPlatformConfig, load_platform};

use super::blocks::{
    AuditConfig, BearerConfig, ConnectionTimeouts, LimitsConfig, LogConfig, MetricsConfig,
    ResolveError, StoreConfig, StoreUrl, TlsConfig, UserConfig, authentication,
};
use super::secret::EnvLookup;
use super::value_types::{DurationText, HostPort, NetworkText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sutler_client::wire::EgressPolicy;
use sutler_server::{Auth, ServerSettings};

/// Longest id of a platform, in bytes.
const ID_BYTES_MAX: usize = 200;

/// The configuration of `sutler platform`. Every key may be left out, except that `users` or `issuers` must have an entry.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "PlatformConfig")]
pub struct PlatformConfig {
    /// Id of this platform, sent to brokers for namespaces that belong to no cluster. Never change it.
    pub id: String,
    /// Where the platform listens. Only this machine can reach the default.
    pub listen: HostPort,
    /// Who may come in with a name and a password.
    pub users: Vec<UserConfig>,
    /// Providers whose bearer tokens are accepted.
    pub issuers: Vec<BearerConfig>,
    /// Who may register and change brokers, create and delete namespaces, operate the orphan ledger, and cancel, resume and
    /// retry the changes of others: names of `users`, or whole ids of others such as `token:https://issuer#subject`. Without
    /// it nobody may.
    pub operators: Vec<String>,
    /// Who may give up instances, bindings and orphans that a broker may still have, as in `operators`.
    pub abandon: Vec<String>,
    /// Who may read the credentials of bindings, as in `operators`.
    pub credentials: Vec<String>,
    /// Front ends that may act for other people, with the header `Sutler-On-Behalf-Of`, as in `operators`.
    pub impersonators: Vec<String>,
    /// In which networks brokers may be.
    pub egress: EgressConfig,
    /// Encrypted connections. Without it the platform speaks plain HTTP.
    pub tls: Option<TlsConfig>,
    /// Where everything is kept.
    pub store: StoreConfig,
    /// How much of everything a client may have.
    pub limits: LimitsConfig,
    /// How long things may take.
    pub timeouts: PlatformTimeoutsConfig,
    /// How long a shut-down waits for requests and for exchanges with brokers.
    pub drain: DurationText,
    /// What the platform writes about its work, on standard error.
    pub log: LogConfig,
    /// Who changed what, one line of JSON each.
    pub audit: AuditConfig,
    /// Numbers for Prometheus, at `/metrics`.
    pub metrics: MetricsConfig,
}

/// In which networks brokers may be. Their names are resolved for each connection, and the address is checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Egress")]
pub struct EgressConfig {
    /// Networks besides the public internet, such as `10.0.0.0/8`, or single addresses. A user who may register a broker
    /// makes the platform send requests into them.
    pub networks: Vec<NetworkText>,
    /// Whether brokers may be everywhere: also on this machine and in networks that only it reaches.
    pub anywhere: bool,
}

/// How long things may take.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "PlatformTimeouts")]
pub struct PlatformTimeoutsConfig {
    /// How long a client may take to send the headers of a request.
    pub headers: DurationText,
    /// How long a client may take to send the body of a request.
    pub body: DurationText,
    /// How long a TLS handshake may take.
    pub handshake: DurationText,
    /// How long a connection may stay without a request.
    pub idle: DurationText,
    /// How long a client may leave an answer unread.
    pub write: DurationText,
    /// How long a request waits for a place. Beyond: 503.
    pub queue: DurationText,
    /// How long the claims of a process last without a renewal of its lease.
    pub lease: DurationText,
    /// How long the platform accepts connections after it reports that it drains, so that load balancers can notice.
    pub drain_notice: DurationText,
}

impl Default for PlatformConfig {
    fn default() -> Self {
        Self {
            id: "sutler".to_owned(),
            listen: HostPort::parse("127.0.0.1:8090").expect("it is an address"),
            users: Vec::new(),
            issuers: Vec::new(),
            operators: Vec::new(),
            abandon: Vec::new(),
            credentials: Vec::new(),
            impersonators: Vec::new(),
            egress: EgressConfig::default(),
            tls: None,
            store: StoreConfig {
                url: StoreUrl::Sqlite("platform.db".into()),
                ..StoreConfig::default()
            },
            limits: LimitsConfig::default(),
            timeouts: PlatformTimeoutsConfig::default(),
            drain: DurationText(ServerSettings::default().drain),
            log: LogConfig::default(),
            audit: AuditConfig::default(),
            metrics: MetricsConfig::default(),
        }
    }
}

impl Default for PlatformTimeoutsConfig {
    fn default() -> Self {
        let server = ServerSettings::default();
        let limits = server.limits;
        Self {
            headers: DurationText(server.headers_within),
            body: DurationText::seconds(30),
            handshake: DurationText(limits.handshake_within),
            idle: DurationText(limits.idle_within),
            write: DurationText(limits.write_within),
            queue: DurationText(limits.queue_within),
            lease: DurationText::seconds(30),
            drain_notice: DurationText(server.drain_notice),
        }
    }
}

impl EgressConfig {
    /// The rules for connections to brokers.
    pub fn policy(&self) -> EgressPolicy {
        match self.anywhere {
            true => EgressPolicy::Anywhere,
            false => EgressPolicy::PublicAnd(self.networks.iter().map(|it| it.0).collect()),
        }
    }
}

impl PlatformConfig {
    /// The authentication of requests. Reads secrets and certificates.
    ///
    /// # Errors
    /// A secret is missing or cannot be used, or a certificate cannot be read.
    pub fn auth(&self, variable: &EnvLookup<'_>) -> Result<Auth, ResolveError> {
        authentication(&self.users, &self.issuers, variable)
    }

    /// Settings of the server.
    pub fn server(&self) -> ServerSettings {
        let timeouts = &self.timeouts;
        let connections = ConnectionTimeouts {
            handshake: timeouts.handshake.0,
            idle: timeouts.idle.0,
            write: timeouts.write.0,
            queue: timeouts.queue.0,
        };
        let defaults = ServerSettings::default();
        ServerSettings {
            headers_within: timeouts.headers.0,
            drain: self.drain.0,
            drain_notice: timeouts.drain_notice.0,
            limits: self.limits.resolve(&connections, defaults.limits),
        }
    }
}
