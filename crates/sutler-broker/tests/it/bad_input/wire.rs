//! Raw socket input: garbage, partial requests, silence, floods. The next client is always served.

use super::TestTarget;
use crate::fixture::{AUTHORIZATION, WAIT_LIMIT};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::MemoryStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Time limit of clients: longer than a busy machine needs, shorter than the limits of the tests.
const CLIENT_TIMEOUT: Duration = Duration::from_millis(700);

/// A broker behind a real port.
struct Port {
    target: TestTarget,
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Port {
    async fn open() -> Self {
        let store = Arc::new(MemoryStore::new());
        let target = TestTarget::start(store, None, |settings| {
            settings.headers_within = CLIENT_TIMEOUT;
            settings.body_within = CLIENT_TIMEOUT;
            settings.drain = CLIENT_TIMEOUT;
        })
        .await;
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel::<()>();
        let running = target.running.clone();
        let serving = tokio::spawn(async move {
            let stopped = async { stopped.await.unwrap_or_default() };
            running.serve(listener, stopped).await;
        });
        Self {
            target,
            address,
            stop,
            serving,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address)
            .await
            .expect("the server accepts")
    }

    /// Sends bytes on a fresh connection and reads until the server closes it.
    async fn send(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        // The server may close the connection before everything is sent.
        let _ = stream.write_all(bytes).await;
        read_to_end(&mut stream).await
    }

    /// Asserts that a well-behaved client is served.
    async fn serves_next_client(&self) {
        let answer = self.send(catalog("Connection: close\r\n").as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer:.200}");
    }

    /// Stops the server, which must end without an error.
    async fn close(self) {
        self.stop.send(()).expect("the server still runs");
        let ended = tokio::time::timeout(WAIT_LIMIT, self.serving).await;
        ended.expect("the server ends").expect("without a panic");
    }
}

async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let read = tokio::time::timeout(WAIT_LIMIT, stream.read_to_end(&mut answer)).await;
    // A reset also ends the connection.
    let _ = read.expect("the server closes the connection");
    String::from_utf8_lossy(&answer).into_owned()
}

fn catalog(headers: &str) -> String {
    format!(
        "GET /v2/catalog HTTP/1.1\r\nHost: x\r\nAuthorization: {AUTHORIZATION}\r\n\
         X-Broker-API-Version: 2.17\r\n{headers}\r\n"
    )
}

fn provision(headers: &str, body: &str) -> String {
    format!(
        "PUT /v2/service_instances/wire HTTP/1.1\r\nHost: x\r\nAuthorization: {AUTHORIZATION}\r\n\
         X-Broker-API-Version: 2.17\r\n{headers}\r\n{body}"
    )
}

/// Asserts that there is no response, or a 4xx.
fn is_client_error(what: &str, answer: &str) {
    let blamed = answer.is_empty() || answer.starts_with("HTTP/1.1 4");
    // Garbage that begins like HTTP/2 is answered in HTTP/2.
    let in_http_2 = what.starts_with("PRI");
    assert!(blamed || in_http_2, "{what:.60}: {answer:.200}");
}

#[tokio::test]
async fn garbage_on_the_wire_is_refused_and_the_next_client_is_served() {
    let port = Port::open().await;
    let before = port.target.dump().await;
    let long = "x".repeat(1_000_000);
    let many: String = (0..5_000).map(|n| format!("h{n}: v\r\n")).collect();
    let rubbish = [
        "\r\n\r\n\r\n".to_owned(),
        "\0\0\0\0\r\n\r\n".to_owned(),
        "hello\r\n\r\n".to_owned(),
        "GET\r\n\r\n".to_owned(),
        "GET /v2/catalog\r\n\r\n".to_owned(),
        "GET /v2/catalog HTTP/9.9\r\n\r\n".to_owned(),
        "GET  /v2/catalog HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(),
        "GET /v2/ca talog HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(),
        "G\u{e4}T /v2/catalog HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(),
        "GET /v2/catalog HTTP/1.1\r\nHost x\r\n\r\n".to_owned(),
        "GET /v2/catalog HTTP/1.1\r\n: x\r\n\r\n".to_owned(),
        "GET /v2/catalog HTTP/1.1\r\nHost: x\r\n folded: x\r\n\r\n".to_owned(),
        "GET /v2/catalog HTTP/1.1\r\nHost: \0\r\n\r\n".to_owned(),
        format!("GET /{long} HTTP/1.1\r\nHost: x\r\n\r\n"),
        format!("GET /v2/service_instances/{long} HTTP/1.1\r\nHost: x\r\n\r\n"),
        catalog(&format!("x: {long}\r\n")),
        catalog(&many),
        provision("Content-Length: -1\r\n", "{}"),
        provision("Content-Length: 99999999999999999999\r\n", "{}"),
        provision("Content-Length: 2\r\nContent-Length: 3\r\n", "{}"),
        provision("Transfer-Encoding: gzip\r\n", "{}"),
        provision("Transfer-Encoding: chunked\r\n", "zz\r\n{}\r\n"),
        provision(
            "Transfer-Encoding: chunked\r\n",
            "fffffffffffffffff\r\n{}\r\n",
        ),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nrubbish that is no frame".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n".to_owned(),
        "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0".to_owned(),
    ];
    for bytes in rubbish {
        let answer = port.send(bytes.as_bytes()).await;
        is_client_error(&bytes, &answer);
        port.serves_next_client().await;
    }
    assert_eq!(port.target.dump().await, before);
    port.close().await;
}

#[tokio::test]
async fn partial_requests_time_out_and_the_next_client_is_served() {
    let port = Port::open().await;
    let before = port.target.dump().await;
    let halves = [
        String::new(),
        "P".to_owned(),
        "PRI * HTTP/2.0".to_owned(),
        "GET /v2/cata".to_owned(),
        "GET /v2/catalog HTTP/1.1\r\nHost: x\r\nAuth".to_owned(),
        catalog("").trim_end().to_owned(),
        provision("Content-Length: 100\r\n", "{\"service_id\""),
        provision("Transfer-Encoding: chunked\r\n", "5\r\n{\"se"),
    ];
    // All at once: slow clients must not delay others.
    let mut slow = Vec::new();
    for half in &halves {
        let mut stream = port.connect().await;
        stream
            .write_all(half.as_bytes())
            .await
            .expect("the server listens");
        slow.push((half, stream));
        port.serves_next_client().await;
    }
    for (half, mut stream) in slow {
        // The server times out by itself; the client only reads.
        is_client_error(half, &read_to_end(&mut stream).await);
    }
    for half in &halves {
        let mut stream = port.connect().await;
        stream
            .write_all(half.as_bytes())
            .await
            .expect("the server listens");
        drop(stream);
        port.serves_next_client().await;
    }
    assert_eq!(port.target.dump().await, before);
    port.close().await;
}

#[tokio::test]
async fn a_body_that_does_not_arrive_is_a_408() {
    let port = Port::open().await;
    let answer = port
        .send(provision("Content-Length: 100\r\n", "{").as_bytes())
        .await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer:.200}");
    assert!(answer.contains("repeat the request"), "{answer}");
    port.close().await;
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_their_order() {
    let port = Port::open().await;
    let bad = provision("Content-Length: 4\r\n", "nope");
    let all = [
        catalog(""),
        bad,
        catalog("If-None-Match: *\r\n"),
        catalog("Connection: close\r\n"),
    ];
    let answer = port.send(all.concat().as_bytes()).await;
    let statuses: Vec<&str> = answer
        .match_indices("HTTP/1.1 ")
        .map(|(at, _)| &answer[at + 9..at + 12])
        .collect();
    assert_eq!(statuses, ["200", "400", "304", "200"]);
    port.close().await;
}

/// A client of HTTP/1.0 sends no Host, and a refused body does not affect the next request.
#[tokio::test]
async fn http_1_0_clients_and_refused_bodies_leave_the_server_usable() {
    let port = Port::open().await;
    let old = catalog("").replace("HTTP/1.1\r\nHost: x\r\n", "HTTP/1.0\r\n");
    let answer = port.send(old.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.0 200 "), "{answer:.200}");
    let hostless = catalog("Connection: close\r\n").replace("Host: x\r\n", "");
    let answer = port.send(hostless.as_bytes()).await;
    assert!(
        answer.starts_with("HTTP/1.1 200 ") || answer.starts_with("HTTP/1.1 400 "),
        "{answer:.200}"
    );
    let chunk = format!("{:x}\r\n{}\r\n", 64 * 1024, " ".repeat(64 * 1024));
    let flood = provision("Transfer-Encoding: chunked\r\n", &chunk.repeat(32));
    let answer = port.send(flood.as_bytes()).await;
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 413 "),
        "{answer:.200}"
    );
    port.serves_next_client().await;
    port.close().await;
}
