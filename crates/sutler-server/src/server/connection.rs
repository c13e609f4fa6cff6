//! One connection: TLS handshake, requests, and the timeouts of each.
//!
//! The timeouts of headers and bodies are in hyper and in `body.rs`. Here are those of handshakes and of idle
//! connections; unread responses are in `server/write_timeout.rs`.

use super::connection_limits::{ConnectionLimitExceeded, ConnectionLimits, ConnectionPermit};
use super::limits::Limits;
use super::tls::PeerCertificate;
use super::write_timeout::WriteTimeoutStream;
use super::{Handler, ServerParts};
use crate::metrics::{self, LimitKind};
use crate::stream::LongResponse;
use axum::body::Body;
use bytes::Bytes;
use hyper::Request;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::LazyConfigAcceptor;

/// How long a graceful close may take.
const LAST_CALL: Duration = Duration::from_secs(5);
/// HTTP/2: flow-control windows of one stream and of one connection, in bytes.
const STREAM_WINDOW_BYTES: u32 = 64 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 256 * 1024;
/// HTTP/2: maximum streams reset before they are served; beyond, the connection is closed.
const RESETS_MAX: usize = 20;
/// Number of headers that hyper parses without an allocation per request.
const HEADERS_DEFAULT: usize = 100;

/// Phase of a server's shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShutdownPhase {
    /// Serves normally.
    Open,
    /// Requests in progress are answered, then connections are closed.
    Closing,
    /// Connections are cut.
    Over,
}

/// State shared by all connections of a listener.
pub(super) struct ConnectionContext<H> {
    server: Arc<ServerParts<H>>,
    http: Builder<TokioExecutor>,
    connections: Arc<ConnectionLimits>,
    handshakes: Semaphore,
    phase: watch::Receiver<ShutdownPhase>,
}

impl<H: Handler> ConnectionContext<H> {
    pub(super) fn new(server: Arc<ServerParts<H>>, phase: watch::Receiver<ShutdownPhase>) -> Self {
        let limits = &server.settings.limits;
        Self {
            http: http_within(limits, server.settings.headers_within),
            connections: Arc::default(),
            handshakes: Semaphore::new(limits.handshakes_at_once),
            phase,
            server,
        }
    }

    /// Counts a connection, within the limits.
    pub(super) fn admit(&self, peer: IpAddr) -> Result<ConnectionPermit, ConnectionLimitExceeded> {
        self.connections.admit(peer, &self.server.settings.limits)
    }

    /// Serves a connection to its end.
    pub(super) async fn serve(&self, stream: TcpStream, connected: ConnectionPermit) {
        let _open = metrics::connection_opened();
        // Small responses must not wait for an acknowledgement.
        let _ = stream.set_nodelay(true);
        if self.server.tls.is_none() {
            self.serve_http(stream, None).await;
        } else {
            Box::pin(self.serve_tls(stream)).await;
        }
        drop(connected);
    }

    async fn serve_tls(&self, stream: TcpStream) {
        let within = self.server.settings.limits.handshake_within;
        let mut phase = self.phase.clone();
        let handshake = tokio::select! {
            handshake = timeout(within, self.tls_handshake(stream)) => handshake,
            _ = after(&mut phase, false) => return,
        };
        match handshake {
            Ok(Ok(stream)) => {
                let shown = stream.get_ref().1.peer_certificates();
                let certificate = shown.and_then(|all| all.first()).map(PeerCertificate::of);
                self.serve_http(stream, certificate).await;
            }
            Ok(Err(error)) => {
                metrics::limited(LimitKind::Handshake);
                tracing::debug!(%error, "a TLS handshake failed");
            }
            Err(_) => {
                metrics::limited(LimitKind::Handshake);
                tracing::debug!("a TLS handshake took too long");
            }
        }
    }

    /// A client that sends nothing waits without a permit; only a handshake that has begun takes one.
    async fn tls_handshake(
        &self,
        stream: TcpStream,
    ) -> std::io::Result<tokio_rustls::server::TlsStream<TcpStream>> {
        let greeted = LazyConfigAcceptor::new(rustls::server::Acceptor::default(), stream).await?;
        let _place = self.handshakes.acquire().await;
        let secured = self.server.tls.as_ref().ok_or(std::io::ErrorKind::Other)?;
        greeted.into_stream(secured.config()).await
    }

    async fn serve_http<S>(&self, stream: S, certificate: Option<PeerCertificate>)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let settings = &self.server.settings;
        let activity = Arc::new(Activity::new());
        let (handler, watched) = (self.server.handler.clone(), activity.clone());
        let service = service_fn(move |mut request: Request<Incoming>| {
            let (handler, busy) = (handler.clone(), watched.begin());
            if let Some(certificate) = &certificate {
                request.extensions_mut().insert(certificate.clone());
            }
            // Kept small, because the handler boxes its work: hyper reserves space for this future in every connection.
            async move {
                let reply = handler.handle(request).await;
                // The body of a long response is sent after its head, without a time limit.
                let busy = reply.extensions().get::<LongResponse>().map(|_| busy);
                Ok::<_, Infallible>(reply.map(|body| BusyBody { body, _busy: busy }))
            }
        });
        let stream = TokioIo::new(WriteTimeoutStream::new(
            stream,
            settings.limits.write_within,
        ));
        let mut connection = std::pin::pin!(self.http.serve_connection(stream, service));
        let quiet = activity.quiet(settings.headers_within, settings.limits.idle_within);
        let mut quiet = std::pin::pin!(quiet);
        let mut phase = self.phase.clone();
        let mut closing = false;
        loop {
            tokio::select! {
                biased;
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        let cause = error.downcast_ref::<hyper::Error>();
                        if cause.is_some_and(hyper::Error::is_timeout) {
                            metrics::limited(LimitKind::HeaderSlow);
                        }
                        tracing::debug!(%error, "a connection ended early");
                    }
                    return;
                }
                () = quiet.as_mut(), if !closing => {
                    connection.as_mut().graceful_shutdown();
                    let _ = timeout(LAST_CALL, connection).await;
                    return;
                }
                next = after(&mut phase, closing) => match next {
                    ShutdownPhase::Closing => {
                        closing = true;
                        connection.as_mut().graceful_shutdown();
                    }
                    ShutdownPhase::Open | ShutdownPhase::Over => return,
                }
            }
        }
    }
}

/// Waits for the next phase. A server that was dropped counts as over.
async fn after(phase: &mut watch::Receiver<ShutdownPhase>, closing: bool) -> ShutdownPhase {
    let passed = |phase: &ShutdownPhase| match phase {
        ShutdownPhase::Open => false,
        ShutdownPhase::Closing => !closing,
        ShutdownPhase::Over => true,
    };
    phase
        .wait_for(passed)
        .await
        .map_or(ShutdownPhase::Over, |it| *it)
}

fn http_within(limits: &Limits, headers_within: Duration) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    let mut http1 = builder.http1();
    http1
        .timer(TokioTimer::new())
        .header_read_timeout(headers_within)
        .max_buf_size(limits.header_bytes_max.max(8 * 1024));
    if limits.headers_max != HEADERS_DEFAULT {
        http1.max_headers(limits.headers_max);
    }
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams_max)
        .max_header_list_size(u32::try_from(limits.header_bytes_max).unwrap_or(u32::MAX))
        .max_pending_accept_reset_streams(RESETS_MAX)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(STREAM_WINDOW_BYTES as usize)
        .keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(Duration::from_secs(10));
    builder
}

/// A body that keeps its connection from being idle while it is sent.
struct BusyBody {
    body: Body,
    _busy: Option<BusyGuard>,
}

impl hyper::body::Body for BusyBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Activity of a connection, to close it when idle.
struct Activity {
    since: Instant,
    at_work: AtomicU32,
    /// When the last request began or ended, in milliseconds since `since`; 0 before the first.
    last: AtomicU64,
}

/// A request in progress.
struct BusyGuard(Arc<Activity>);

impl Activity {
    fn new() -> Self {
        Self {
            since: Instant::now(),
            at_work: AtomicU32::new(0),
            last: AtomicU64::new(0),
        }
    }

    fn begin(self: &Arc<Self>) -> BusyGuard {
        self.at_work.fetch_add(1, Ordering::Relaxed);
        self.touch();
        BusyGuard(self.clone())
    }

    fn touch(&self) {
        let now = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(now.max(1), Ordering::Relaxed);
    }

    /// Completes when the connection was idle for `first` before its first request, or for `idle` after one.
    async fn quiet(&self, first: Duration, idle: Duration) {
        loop {
            let left = match self.last.load(Ordering::Relaxed) {
                0 => first.saturating_sub(self.since.elapsed()),
                _ if self.at_work.load(Ordering::Relaxed) > 0 => idle,
                last => (Duration::from_millis(last) + idle).saturating_sub(self.since.elapsed()),
            };
            if left.is_zero() {
                return;
            }
            sleep(left).await;
        }
    }
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.at_work.fetch_sub(1, Ordering::Relaxed);
        self.0.touch();
    }
}

#[cfg(test)]
mod tests {
    use super::Activity;
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::time::{Instant, advance};

    const FIRST: Duration = Duration::from_secs(15);
    const IDLE: Duration = Duration::from_secs(75);

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_a_request_is_idle_sooner() {
        let began = Instant::now();
        Activity::new().quiet(FIRST, IDLE).await;
        assert_eq!(began.elapsed(), FIRST);
        let began = Instant::now();
        let active = Arc::new(Activity::new());
        drop(active.begin());
        active.quiet(FIRST, IDLE).await;
        assert!(began.elapsed() >= IDLE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_with_a_request_in_progress_is_never_idle() {
        let activity = Arc::new(Activity::new());
        let busy = activity.begin();
        let waiting = tokio::spawn({
            let activity = activity.clone();
            async move { activity.quiet(FIRST, IDLE).await }
        });
        advance(IDLE * 10).await;
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(busy);
        waiting.await.expect("it ends by itself");
    }
}
