//! Serves the API on a port: the public way to start it.
//!
//! The listener, TLS and draining are in `sutler-server`; `rest_api.rs` answers requests.

use super::access::AccessSettings;
use super::health::{self, PlatformHealth};
use super::rest_api::RestApi;
use crate::census;
use crate::platform::Platform;
use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use std::sync::Arc;
use std::time::Duration;
use sutler_server::{
    Admission, Auth, BodyLimits, Handler, Probes, Server, ServerSettings, SharedLimits, TlsAcceptor,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Renders the page of metrics.
pub type MetricsPage = Arc<dyn Fn() -> String + Send + Sync>;

/// Choices for the API.
pub struct ApiSettings {
    /// Who may come in.
    pub auth: Auth,
    /// What the configuration grants by name.
    pub access: AccessSettings,
    /// Times and limits of the server.
    pub server: ServerSettings,
    /// Limits of a body.
    pub body: BodyLimits,
    /// Certificates; without them, plain HTTP.
    pub tls: Option<Arc<TlsAcceptor>>,
    /// Renders the page of metrics.
    pub metrics: Option<MetricsPage>,
    /// Whether everybody may read it at `/metrics`.
    pub public_metrics: bool,
}

/// The API of a running platform.
pub struct PlatformServer {
    api: Arc<RestApi>,
    server: Server<RestApi>,
}

impl PlatformServer {
    /// The API of a platform. It watches the health of the platform until that is shut down.
    #[must_use]
    pub fn new(platform: Platform, settings: ApiSettings) -> Self {
        let draining = CancellationToken::new();
        let shared = SharedLimits::new(settings.server.limits.clone(), draining.clone());
        let health = Arc::new(PlatformHealth::default());
        let probes = Probes {
            health: health.clone(),
            metrics: settings.metrics,
            public_metrics: settings.public_metrics,
        };
        settings.auth.prefetch_keys();
        tokio::spawn(health::watch(health.clone(), platform.clone()));
        tokio::spawn(census::watch(platform.clone()));
        let api = RestApi {
            platform,
            auth: settings.auth,
            access: Arc::new(settings.access),
            admission: Arc::new(Admission::new(shared)),
            body: settings.body,
            probes,
            health,
        };
        let api = Arc::new(api);
        let server = Server::new(api.clone(), settings.server, settings.tls, draining);
        Self { api, server }
    }

    /// Answers a request without a connection. Limits and authentication are those of a connection.
    pub async fn answer(&self, request: Request<Body>) -> Response<Body> {
        self.api.answer(request).await
    }

    /// Serves a listener until SIGTERM or Ctrl-C, then drains and shuts the platform down. A second signal ends it at once.
    pub async fn serve_until_signalled(&self, listener: TcpListener) {
        self.server.serve_until_signalled(listener).await;
    }

    /// Serves a listener until `stop`, then drains and shuts the platform down.
    pub async fn serve(&self, listener: TcpListener, stop: impl Future<Output = ()>) {
        let never = std::future::pending();
        self.server.serve_or_leave(listener, stop, never).await;
    }
}

impl Handler for RestApi {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        self.answer(request).await
    }

    fn draining(&self) {
        self.health.draining();
    }

    /// The platform's own bound is `PlatformSettings::drain`; what is not done then is another replica's.
    async fn finish(&self, within: Duration) {
        let shut_down = self.platform.shut_down();
        if tokio::time::timeout(within, shut_down).await.is_err() {
            tracing::warn!("some exchanges with brokers did not end in time; they go on later");
        }
    }
}
