//! A port for the broker: accepts connections, and drains on SIGTERM.
//!
//! First it says that it is draining, then no new connections and no new requests, then the running
//! operations, then the end. What does not end in time is given back to the store and goes on after
//! the next start. One connection is `server/connection.rs`; what is taken from outside is bounded by
//! `server/limits.rs`; certificates are in `server/tls.rs`.

mod bucket;
mod callers;
mod connection;
mod descriptors;
mod gate;
mod limits;
mod peers;
mod stop;
mod tls;
mod turnstile;
mod unread;

pub use descriptors::raise_descriptor_limit;
pub use limits::{Limits, Rate};
pub use tls::{ClientCertificates, PeerCertificate, Tls, TlsFault, TlsTrouble};

pub(crate) use callers::{AtWork, TooMuch};
pub(crate) use gate::Full;
pub(crate) use tls::Secured;
pub(crate) use turnstile::{Places, Room, Sort, Turnstile};

use crate::broker::{Broker, BuildError, Running};
use crate::measure::{self, Limited};
use connection::{Port, Stage};
use peers::Crowded;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use stop::Signals;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Pause after a failed accept: out of file descriptors passes, spinning does not help.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);
/// How often the log says that connections are turned away.
const COMPLAIN_EVERY: Duration = Duration::from_secs(10);
/// What is kept of the drain limit for running operations, once connections have ended.
const FOR_OPERATIONS: u32 = 4;
/// How long connections that are cut may take to notice.
const CUT_WITHIN: Duration = Duration::from_secs(1);

impl Broker {
    /// Starts the broker and serves it on an address until SIGTERM or Ctrl-C, then drains. A second
    /// signal ends it at once.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub async fn serve(self, address: &str) -> Result<(), BuildError> {
        let listen = |error| BuildError::Listen(address.to_owned(), error);
        let listener = TcpListener::bind(address).await.map_err(listen)?;
        self.start().await?.serve_until_signalled(listener).await;
        Ok(())
    }
}

impl Running {
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
        // Each signal is taken as it comes: two that nobody took in between are one.
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

    /// Serves a listener until `stop`, then drains.
    pub async fn serve(&self, listener: TcpListener, stop: impl Future<Output = ()>) {
        self.serve_or_leave(listener, stop, std::future::pending())
            .await;
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
        let (stage, seen) = watch::channel(Stage::Open);
        let port = Arc::new(Port::new(self.0.clone(), seen));
        let tasks = TaskTracker::new();
        tokio::select! {
            () = accept(&listener, &port, &tasks) => {}
            () = self.stopping(stop) => {}
        }
        drop(listener);
        tracing::info!("draining");
        let drained = async {
            let ends = Instant::now() + self.drain();
            let connections = ends - self.drain() / FOR_OPERATIONS;
            let _ = stage.send(Stage::Closing);
            tasks.close();
            if timeout_at(connections, tasks.wait()).await.is_err() {
                tracing::warn!(left = tasks.len(), "some connections did not end in time");
            }
            let _ = stage.send(Stage::Over);
            let _ = timeout(CUT_WITHIN, tasks.wait()).await;
            let left = ends.saturating_duration_since(Instant::now());
            self.0.engine.shut_down(left).await;
        };
        tokio::select! {
            () = drained => tracing::info!("stopped"),
            () = leave => tracing::warn!("stopped at once; what ran goes on after the next start"),
        }
        let _ = stage.send(Stage::Over);
    }

    /// Waits for `stop`, says that it drains, and leaves others time to notice.
    async fn stopping(&self, stop: impl Future<Output = ()>) {
        stop.await;
        self.0.draining.cancel();
        self.0.probes.health.draining();
        sleep(self.0.settings.drain_notice).await;
    }

    /// Whether the broker is about to stop: it should get no new work, and is not ready any more.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.0.draining.is_cancelled() || self.0.engine.is_stopping()
    }
}

/// Accepts connections for as long as it is polled.
async fn accept(listener: &TcpListener, port: &Arc<Port>, tasks: &TaskTracker) {
    let mut complained: Option<Instant> = None;
    let mut complain = |sentence: &str, detail: &str| {
        if complained.is_none_or(|at| at.elapsed() >= COMPLAIN_EVERY) {
            complained = Some(Instant::now());
            tracing::warn!(detail, "{sentence}");
        }
    };
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                complain("a connection could not be accepted", &error.to_string());
                sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        match port.admit(peer.ip()) {
            Ok(connected) => {
                let port = port.clone();
                tasks.spawn(async move { port.serve(stream, connected).await });
            }
            Err(Crowded::InAll) => {
                measure::limited(Limited::Connections);
                complain("too many connections, new ones are closed", "");
            }
            Err(Crowded::ByPeer) => {
                measure::limited(Limited::Connections);
                let peer = peer.ip().to_string();
                complain(
                    "too many connections of one address, new ones are closed",
                    &peer,
                );
            }
        }
    }
}
