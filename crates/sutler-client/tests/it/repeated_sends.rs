//! Whether and when one request is sent twice: in time after a refused access token, and never unnoticed by HTTP/2.

use crate::certificates::Authority;
use crate::raw_server::{RawServer, ServerAct};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use sutler_client::wire::{ClientCredentials, Connection, Method, Request, TransportError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

const SECOND: Duration = Duration::from_secs(1);
const WITHIN: Duration = Duration::from_secs(60);

fn request() -> Request {
    Request::new(Method::Get, &["v2", "catalog"])
}

/// Moves the clock of the connection forward. It stands still only here, not while bytes are on their way.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// A broker that answers each request with a status, after a time.
struct SlowBroker {
    url: String,
    received: Arc<AtomicUsize>,
}

impl SlowBroker {
    async fn start(answers: Vec<(u16, Duration)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let received = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&received);
        tokio::spawn(async move {
            for (status, time) in answers {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.expect("a whole head"));
                }
                count.fetch_add(1, Ordering::SeqCst);
                pass(time).await;
                until_timers_fired().await;
                let text = format!(
                    "HTTP/1.1 {status} Said\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}"
                );
                let _ = stream.write_all(text.as_bytes()).await;
            }
        });
        Self {
            url: format!("http://{address}"),
            received,
        }
    }

    fn received(&self) -> usize {
        self.received.load(Ordering::SeqCst)
    }
}

/// Lets the timers of the client come first.
async fn until_timers_fired() {
    tokio::time::sleep(Duration::from_millis(200)).await;
}

/// A connection whose access token is old enough to be replaced.
async fn connection_with_old_token(broker: &SlowBroker) -> (Connection, RawServer) {
    let body = r#"{"access_token":"t","token_type":"bearer","expires_in":3600}"#;
    let tokens = RawServer::always(ServerAct::answer(200, body)).await;
    let client = ClientCredentials::new(&tokens.url(), "id", "hush".into());
    let connection = Connection::to(&broker.url).answer_within(WITHIN);
    let connection = connection.oauth2(client).build().expect("a connection");
    let answer = connection.send(&request()).await;
    assert_eq!(answer.expect("an answer").status, 200);
    pass(6 * SECOND).await;
    (connection, tokens)
}

#[tokio::test]
async fn a_refusal_that_comes_late_is_the_answer() {
    let answers = vec![
        (200, Duration::ZERO),
        (401, 6 * SECOND),
        (200, Duration::ZERO),
    ];
    let broker = SlowBroker::start(answers).await;
    let (connection, tokens) = connection_with_old_token(&broker).await;
    let answer = connection.send(&request()).await.expect("an answer");
    assert_eq!(answer.status, 401);
    assert_eq!((broker.received(), tokens.requests().len()), (2, 1));
}

#[tokio::test]
async fn a_repeated_request_has_what_remains_of_the_time() {
    let answers = vec![(200, Duration::ZERO), (401, 3 * SECOND), (200, 58 * SECOND)];
    let broker = SlowBroker::start(answers).await;
    let (connection, tokens) = connection_with_old_token(&broker).await;
    let outcome = connection.send(&request()).await;
    assert_eq!(outcome.err(), Some(TransportError::TimedOut(WITHIN)));
    assert_eq!((broker.received(), tokens.requests().len()), (3, 2));
}

/// Refuses every request of one HTTP/2 connection before processing it (RFC 9113, 8.7), which clients may repeat.
async fn refuse_streams(tls: TlsAcceptor, stream: TcpStream, refused: Arc<AtomicUsize>) {
    const HEADERS: u8 = 1;
    const SETTINGS: u8 = 4;
    let Ok(mut stream) = tls.accept(stream).await else {
        return;
    };
    let mut preface = [0; 24];
    let _ = stream.read_exact(&mut preface).await;
    let _ = stream.write_all(&[0, 0, 0, SETTINGS, 0, 0, 0, 0, 0]).await;
    let mut head = [0; 9];
    while stream.read_exact(&mut head).await.is_ok() {
        let [high, middle, low, kind, flags, id @ ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, high, middle, low]) as usize];
        let _ = stream.read_exact(&mut payload).await;
        if kind == SETTINGS && flags == 0 {
            let _ = stream.write_all(&[0, 0, 0, SETTINGS, 1, 0, 0, 0, 0]).await;
        } else if kind == HEADERS {
            refused.fetch_add(1, Ordering::SeqCst);
            // RST_STREAM with REFUSED_STREAM.
            let reset = [&[0, 0, 4, 3, 0][..], &id, &[0, 0, 0, 7]].concat();
            let _ = stream.write_all(&reset).await;
        }
        let _ = stream.flush().await;
    }
}

#[tokio::test]
async fn a_request_that_http2_refuses_is_not_sent_again() {
    let authority = Authority::new("servers");
    let tls = authority.signs("127.0.0.1").http2_acceptor();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let refused = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&refused);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(refuse_streams(tls.clone(), stream, Arc::clone(&count)));
        }
    });
    let connection = Connection::to(&format!("https://{address}"))
        .trust(authority.pem.as_bytes())
        .expect("a certificate")
        .build()
        .expect("a connection");
    let outcome = connection.send(&request()).await;
    assert_eq!(outcome.err(), Some(TransportError::Closed));
    assert_eq!(refused.load(Ordering::SeqCst), 1);
}
