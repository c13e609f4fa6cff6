//! The wire against servers that send arbitrary bytes: bounded, classified, and without secrets in errors.

use crate::raw_server::{RawServer, ServerAct};
use secrecy::SecretString;
use std::time::Duration;
use sutler_client::wire::{
    Answer, Connection, ConnectionBuilder, Method, Proof, Request, TransportError,
};

/// Long enough for a busy machine.
const WITHIN: Duration = Duration::from_secs(20);
/// For answers that never arrive.
const SOON: Duration = Duration::from_millis(300);
const BYTES_MAX: usize = 64 * 1024;

fn to(url: &str) -> ConnectionBuilder {
    Connection::to(url)
        .answer_within(WITHIN)
        .answer_bytes_max(BYTES_MAX)
}

/// The result of a request to a server with one reaction.
async fn of(act: ServerAct) -> Result<Answer, TransportError> {
    of_within(WITHIN, act).await
}

async fn of_within(within: Duration, act: ServerAct) -> Result<Answer, TransportError> {
    let server = RawServer::always(act).await;
    let connection = to(&server.url()).answer_within(within).build();
    let connection = connection.expect("a connection");
    let request = Request::new(Method::Get, &["v2", "catalog"]);
    tokio::time::timeout(2 * WITHIN, connection.send(&request))
        .await
        .expect("it ends by itself")
}

#[tokio::test]
async fn a_complete_answer_has_status_headers_and_body() {
    let answer = of(ServerAct::answer_with(418, "X-Pot: tea\r\n", "{\"a\":1}"))
        .await
        .expect("an answer");
    assert_eq!(answer.status, 418);
    assert_eq!(answer.header("x-pot"), Some("tea"));
    assert_eq!(&answer.body[..], b"{\"a\":1}");
}

#[tokio::test]
async fn an_unreachable_broker_was_sent_nothing() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    for url in [
        format!("http://{address}"),
        "http://no-such-host.invalid".to_owned(),
    ] {
        let connection = to(&url).build().expect("a URL");
        let outcome = connection.send(&Request::new(Method::Get, &["v2"])).await;
        let refused = matches!(outcome, Err(TransportError::NotSent(_)));
        assert!(refused, "{url}: {outcome:?}");
    }
}

/// Holds: P-008.
#[tokio::test]
async fn silence_after_a_request_is_a_timeout() {
    for event in [
        "",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{\"a\"",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{\"a\r\n",
    ] {
        let outcome = of_within(SOON, ServerAct::SayAndHang(event.as_bytes().to_vec())).await;
        assert_eq!(
            outcome.err(),
            Some(TransportError::TimedOut(SOON)),
            "{event:?}"
        );
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_was_closed() {
    for event in [
        "",
        "HTTP/1.1 200 OK\r\nContent-Le",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{\"a\"",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"a",
    ] {
        let outcome = of(ServerAct::Say(event.as_bytes().to_vec())).await;
        assert_eq!(outcome.err(), Some(TransportError::Closed), "{event:?}");
    }
}

#[tokio::test]
async fn an_answer_that_is_not_http_is_garbage() {
    for event in [
        "SSH-2.0-OpenSSH_9.2\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
        "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n12",
    ] {
        let outcome = of(ServerAct::Say(event.as_bytes().to_vec())).await;
        let garbage = matches!(outcome, Err(TransportError::Garbage(_)));
        assert!(garbage, "{event:?}: {outcome:?}");
    }
}

#[tokio::test]
async fn an_endless_answer_is_read_up_to_its_limit() {
    let chunk = format!("1000\r\n{}\r\n", "x".repeat(0x1000)).into_bytes();
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    let outcome = of(ServerAct::Repeat(head, chunk)).await;
    assert_eq!(outcome.err(), Some(TransportError::TooLong(BYTES_MAX)));
    // Without a length, the end of the connection would be the end of the body.
    let head = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_vec();
    let outcome = of(ServerAct::Repeat(head, vec![b'x'; 4096])).await;
    assert_eq!(outcome.err(), Some(TransportError::TooLong(BYTES_MAX)));
}

#[tokio::test]
async fn an_answer_that_announces_too_much_is_not_waited_for() {
    for length in ["65537", "999999999999999"] {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        let outcome = of(ServerAct::SayAndHang(head.into_bytes())).await;
        assert_eq!(
            outcome.err(),
            Some(TransportError::TooLong(BYTES_MAX)),
            "{length}"
        );
    }
}

#[tokio::test]
async fn bytes_beyond_the_announced_length_are_ignored() {
    let event = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}and something else";
    let answer = of(ServerAct::Say(event.as_bytes().to_vec())).await;
    assert_eq!(&answer.expect("an answer").body[..], b"{}");
}

#[tokio::test]
async fn endless_headers_are_cut_off() {
    let line = format!("X-More: {}\r\n", "x".repeat(4096)).into_bytes();
    let outcome = of(ServerAct::Repeat(b"HTTP/1.1 200 OK\r\n".to_vec(), line)).await;
    assert!(
        matches!(outcome, Err(TransportError::Garbage(_))),
        "{outcome:?}"
    );
}

/// A compressed body stays compressed: a few bytes of it could become gigabytes.
#[tokio::test]
async fn a_compressed_body_is_not_decompressed() {
    for encoding in ["gzip", "deflate", "br", "zstd"] {
        let headers = format!("Content-Encoding: {encoding}\r\n");
        let answer = of(ServerAct::answer_with(200, &headers, "\u{1f}packed")).await;
        assert_eq!(&answer.expect("an answer").body[..], b"\x1fpacked");
    }
}

/// Holds: P-154.
#[tokio::test]
async fn redirects_are_not_followed() {
    let elsewhere = RawServer::always(ServerAct::answer(200, "{}")).await;
    for status in [301, 302, 303, 307, 308] {
        let location = format!("Location: {}/v2/catalog\r\n", elsewhere.url());
        let answer = of(ServerAct::answer_with(status, &location, "")).await;
        assert_eq!(answer.expect("an answer").status, status);
    }
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn dot_segments_are_not_sent_as_ids() {
    let server = RawServer::always(ServerAct::answer(200, "{}")).await;
    let connection = to(&server.url()).build().expect("a connection");
    for id in [".", ".."] {
        let request = Request::new(Method::Delete, &["v2", "service_instances", id]);
        let outcome = connection.send(&request).await;
        let Err(TransportError::NotSent(sentence)) = outcome else {
            panic!("{outcome:?}");
        };
        assert!(sentence.contains("choose another id"), "{sentence}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn an_invalid_header_is_named_and_not_sent() {
    let server = RawServer::always(ServerAct::answer(200, "{}")).await;
    let connection = to(&server.url()).build().expect("a connection");
    for (name, value) in [("X-Note", "hush\r\nX-Forged: hush"), ("no name", "hush")] {
        let request = Request::new(Method::Get, &["v2"]).header(name, value);
        let outcome = connection.send(&request).await;
        let Err(TransportError::NotSent(sentence)) = outcome else {
            panic!("{outcome:?}");
        };
        assert!(sentence.contains(name), "{sentence}");
        assert!(!sentence.contains("hush"), "{sentence}");
    }
    assert!(server.requests().is_empty());
}

/// Holds: P-006.
#[tokio::test]
async fn every_other_id_is_sent_as_one_segment() {
    let server = RawServer::always(ServerAct::answer(200, "{}")).await;
    let connection = to(&server.url()).build().expect("a connection");
    for (id, sent) in [
        ("...", "..."),
        ("%2E", "%252E"),
        ("%2e%2e", "%252e%252e"),
        ("./a", ".%2Fa"),
        ("a/../b", "a%2F..%2Fb"),
        ("\\..\\", "%5C..%5C"),
        ("a?b#c", "a%3Fb%23c"),
        (" ", "%20"),
        ("\t\n", "%09%0A"),
        ("ä", "%C3%A4"),
        ("a;b=c@d:e", "a%3Bb%3Dc%40d%3Ae"),
    ] {
        let request = Request::new(Method::Get, &["v2", "service_instances", id]);
        connection.send(&request).await.expect("an answer");
        let line = format!("GET /v2/service_instances/{sent} HTTP/1.1\r\n");
        let received = server.requests().pop().expect("a request");
        assert!(received.starts_with(&line), "{id:?}: {received}");
    }
}

async fn authorization(
    connection: &Connection,
    server: &RawServer,
    proof: Proof,
) -> Option<String> {
    let request = Request::new(Method::Get, &["v2"]).proof(proof);
    connection.send(&request).await.expect("an answer");
    let received = server.requests().pop().expect("a request");
    let line = received
        .lines()
        .find(|line| line.to_lowercase().starts_with("authorization:"))?;
    Some(line.split_once(": ").expect("a value").1.to_owned())
}

#[tokio::test]
async fn each_request_sends_the_chosen_credentials() {
    let server = RawServer::always(ServerAct::answer(200, "{}")).await;
    let basic = to(&server.url()).basic("user", "s3cret".into()).build();
    let basic = basic.expect("a connection");
    let right = authorization(&basic, &server, Proof::Right).await;
    assert_eq!(right.as_deref(), Some("Basic dXNlcjpzM2NyZXQ="));
    let wrong = authorization(&basic, &server, Proof::Wrong).await;
    assert!(wrong.is_some() && wrong != right);
    assert_eq!(authorization(&basic, &server, Proof::Missing).await, None);

    let bearer = to(&server.url()).bearer("t0ken".into()).build();
    let bearer = bearer.expect("a connection");
    let right = authorization(&bearer, &server, Proof::Right).await;
    assert_eq!(right.as_deref(), Some("Bearer t0ken"));

    let anonymous = to(&server.url()).build().expect("a connection");
    assert!(!anonymous.is_authenticated() && bearer.is_authenticated());
    assert_eq!(authorization(&anonymous, &server, Proof::Right).await, None);
}

#[tokio::test]
async fn secrets_are_neither_printed_nor_in_errors() {
    let secret = || SecretString::from("hush\nhush");
    let server = RawServer::always(ServerAct::answer(200, "{}")).await;
    let connection = to(&server.url()).bearer(secret()).build();
    let connection = connection.expect("a connection");
    // A line break cannot be in a header.
    let outcome = connection.send(&Request::new(Method::Get, &["v2"])).await;
    assert!(
        matches!(outcome, Err(TransportError::NotSent(_))),
        "{outcome:?}"
    );
    let printed = format!("{connection:?} {outcome:?}");
    assert!(!printed.contains("hush"), "{printed}");
    let refusals = [
        to("http://user:hush@127.0.0.1").build().err(),
        to("http://127.0.0.1").identity(&secret()).err(),
        to("http://127.0.0.1").trust(b"hush").err(),
        to("http://127.0.0.1")
            .basic("us:er", secret())
            .build()
            .err(),
    ];
    for refusal in refusals {
        let sentence = refusal.expect("a refusal").to_string();
        assert!(!sentence.contains("hush"), "{sentence}");
    }
}
