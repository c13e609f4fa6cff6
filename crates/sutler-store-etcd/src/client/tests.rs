//! Refusals of etcd, and members with a wrong clock. Not here: real members (`tests/it/faults.rs`).

use super::{Client, EtcdError, decide};
use crate::settings::EtcdSettings;
use crate::wire::{EtcdErrorBody, Range};
use jiff::fmt::rfc2822::DateTimePrinter;
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use sutler_journal::StoreTime;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

fn judged(code: i64, message: &str) -> EtcdError {
    decide(&EtcdErrorBody {
        code,
        message: message.to_owned(),
    })
}

#[test]
fn only_requests_without_effect_are_reported_as_not_done() {
    for (code, message) in [
        (3, "etcdserver: request is too large"),
        (7, "etcdserver: permission denied"),
        (8, "etcdserver: mvcc: database space exceeded"),
        (14, "etcdserver: no leader"),
    ] {
        let trouble = judged(code, message);
        assert!(matches!(trouble, EtcdError::NotDone(_)), "{message}");
    }
    for (code, message) in [
        (14, "etcdserver: request timed out"),
        (14, "etcdserver: leader changed"),
        (2, "anything"),
        (0, ""),
    ] {
        let trouble = judged(code, message);
        assert!(matches!(trouble, EtcdError::Unanswered(_)), "{message}");
    }
    let forgotten = judged(11, "etcdserver: mvcc: required revision has been compacted");
    assert!(matches!(forgotten, EtcdError::Compacted));
}

/// A gateway whose clock is ahead; every range is empty.
struct Gateway {
    endpoint: String,
    requests: Arc<AtomicUsize>,
}

impl Gateway {
    async fn ahead_by(ahead: SignedDuration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let endpoint = listener.local_addr().expect("an address").to_string();
        let requests = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                answer(connection, ahead).await;
            }
        });
        Self { endpoint, requests }
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }
}

/// Reads one request and answers it, with the time of this clock.
async fn answer(connection: TcpStream, ahead: SignedDuration) {
    let mut connection = BufReader::new(connection);
    let (mut line, mut length) = (String::new(), 0);
    while connection.read_line(&mut line).await.expect("a line") > 2 {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().expect("a number");
        }
        line.clear();
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body).await.expect("a body");
    let time = Timestamp::now() + ahead;
    let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&time);
    let response = format!(
        "HTTP/1.1 200 OK\r\ndate: {}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}",
        date.expect("a date")
    );
    let sent = connection.write_all(response.as_bytes()).await;
    sent.expect("a response");
}

async fn read(client: &Client) {
    let read = client.range(&Range::one(b"a".to_vec())).await;
    read.expect("a range");
}

fn is_right(client: &Client) -> bool {
    let here = StoreTime(Timestamp::now().as_microsecond());
    let time = client.clock.now();
    time.since(here).max(here.since(time)) < Duration::from_secs(60)
}

const HOURS: SignedDuration = SignedDuration::from_hours(5);

#[tokio::test]
async fn a_member_whose_date_contradicts_is_left_for_the_next_one() {
    let wrong = Gateway::ahead_by(HOURS).await;
    let right = Gateway::ahead_by(SignedDuration::ZERO).await;
    let endpoints = [&wrong, &right].map(|it| it.endpoint.clone());
    let client = Client::new(&EtcdSettings::new(endpoints.into())).expect("a client");
    read(&client).await;
    assert_eq!((wrong.requests(), right.requests()), (1, 0), "it answered");
    for _ in 0..3 {
        read(&client).await;
    }
    assert_eq!((wrong.requests(), right.requests()), (1, 3), "it was left");
    assert!(is_right(&client), "{:?}", client.clock.now());
}

#[tokio::test]
async fn a_member_whose_date_contradicts_is_used_while_no_other_one_answers() {
    let wrong = Gateway::ahead_by(HOURS).await;
    let closed = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let dead = closed.local_addr().expect("an address").to_string();
    drop(closed);
    let settings = EtcdSettings::new(vec![wrong.endpoint.clone(), dead]);
    let client = Client::new(&settings).expect("a client");
    for _ in 0..4 {
        read(&client).await;
    }
    assert_eq!(wrong.requests(), 4);
    assert_eq!(
        client.current.load(Ordering::Relaxed),
        0,
        "it is not left again"
    );
    assert!(is_right(&client), "{:?}", client.clock.now());
}
