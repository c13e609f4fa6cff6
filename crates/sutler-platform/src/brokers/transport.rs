//! The seam to the network: sends one request to one broker. A simulation replaces it.

use crate::catalog::BrokerScope;
use crate::records::{BrokerAuthentication, BrokerRegistration};
use async_trait::async_trait;
use secrecy::SecretString;
use std::sync::Arc;
use sutler_client::wire::{
    Answer, ClientCredentials, Connection, EgressPolicy, InvalidConnectionError, Request,
    TransportError,
};

/// A connection to a broker.
#[async_trait]
pub trait BrokerTransport: Send + Sync {
    /// Sends a request, bounded in time and size.
    ///
    /// # Errors
    /// There is no whole answer; the error says whether the broker may have received the request.
    async fn send(&self, request: &Request) -> Result<Answer, TransportError>;
}

/// Connects to brokers.
pub trait ConnectBroker: Send + Sync {
    /// A connection as a registration describes it. Nothing is sent yet.
    ///
    /// # Errors
    /// The registration cannot be used, e.g. because of its address.
    fn connect(
        &self,
        registration: &BrokerRegistration,
    ) -> Result<Arc<dyn BrokerTransport>, InvalidConnectionError>;
}

/// Connects by HTTP.
pub struct HttpConnector {
    egress: EgressPolicy,
    egress_of_namespaces: EgressPolicy,
}

impl HttpConnector {
    /// Brokers of all namespaces may be where this policy says, and those of one namespace, whose owners register them, at
    /// public addresses.
    pub fn new(egress: EgressPolicy) -> Self {
        Self {
            egress,
            egress_of_namespaces: EgressPolicy::public_only(),
        }
    }

    /// Brokers of one namespace may be where this policy says.
    #[must_use]
    pub fn with_egress_of_namespaces(mut self, egress: EgressPolicy) -> Self {
        self.egress_of_namespaces = egress;
        self
    }
}

#[async_trait]
impl BrokerTransport for Connection {
    async fn send(&self, request: &Request) -> Result<Answer, TransportError> {
        Connection::send(self, request).await
    }
}

impl ConnectBroker for HttpConnector {
    fn connect(
        &self,
        registration: &BrokerRegistration,
    ) -> Result<Arc<dyn BrokerTransport>, InvalidConnectionError> {
        let secret = |text: &String| SecretString::from(text.clone());
        let egress = match &registration.scope {
            BrokerScope::AllNamespaces => &self.egress,
            BrokerScope::Namespace(_) => &self.egress_of_namespaces,
        };
        let builder = Connection::to(&registration.url)
            .egress(egress.clone())
            .answer_within(registration.limits.answer_within);
        let builder = match &registration.authentication {
            BrokerAuthentication::None => builder,
            BrokerAuthentication::Basic { username, password } => {
                builder.basic(username, secret(password))
            }
            BrokerAuthentication::Bearer { token } => builder.bearer(secret(token)),
            BrokerAuthentication::ClientCredentials {
                token_url,
                client_id,
                client_secret,
                scope,
            } => {
                let client = ClientCredentials::new(token_url, client_id, secret(client_secret));
                builder.oauth2(match scope {
                    Some(scope) => client.scope(scope),
                    None => client,
                })
            }
        };
        let tls = &registration.tls;
        let builder = match &tls.ca_pem {
            Some(pem) => builder.trust(pem.as_bytes())?,
            None => builder,
        };
        let builder = match &tls.client_pem {
            Some(pem) => builder.identity(&secret(pem))?,
            None => builder,
        };
        let builder = match tls.insecure_skip_verify {
            true => builder.dangerously_skip_tls_verification(),
            false => builder,
        };
        Ok(Arc::new(builder.build()?))
    }
}
