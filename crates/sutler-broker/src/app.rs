//! The broker as one HTTP application: dispatches requests to probes, administration and platforms.
//!
//! One [`App`] for all platforms, one [`PlatformApi`] for each. `serve.rs` serves it on a port; the endpoints of
//! a platform are in `http.rs`, those of operators in `admin.rs`.

use crate::admin::AdminApi;
use crate::broker::BuildError;
use crate::catalog::{CatalogPreconditions, LiveCatalog, OfferingUpdate};
use crate::health::BrokerHealth;
use crate::http::{self, ADMIN, PATHS, PlatformApi, request_id};
use crate::platform::Prefix;
use crate::realm_context::RealmContext;
use crate::settings::Settings;
use axum::body::Body;
use bytes::Bytes;
use hyper::{Request, Response};
use std::sync::Arc;
use sutler_journal::Engine;
use sutler_records::PeriodicTasks;
use sutler_server::{Probes, RequestContext, TlsAcceptor};
use tokio_util::sync::CancellationToken;

/// A platform and the path prefix it is served under.
pub(crate) struct PlatformRoute {
    pub prefix: Prefix,
    pub http: PlatformApi,
}

/// Everything that answers requests.
pub(crate) struct App {
    /// Longest prefix first.
    pub platforms: Vec<PlatformRoute>,
    pub engine: Engine,
    pub catalog: Arc<LiveCatalog>,
    pub settings: Arc<Settings>,
    pub tls: Option<Arc<TlsAcceptor>>,
    /// Cancelled when the broker begins to drain.
    pub draining: CancellationToken,
    /// Administration, if it is served.
    pub admin: Option<AdminApi>,
    pub health: Arc<BrokerHealth>,
    pub probes: Probes,
    /// Periodic tasks of extensions, if there are any.
    pub tasks: Option<Arc<PeriodicTasks>>,
}

impl App {
    /// Answers one request. Never fails, never panics.
    pub(crate) async fn answer<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: hyper::body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let context = RequestContext::begin(&request, request_id(request.headers()));
        // Boxed once, here: the surrounding futures stay small, and an idle connection reserves no memory
        // for it.
        let answered = Box::pin(self.dispatch(request, &context));
        context.observe(answered).await
    }

    async fn dispatch<B>(
        &self,
        request: Request<B>,
        context: &Arc<RequestContext>,
    ) -> Response<Body>
    where
        B: hyper::body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let path = request.uri().path();
        if let Some(admin) = &self.admin
            && let Some(at) = admin.ends_at(path)
        {
            context.set_route(&ADMIN);
            // Boxed, so that futures of ordinary requests stay small.
            return Box::pin(admin.handle(request, at, context, &self.probes)).await;
        }
        if let Some(reply) = self.probes.answer(request.method(), path, context) {
            return reply.map(Body::new);
        }
        let mut platforms = self.platforms.iter();
        let found = platforms.find_map(|it| Some((it, it.prefix.ends_at(path)?)));
        let reply = match found {
            Some((platform, at)) => platform.http.handle_request(request, at, context).await,
            None => http::unknown_platform(),
        };
        reply.map(Body::new)
    }

    /// Replaces the whole catalog. `preconditions`: records that must be unchanged when an offering is provisioned.
    pub(crate) async fn replace_catalog(
        &self,
        updates: Vec<OfferingUpdate>,
        preconditions: CatalogPreconditions,
    ) -> Result<(), BuildError> {
        let realms = self
            .realms()
            .map(|realm_context| realm_context.records.as_ref());
        Ok(self.catalog.replace(realms, updates, preconditions).await?)
    }

    /// The context of each realm.
    pub(crate) fn realms(&self) -> impl Iterator<Item = &Arc<RealmContext>> {
        self.platforms
            .iter()
            .map(|it| &it.http.requests.realm_context)
    }
}

/// The broker as a plain router: nest it, add layers, call it in tests.
pub(crate) fn router(app: &Arc<App>) -> axum::Router {
    let answering = app.clone();
    let answer = move |request: axum::extract::Request| {
        let app = answering.clone();
        async move { app.answer(request).await }
    };
    let mut router = axum::Router::new();
    if let Some(admin) = &app.admin {
        let path = format!("/{}/{{*rest}}", admin.prefix());
        router = router.route(&path, axum::routing::any(answer.clone()));
    }
    for platform in &app.platforms {
        let prefix = platform.prefix.to_string();
        let prefix = prefix.trim_end_matches('/');
        for path in PATHS {
            let path = format!("{prefix}{path}");
            router = router.route(&path, axum::routing::any(answer.clone()));
        }
    }
    router
}
