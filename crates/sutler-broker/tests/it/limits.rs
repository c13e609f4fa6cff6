//! Limits of requests: excess requests are rejected, and others are served meanwhile.

use crate::fixture::server_port::{Port, read_to_end};
use crate::fixture::{AUTHORIZATION, WAIT_LIMIT};
use std::num::NonZeroU32;
use std::time::Duration;
use sutler_broker::{Broker, Limits, Platform, Rate};
use sutler_osb::OperationKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn limited(change: impl FnOnce(&mut Limits)) -> impl FnOnce(Broker) -> Broker {
    |broker| {
        broker.settings(|settings| {
            settings.limits.refusal_pause = Duration::from_millis(1);
            settings.drain = Duration::from_secs(2);
            change(&mut settings.limits);
        })
    }
}

fn request(line: &str, headers: &str, body: &str) -> String {
    format!(
        "{line} HTTP/1.1\r\nHost: x\r\nAuthorization: {AUTHORIZATION}\r\nConnection: close\r\n\
         X-Broker-API-Version: 2.17\r\n{headers}\r\n{body}"
    )
}

fn catalog() -> String {
    request("GET /v2/catalog", "", "")
}

fn provision(id: &str) -> String {
    let body =
        r#"{"service_id":"db-id","plan_id":"sync-id","organization_guid":"o","space_guid":"s"}"#;
    let headers = format!(
        "Content-Type: application/json\r\nContent-Length: {}\r\n",
        body.len()
    );
    request(&format!("PUT /v2/service_instances/{id}"), &headers, body)
}

/// Asserts this status and a `Retry-After` header.
#[track_caller]
fn has_retry_after(answer: &str, status: &str) {
    assert!(
        answer.starts_with(&format!("HTTP/1.1 {status} ")),
        "{answer}"
    );
    assert!(answer.to_lowercase().contains("retry-after: "), "{answer}");
    assert!(answer.contains("\"description\":"), "{answer}");
}

#[tokio::test]
async fn a_caller_over_its_rate_gets_retry_after() {
    let one = NonZeroU32::MIN;
    let rate = Rate::new(one, NonZeroU32::new(3).expect("not zero"));
    let limits = limited(|limits| limits.rate_per_caller = Some(rate));
    let other = Platform::at("/other").basic_auth("user", "s3cret");
    let port = Port::open(|broker| limits(broker).platform(other)).await;
    for _ in 0..3 {
        let answer = port.send(catalog().as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    has_retry_after(&port.send(catalog().as_bytes()).await, "429");
    // The limits of callers of two platforms are separate.
    let other = request("GET /other/v2/catalog", "", "");
    let answer = port.send(other.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    port.close().await;
}

#[tokio::test]
async fn excess_changes_are_shed_and_reads_are_answered() {
    let port = Port::open(limited(|limits| {
        limits.changes_at_once = 1;
        limits.queue_max = 0;
    }))
    .await;
    let gate = port.script.hold(OperationKind::Provision);
    let mut waiting = port.connect().await;
    let sent = waiting.write_all(provision("one").as_bytes()).await;
    sent.expect("it is taken");
    gate.reached().await;
    has_retry_after(&port.send(provision("two").as_bytes()).await, "503");
    let answer = port.send(catalog().as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    gate.open();
    let answer = read_to_end(&mut waiting).await;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    let answer = port.send(provision("two").as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    port.close().await;
}

#[tokio::test]
async fn concurrent_requests_of_one_caller_are_limited() {
    let port = Port::open(limited(|limits| limits.requests_per_caller = 1)).await;
    let gate = port.script.hold(OperationKind::Provision);
    let mut waiting = port.connect().await;
    let sent = waiting.write_all(provision("one").as_bytes()).await;
    sent.expect("it is taken");
    gate.reached().await;
    has_retry_after(&port.send(catalog().as_bytes()).await, "429");
    gate.open();
    let answer = read_to_end(&mut waiting).await;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    port.close().await;
}

#[tokio::test]
async fn long_paths_many_headers_and_large_heads_are_refused() {
    let port = Port::open(limited(|limits| {
        limits.uri_bytes_max = 1_000;
        limits.headers_max = 20;
        limits.header_bytes_max = 16 * 1024;
    }))
    .await;
    let path = format!("GET /v2/catalog?x={}", "y".repeat(2_000));
    let answer = port.send(request(&path, "", "").as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 414 "), "{answer}");
    let many: String = (0..50).map(|n| format!("h{n}: v\r\n")).collect();
    let answer = port
        .send(request("GET /v2/catalog", &many, "").as_bytes())
        .await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let large = format!("h: {}\r\n", "v".repeat(40_000));
    let answer = port
        .send(request("GET /v2/catalog", &large, "").as_bytes())
        .await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let answer = port.send(catalog().as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    port.close().await;
}

#[tokio::test]
async fn connections_of_one_address_are_limited() {
    let port = Port::open(limited(|limits| limits.connections_per_peer = 2)).await;
    let first = port.connect().await;
    let mut second = port.connect().await;
    let kept = catalog().replace("Connection: close\r\n", "");
    second
        .write_all(kept.as_bytes())
        .await
        .expect("it is taken");
    let mut byte = [0; 1];
    second
        .read_exact(&mut byte)
        .await
        .expect("an answer begins");
    let mut third = port.connect().await;
    assert_eq!(read_to_end(&mut third).await, "");
    drop(first);
    // The slot is free as soon as the server has noticed the end.
    let served = async {
        while !port
            .send(catalog().as_bytes())
            .await
            .starts_with("HTTP/1.1 200 ")
        {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(WAIT_LIMIT, served).await;
    waited.expect("a place comes free");
    port.close().await;
}

#[tokio::test]
async fn a_connection_without_requests_is_closed() {
    let idle = limited(|limits| limits.idle_within = Duration::from_millis(300));
    let first = Duration::from_millis(300);
    let port = Port::open(|broker| idle(broker).settings(|it| it.headers_within = first)).await;
    let mut stream = port.connect().await;
    let kept = catalog().replace("Connection: close\r\n", "");
    stream
        .write_all(kept.as_bytes())
        .await
        .expect("it is taken");
    let answer = read_to_end(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    // Only the preface of HTTP/2 and empty settings.
    let mut stream = port.connect().await;
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    stream.write_all(preface).await.expect("it is taken");
    read_to_end(&mut stream).await;
    port.close().await;
}

#[tokio::test]
async fn slow_senders_hold_no_slot() {
    let port = Port::open(limited(|limits| {
        limits.changes_at_once = 1;
        limits.queue_max = 0;
    }))
    .await;
    let mut slow: Vec<TcpStream> = Vec::new();
    for n in 0..20 {
        let mut stream = port.connect().await;
        let whole = provision(&format!("slow-{n}"));
        let most = &whole[..whole.len() - 10];
        stream
            .write_all(most.as_bytes())
            .await
            .expect("it is taken");
        slow.push(stream);
    }
    let answer = port.send(provision("quick").as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    drop(slow);
    port.close().await;
}
