//! Sets up a connection: URL, credentials, trusted certificates, egress rules, time and size limits.
//!
//! Nothing is sent here; `connection.rs` sends.

use super::client_credentials::ClientCredentials;
use super::connection::{Authentication, Connection};
use super::egress::{EgressPolicy, EgressResolver};
use super::http_answer::AnswerLimits;
use super::server_url::{broker_url, token_url};
use super::token_source::TokenSource;
use super::transport_error::innermost;
use reqwest::{Certificate, Identity};
use secrecy::{ExposeSecret, SecretString};
use std::sync::Arc;
use std::time::Duration;

/// Timeout of establishing a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// How long a whole exchange may take: the usual timeout of platforms (P-008).
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// Longest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long an unused connection is kept. Some servers close theirs after five seconds, and a
/// request that is sent just then has no answer.
const UNUSED_FOR: Duration = Duration::from_secs(4);

/// Why a connection cannot be set up. Contains advice and no secrets.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct InvalidConnectionError(String);

enum Credentials {
    None,
    Basic(String, SecretString),
    Bearer(SecretString),
    OAuth2(ClientCredentials),
}

/// How a broker proves that it is the server of its URL.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TlsVerification {
    ByCertificate,
    Skipped,
}

/// Settings of a [`Connection`].
pub struct ConnectionBuilder {
    url: String,
    credentials: Credentials,
    roots: Vec<Certificate>,
    identity: Option<Identity>,
    tls_verification: TlsVerification,
    egress: EgressPolicy,
    connect_within: Duration,
    limits: AnswerLimits,
}

impl ConnectionBuilder {
    pub(super) fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            credentials: Credentials::None,
            roots: Vec::new(),
            identity: None,
            tls_verification: TlsVerification::ByCertificate,
            egress: EgressPolicy::Anywhere,
            connect_within: CONNECT_WITHIN,
            limits: AnswerLimits {
                bytes_max: ANSWER_BYTES_MAX,
                within: ANSWER_WITHIN,
            },
        }
    }

    /// Basic authentication.
    #[must_use]
    pub fn basic(mut self, user: &str, password: SecretString) -> Self {
        self.credentials = Credentials::Basic(user.to_owned(), password);
        self
    }

    /// A bearer token.
    #[must_use]
    pub fn bearer(mut self, token: SecretString) -> Self {
        self.credentials = Credentials::Bearer(token);
        self
    }

    /// Access tokens of an authorization server, fetched when they are needed. The TLS settings and the egress rules
    /// of this connection are those of the token endpoint too.
    #[must_use]
    pub fn oauth2(mut self, client: ClientCredentials) -> Self {
        self.credentials = Credentials::OAuth2(client);
        self
    }

    /// Certificate authorities to trust besides the system's, in PEM form.
    ///
    /// # Errors
    /// The text contains no certificate.
    pub fn trust(mut self, pem: &[u8]) -> Result<Self, InvalidConnectionError> {
        let roots = Certificate::from_pem_bundle(pem)
            .ok()
            .filter(|it| !it.is_empty())
            .ok_or_else(|| {
                InvalidConnectionError("there is no certificate in PEM form to trust".to_owned())
            })?;
        self.roots.extend(roots);
        Ok(self)
    }

    /// The client's own certificate and key, concatenated in PEM form.
    ///
    /// # Errors
    /// The text contains no certificate with its key.
    pub fn identity(mut self, pem: &SecretString) -> Result<Self, InvalidConnectionError> {
        let identity = Identity::from_pem(pem.expose_secret().as_bytes()).map_err(|_| {
            InvalidConnectionError(
                "the client's certificate and its key must both be in PEM form".to_owned(),
            )
        })?;
        self.identity = Some(identity);
        Ok(self)
    }

    /// Accepts any certificate, of any server, expired or for another name (`insecureSkipTLSVerify`).
    ///
    /// An attacker on the network can then read the credentials and answer in place of the broker.
    /// [`Connection::skips_tls_verification`] is for showing it.
    #[must_use]
    pub fn dangerously_skip_tls_verification(mut self) -> Self {
        self.tls_verification = TlsVerification::Skipped;
        self
    }

    /// Where the broker and the token endpoint may be; anywhere by default.
    #[must_use]
    pub fn egress(mut self, policy: EgressPolicy) -> Self {
        self.egress = policy;
        self
    }

    /// Timeout of establishing a connection.
    #[must_use]
    pub fn connect_within(mut self, time: Duration) -> Self {
        self.connect_within = time;
        self
    }

    /// How long a whole exchange may take.
    #[must_use]
    pub fn answer_within(mut self, time: Duration) -> Self {
        self.limits.within = time;
        self
    }

    /// Longest answer that is read.
    #[must_use]
    pub fn answer_bytes_max(mut self, bytes: usize) -> Self {
        self.limits.bytes_max = bytes;
        self
    }

    /// The connection; nothing is sent yet.
    ///
    /// # Errors
    /// A URL cannot be used, or its address is not allowed, or no certificates are to be found on this machine.
    pub fn build(mut self) -> Result<Connection, InvalidConnectionError> {
        let base = broker_url(&self.url, &self.egress).map_err(InvalidConnectionError)?;
        let mut has_tls = base.starts_with("https:");
        match &mut self.credentials {
            Credentials::Basic(user, _) if user.contains(':') => {
                return Err(InvalidConnectionError(
                    "a user of basic authentication cannot have a colon in its name; use another user"
                        .to_owned(),
                ));
            }
            Credentials::OAuth2(client) => {
                let url = token_url(&client.token_url, &self.egress);
                let url = url.map_err(InvalidConnectionError)?;
                has_tls |= url.scheme() == "https";
                client.token_url = url.into();
            }
            Credentials::None | Credentials::Basic(..) | Credentials::Bearer(_) => (),
        }
        let skips_tls_verification = self.tls_verification == TlsVerification::Skipped;
        let (egress, limits) = (self.egress.clone(), self.limits);
        let (http, credentials) = self.http_client(has_tls)?;
        let authentication = match credentials {
            Credentials::None => Authentication::Anonymous,
            Credentials::Basic(user, password) => Authentication::Basic(user, password),
            Credentials::Bearer(token) => Authentication::Bearer(token),
            Credentials::OAuth2(client) => {
                let tokens = TokenSource::new(client, http.clone(), limits.within);
                Authentication::OAuth2(tokens)
            }
        };
        Ok(Connection {
            http,
            base,
            authentication: Arc::new(authentication),
            limits,
            skips_tls_verification,
            egress,
        })
    }

    fn http_client(
        self,
        has_tls: bool,
    ) -> Result<(reqwest::Client, Credentials), InvalidConnectionError> {
        let mut builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(self.connect_within.min(self.limits.within))
            .pool_idle_timeout(UNUSED_FOR)
            .no_proxy()
            // Over HTTP/2 a refused request would be sent again unnoticed, so that one send would be several.
            .retry(reqwest::retry::never())
            .dns_resolver(EgressResolver::new(self.egress))
            // A few compressed bytes could become gigabytes, so bodies are not decompressed.
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate();
        builder = if has_tls {
            builder.tls_certs_merge(self.roots)
        } else {
            // Plain HTTP needs no trusted certificates, so the machine may have none.
            builder.tls_certs_only([])
        };
        builder = match self.tls_verification {
            TlsVerification::ByCertificate => builder,
            TlsVerification::Skipped => builder.tls_danger_accept_invalid_certs(true),
        };
        if let Some(identity) = self.identity {
            builder = builder.identity(identity);
        }
        let http = builder.build().map_err(|error| {
            let reason = innermost(&error);
            InvalidConnectionError(format!("no connection can be set up: {reason}"))
        })?;
        Ok((http, self.credentials))
    }
}
