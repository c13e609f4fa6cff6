//! Long requests over a real port: they outlive the idle time, leave ordinary requests alone, and end with
//! the drain.

use axum::body::Body;
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::{Request, Response};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use sutler_server::{
    Admission, ErrorResponse, Handler, Limits, Server, ServerSettings, SharedLimits, long_response,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

const SOON: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(50);
/// Ticks of at least six seconds: more than the idle time and the time of a graceful close together.
const MANY_TICKS: usize = 125;

/// Streams a tick every [`TICK`] at `/events`, and answers anything else at once.
struct Ticks(Admission);

impl Handler for Ticks {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let caller = self.0.admit_caller("caller").await.expect("a place");
        if request.uri().path() != "/events" {
            return Response::new(Body::from("ordinary"));
        }
        let place = match self.0.acquire_long_slot(caller).await {
            Ok(place) => place,
            Err(error) => {
                let refused: Response<_> = ErrorResponse::long_request(error, "server").into();
                return refused.map(Body::new);
            }
        };
        let (response, pieces) = long_response("text/event-stream", place);
        tokio::spawn(async move {
            let mut ticks = interval(TICK);
            while pieces.send(Ok(Bytes::from("data: tick\n\n"))).await.is_ok() {
                ticks.tick().await;
            }
        });
        response
    }
}

/// A server with one slot for long requests, and the token that stops it.
async fn fixture() -> (SocketAddr, CancellationToken, JoinHandle<()>) {
    let limits = Limits {
        long_requests_at_once: 1,
        requests_per_caller: 1,
        idle_within: Duration::from_millis(200),
        ..Limits::default()
    };
    let draining = CancellationToken::new();
    let places = SharedLimits::new(limits.clone(), draining.clone());
    let settings = ServerSettings {
        limits,
        ..ServerSettings::default()
    };
    let handler = Arc::new(Ticks(Admission::new(places)));
    let server = Server::new(handler, settings, None, draining);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let stop = CancellationToken::new();
    let stopped = stop.clone().cancelled_owned();
    let serving = tokio::spawn(async move {
        let never = std::future::pending();
        server.serve_or_leave(listener, stopped, never).await;
    });
    (address, stop, serving)
}

async fn send(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let head = format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("it is sent");
    stream
}

/// Reads until a text has arrived.
async fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let mut all = String::new();
    let read = async {
        while !all.contains(text) {
            let mut part = [0; 1024];
            let length = stream.read(&mut part).await.expect("it can be read");
            assert!(length > 0, "it ended with {all:?}");
            all.push_str(&String::from_utf8_lossy(&part[..length]));
        }
    };
    timeout(SOON, read).await.expect("it comes soon");
    all
}

/// Repeats a long request until it is accepted: the server notices a closed connection at its next tick.
async fn until_slot_is_free(address: SocketAddr) {
    for _ in 0..100 {
        let mut again = send(address, "/events").await;
        if read_until(&mut again, "\r\n\r\n").await.contains("200 OK") {
            return;
        }
        sleep(TICK).await;
    }
    panic!("the slot does not become free");
}

#[tokio::test]
async fn a_long_stream_is_bounded_and_leaves_ordinary_requests_their_places() {
    let (address, _stop, _serving) = fixture().await;
    let mut first = send(address, "/events").await;
    read_until(&mut first, "data: tick").await;
    let mut second = send(address, "/events").await;
    assert!(read_until(&mut second, "\r\n\r\n").await.contains("503"));
    let mut other = send(address, "/other").await;
    assert!(read_until(&mut other, "ordinary").await.contains("200 OK"));
    drop(first);
    until_slot_is_free(address).await;
}

#[tokio::test]
async fn a_long_stream_outlives_the_idle_time_and_ends_with_the_drain() {
    let (address, stop, serving) = fixture().await;
    let mut stream = send(address, "/events").await;
    read_until(&mut stream, "data: tick").await;
    for _ in 0..MANY_TICKS {
        read_until(&mut stream, "data: tick").await;
    }
    stop.cancel();
    let mut rest = Vec::new();
    let read = timeout(SOON, stream.read_to_end(&mut rest)).await;
    assert!(read.expect("it ends soon").is_ok());
    assert!(rest.ends_with(b"0\r\n\r\n"), "it ends as a whole");
    timeout(SOON, serving)
        .await
        .expect("soon")
        .expect("no panic");
}
