//! Serves a broker on a port: builds a [`Server`] around it, and ends its operations when that drains.
//!
//! The listener, TLS and draining are in `sutler-server`; `app.rs` dispatches requests to platforms.

use crate::app::App;
use crate::broker::{Broker, BrokerHandle, BuildError};
use axum::body::Body;
use hyper::body::Incoming;
use hyper::{Request, Response};
use std::future::Future;
use std::time::Duration;
use sutler_server::{Handler, Server, Tls, TlsConfigError};
use tokio::net::TcpListener;

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

impl Handler for App {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        self.answer(request).await
    }

    fn draining(&self) {
        self.health.draining();
    }

    async fn finish(&self, within: Duration) {
        self.engine.shut_down(within).await;
    }
}

impl BrokerHandle {
    /// Serves a listener until SIGTERM or Ctrl-C, then drains. A second signal ends it at once.
    pub async fn serve_until_signalled(&self, listener: TcpListener) {
        self.server().serve_until_signalled(listener).await;
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
        self.server().serve_or_leave(listener, stop, leave).await;
    }

    fn server(&self) -> Server<App> {
        let app = &self.0;
        let (settings, tls) = (app.settings.server(), app.tls.clone());
        Server::new(app.clone(), settings, tls, app.draining.clone())
    }

    /// Whether the broker is about to stop: it should get no new work, and is not ready any more.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.0.draining.is_cancelled() || self.0.engine.is_stopping()
    }

    /// Reads the TLS files again: new handshakes use them, open connections continue. Does nothing without
    /// TLS.
    ///
    /// # Errors
    /// A file cannot be used; the present configuration stays.
    pub fn reload_tls(&self) -> Result<(), TlsConfigError> {
        match &self.0.tls {
            Some(acceptor) => acceptor.reload(None),
            None => Ok(()),
        }
    }

    /// Serves TLS with other files from now on, like [`BrokerHandle::reload_tls`].
    ///
    /// # Errors
    /// A file cannot be used, or the broker was started without TLS.
    pub fn replace_tls(&self, tls: Tls) -> Result<(), TlsConfigError> {
        match &self.0.tls {
            Some(acceptor) => acceptor.reload(Some(tls)),
            None => Err(tls.not_served()),
        }
    }
}
