//! Listens on a port, serves connections to a [`Handler`], and drains.
//!
//! A drain is announced first, then no new connections and requests are accepted, then the handler ends its
//! own work. One connection is `server/connection.rs`; limits are in `server/limits.rs`; certificates are in
//! `server/tls.rs`.

mod admission;
mod bounded_queue;
mod caller_limits;
mod connection;
mod connection_limits;
mod descriptors;
mod limits;
mod signals;
mod tls;
mod token_bucket;
mod write_timeout;

pub use admission::{
    Admission, BodyBudget, LongRequestError, LongRequestPermit, RequestClass, SharedLimits,
};
pub use bounded_queue::{QueueFull, Slot};
pub use caller_limits::{CallerLimitExceeded, CallerPermit};
pub use descriptors::raise_descriptor_limit;
pub use limits::{Limits, Rate};
pub use tls::{
    ClientCertificates, PeerCertificate, Tls, TlsAcceptor, TlsConfigError, TlsFileError,
};

use crate::metrics::{self, LimitKind};
use axum::body::Body;
use connection::{ConnectionContext, ShutdownPhase};
use connection_limits::ConnectionLimitExceeded;
use hyper::body::Incoming;
use hyper::{Request, Response};
use signals::Signals;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Pause after a failed accept, so that a lack of file descriptors does not cause a busy loop.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);
/// Minimum time between log lines about refused connections.
const WARN_EVERY: Duration = Duration::from_secs(10);
/// Part of the drain limit that is kept for the handler's own work, once connections have ended.
const FOR_OPERATIONS: u32 = 4;
/// How long connections that are cut may take to notice.
const CUT_WITHIN: Duration = Duration::from_secs(1);

/// Answers the requests of a [`Server`].
pub trait Handler: Send + Sync + 'static {
    /// Answers one request. Must not panic.
    fn handle(&self, request: Request<Incoming>) -> impl Future<Output = Response<Body>> + Send;

    /// The server begins to drain: it still accepts for a short time, and probes should report it.
    fn draining(&self) {}

    /// Connections have ended: ends the handler's own work, within this time.
    fn finish(&self, _within: Duration) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

/// Settings of a [`Server`].
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// How long a client may take to send the headers of a request.
    pub headers_within: Duration,
    /// How long a drain may take: requests and the handler's own work together.
    pub drain: Duration,
    /// How long the server still accepts after it announced its drain.
    pub drain_notice: Duration,
    /// Limits of connections and requests.
    pub limits: Limits,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            headers_within: Duration::from_secs(15),
            drain: Duration::from_secs(20),
            drain_notice: Duration::ZERO,
            limits: Limits::default(),
        }
    }
}

/// A handler with the settings and the certificates it is served with. Serves any number of listeners.
pub struct Server<H> {
    shared: Arc<ServerParts<H>>,
}

/// Parts of a server that its connections use.
struct ServerParts<H> {
    handler: Arc<H>,
    settings: ServerSettings,
    tls: Option<Arc<TlsAcceptor>>,
    draining: CancellationToken,
}

impl<H: Handler> Server<H> {
    /// Serves a handler; without `tls`, in plain HTTP. `draining` is cancelled when the server begins to
    /// drain: pass it to [`SharedLimits::new`] too, so that long requests end then.
    #[must_use]
    pub fn new(
        handler: Arc<H>,
        settings: ServerSettings,
        tls: Option<Arc<TlsAcceptor>>,
        draining: CancellationToken,
    ) -> Self {
        let shared = ServerParts {
            handler,
            settings,
            tls,
            draining,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Serves a listener until SIGTERM or Ctrl-C, then drains. A second signal ends it at once.
    pub async fn serve_until_signalled(&self, listener: TcpListener) {
        let mut signals = match Signals::listen() {
            Ok(signals) => signals,
            Err(error) => {
                tracing::error!(%error, "signals cannot be listened for, so nothing is served");
                return;
            }
        };
        let (stop, leave) = (CancellationToken::new(), CancellationToken::new());
        // Each signal is received separately: two that were not received in between count as one.
        let watch = async {
            signals.next().await;
            stop.cancel();
            signals.next().await;
            leave.cancel();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = watch => {}
            () = self.serve_or_leave(listener, stop.cancelled(), leave.cancelled()) => {}
        }
    }

    /// Serves a listener until `stop`, then drains; `leave` ends the drain at once.
    pub async fn serve_or_leave(
        &self,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
        leave: impl Future<Output = ()>,
    ) {
        let address = listener
            .local_addr()
            .map_or_else(|_| String::new(), |it: SocketAddr| it.to_string());
        tracing::info!(%address, "listening");
        let (phase, phase_receiver) = watch::channel(ShutdownPhase::Open);
        let context = Arc::new(ConnectionContext::new(self.shared.clone(), phase_receiver));
        let tasks = TaskTracker::new();
        tokio::select! {
            () = accept(&listener, &context, &tasks) => {}
            () = self.stopping(stop) => {}
        }
        drop(listener);
        tracing::info!("draining");
        let drain = self.shared.settings.drain;
        let drained = async {
            let ends = Instant::now() + drain;
            let connections = ends - drain / FOR_OPERATIONS;
            let _ = phase.send(ShutdownPhase::Closing);
            tasks.close();
            if timeout_at(connections, tasks.wait()).await.is_err() {
                tracing::warn!(left = tasks.len(), "some connections did not end in time");
            }
            let _ = phase.send(ShutdownPhase::Over);
            let _ = timeout(CUT_WITHIN, tasks.wait()).await;
            let left = ends.saturating_duration_since(Instant::now());
            self.shared.handler.finish(left).await;
        };
        tokio::select! {
            () = drained => tracing::info!("stopped"),
            () = leave => tracing::warn!("stopped at once; what ran goes on after the next start"),
        }
        let _ = phase.send(ShutdownPhase::Over);
    }

    /// Waits for `stop`, announces the drain, and leaves load balancers time to notice.
    async fn stopping(&self, stop: impl Future<Output = ()>) {
        stop.await;
        self.shared.draining.cancel();
        self.shared.handler.draining();
        sleep(self.shared.settings.drain_notice).await;
    }
}

/// Accepts connections for as long as it is polled.
async fn accept<H: Handler>(
    listener: &TcpListener,
    context: &Arc<ConnectionContext<H>>,
    tasks: &TaskTracker,
) {
    let mut warned: Option<Instant> = None;
    let mut warn = |sentence: &str, detail: &str| {
        if warned.is_none_or(|at| at.elapsed() >= WARN_EVERY) {
            warned = Some(Instant::now());
            tracing::warn!(detail, "{sentence}");
        }
    };
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                warn("a connection could not be accepted", &error.to_string());
                sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        match context.admit(peer.ip()) {
            Ok(connected) => {
                let context = context.clone();
                tasks.spawn(async move { context.serve(stream, connected).await });
            }
            Err(ConnectionLimitExceeded::Total) => {
                metrics::limited(LimitKind::Connections);
                warn("too many connections, new ones are closed", "");
            }
            Err(ConnectionLimitExceeded::PerPeer) => {
                metrics::limited(LimitKind::Connections);
                let peer = peer.ip().to_string();
                warn(
                    "too many connections of one address, new ones are closed",
                    &peer,
                );
            }
        }
    }
}
