//! A port for the broker: accepts connections, and drains on SIGTERM.
//!
//! First no new connections and no new requests, then the running operations, then the end. What
//! does not end in time is given back to the store and goes on after the next start.

use crate::broker::{Broker, BuildError, Running};
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::timeout;

/// Pause after a failed accept: out of file descriptors passes, spinning does not help.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

impl Broker {
    /// Starts the broker and serves it on an address until SIGTERM or Ctrl-C, then drains.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub async fn serve(self, address: &str) -> Result<(), BuildError> {
        let listen = |error| BuildError::Listen(address.to_owned(), error);
        let listener = TcpListener::bind(address).await.map_err(listen)?;
        self.start().await?.serve(listener, stop_signal()).await;
        Ok(())
    }
}

impl Running {
    /// Serves a listener until `stop`, then drains.
    pub async fn serve(&self, listener: TcpListener, stop: impl Future<Output = ()>) {
        let address = listener
            .local_addr()
            .map_or_else(|_| String::new(), |it: SocketAddr| it.to_string());
        tracing::info!(%address, "listening");
        let connections = GracefulShutdown::new();
        let mut stop = std::pin::pin!(stop);
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => self.connect(stream, &connections),
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(ACCEPT_AGAIN).await;
                    }
                },
                () = &mut stop => break,
            }
        }
        drop(listener);
        tracing::info!("draining");
        if tokio::time::timeout(self.drain(), connections.shutdown())
            .await
            .is_err()
        {
            tracing::warn!("some connections did not end in time");
        }
        self.shut_down().await;
        tracing::info!("stopped");
    }

    fn connect(&self, stream: TcpStream, connections: &GracefulShutdown) {
        // Small answers must not wait for an acknowledgement.
        let _ = stream.set_nodelay(true);
        let http = self.0.clone();
        let headers_within = http.settings.headers_within;
        let asked = Arc::new(Notify::new());
        let first = asked.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            asked.notify_one();
            let http = http.clone();
            async move { Ok::<_, Infallible>(http.handle(request).await) }
        });
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(headers_within);
        builder.http2().timer(TokioTimer::new());
        let connection = builder
            .serve_connection(TokioIo::new(stream), service)
            .into_owned();
        let watched = connections.watch(connection);
        // Which protocol is spoken is found out first, and for that the library waits for ever.
        let silent = async move {
            if timeout(headers_within, first.notified()).await.is_ok() {
                std::future::pending::<()>().await;
            }
        };
        tokio::spawn(async move {
            tokio::select! {
                ended = watched => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "a connection ended early");
                    }
                }
                () = silent => tracing::debug!("a connection asked for nothing"),
            }
        });
    }
}

/// SIGTERM or Ctrl-C, whichever comes first.
async fn stop_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).expect("SIGTERM can be listened for");
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}
