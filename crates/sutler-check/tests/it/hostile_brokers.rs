//! Malicious brokers, and brokers that break HTTP: the check always ends in a bounded
//! time with a report that names the problem. Uses raw sockets, because no HTTP library would do this.
//!
//! `hostile_brokers/server.rs` is the server; each test defines its behaviour per connection.

mod server;

use serde_json::{Value, json};
use server::{Hostile, answered, head};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutler_check::{Check, Level, Options, Report, Verdict};
use sutler_client::wire::Connection;
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinSet;

/// Time limit of one exchange.
const ANSWER_WITHIN: Duration = Duration::from_millis(300);
/// Time limit of an operation, and of the clean-up.
const OPERATION_WITHIN: Duration = Duration::from_millis(250);
/// Time limit of a whole check of such a broker.
const BOUND: Duration = Duration::from_secs(20);
/// Maximum length of an answer.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// Runs a check; fails if that takes too long.
async fn checked(hostile: &Hostile) -> Report {
    let connection = Connection::to(hostile.url())
        .answer_within(ANSWER_WITHIN)
        .answer_bytes_max(ANSWER_BYTES_MAX);
    checked_over(connection.build().unwrap()).await
}

async fn checked_over(connection: Connection) -> Report {
    let options = Options {
        operation_within: OPERATION_WITHIN,
        clean_up_within: OPERATION_WITHIN * 2,
        ..Options::default()
    };
    let began = Instant::now();
    let check = Check::of(connection).options(options).run();
    let report = tokio::time::timeout(BOUND, check).await;
    eprintln!("took {:?}", began.elapsed());
    report.expect("the check ends").unwrap()
}

/// Messages of the failures of a case.
fn said(report: &Report, case: &str) -> Vec<String> {
    let of = report.failures(Level::Must);
    let of = of.filter(|it| it.case.name == case);
    of.filter_map(|it| match &it.verdict {
        Verdict::Fail { said, .. } => Some(said.clone()),
        Verdict::Pass | Verdict::NotApplicable(_) => None,
    })
    .collect()
}

/// Asserts that a message of this case contains these words.
#[track_caller]
fn names(report: &Report, case: &str, words: &str) {
    let said = said(report, case);
    assert!(
        said.iter().any(|it| it.contains(words)),
        "{case} should say {words:?}: {said:?}"
    );
}

fn catalog() -> Value {
    json!({ "services": [{
        "id": "service", "name": "service", "description": "Hostile", "bindable": true,
        "plans": [{ "id": "plan", "name": "plan", "description": "Hostile" }],
    }]})
}

#[tokio::test]
async fn a_broker_that_never_answers_is_named() {
    let hostile =
        Hostile::start(|mut stream| async move { while !head(&mut stream).await.is_empty() {} })
            .await;
    names(
        &checked(&hostile).await,
        "answers",
        "no whole answer within",
    );
}

#[tokio::test]
async fn a_broker_that_hangs_behind_its_catalog_is_named() {
    let hostile = Hostile::start(|mut stream| async move {
        let head = head(&mut stream).await;
        if head.starts_with("GET /v2/catalog") {
            answered(&mut stream, 200, &catalog()).await;
        } else {
            std::future::pending::<()>().await;
        }
    })
    .await;
    let report = checked(&hostile).await;
    names(&report, "answers", "no whole answer within");
    assert!(said(&report, "catalog").is_empty());
}

#[tokio::test]
async fn a_broker_that_does_not_speak_http_is_named() {
    let hostile = Hostile::start(|mut stream| async move {
        head(&mut stream).await;
        let _ = stream
            .write_all(b"\x00\x01\xff nothing that you know\r\n\r\n")
            .await;
    })
    .await;
    names(&checked(&hostile).await, "answers", "not HTTP");
}

#[tokio::test]
async fn a_broker_that_hangs_up_is_named() {
    let at_once = Hostile::start(|stream| async move { drop(stream) }).await;
    names(&checked(&at_once).await, "answers", "closed");
    let after_the_request = Hostile::start(|mut stream| async move {
        head(&mut stream).await;
    })
    .await;
    names(&checked(&after_the_request).await, "answers", "closed");
    let in_the_middle = Hostile::start(|mut stream| async move {
        head(&mut stream).await;
        let part = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"services\":";
        let _ = stream.write_all(part).await;
    })
    .await;
    names(&checked(&in_the_middle).await, "answers", "closed");
}

#[tokio::test]
async fn an_answer_without_end_is_cut_off() {
    let chunks = Hostile::start(|mut stream| async move {
        head(&mut stream).await;
        let begin = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let _ = stream.write_all(begin).await;
        let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
        while stream.write_all(chunk.as_bytes()).await.is_ok() {}
    })
    .await;
    names(&checked(&chunks).await, "answers", "longer than");
    let headers = Hostile::start(|mut stream| async move {
        head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n").await;
        let header = format!("X-More: {}\r\n", "a".repeat(1000));
        while stream.write_all(header.as_bytes()).await.is_ok() {}
    })
    .await;
    assert!(!said(&checked(&headers).await, "answers").is_empty());
    let interim = Hostile::start(|mut stream| async move {
        head(&mut stream).await;
        let interim = b"HTTP/1.1 100 Continue\r\n\r\n";
        while stream.write_all(interim).await.is_ok() {}
    })
    .await;
    assert!(!said(&checked(&interim).await, "answers").is_empty());
}

#[tokio::test]
async fn an_answer_that_drips_is_cut_off() {
    let hostile = Hostile::start(|mut stream| async move {
        head(&mut stream).await;
        let begin = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n";
        let mut sent = stream.write_all(begin).await;
        let mut pace = tokio::time::interval(Duration::from_millis(20));
        while sent.is_ok() {
            pace.tick().await;
            sent = stream.write_all(b" ").await;
        }
    })
    .await;
    names(
        &checked(&hostile).await,
        "answers",
        "no whole answer within",
    );
}

#[tokio::test]
async fn an_answer_of_ten_megabytes_is_not_stored() {
    let hostile = Hostile::start(|mut stream| async move {
        head(&mut stream).await;
        let mut all = catalog();
        all["services"][0]["description"] = Value::String("x".repeat(10_000_000));
        answered(&mut stream, 200, &all).await;
    })
    .await;
    names(
        &checked(&hostile).await,
        "answers",
        "longer than 1048576 bytes",
    );
}

#[tokio::test]
async fn a_body_that_is_not_json_is_named() {
    let bodies: [Vec<u8>; 4] = [
        "[".repeat(500_000).into_bytes(),
        "{\"services\":".repeat(50_000).into_bytes(),
        b"{\"services\": [\"\xff\xfe\"]}".to_vec(),
        Vec::new(),
    ];
    for body in bodies {
        let hostile = Hostile::start(move |mut stream| {
            let body = body.clone();
            async move {
                head(&mut stream).await;
                server::raw(&mut stream, 200, &body).await;
            }
        })
        .await;
        assert!(!said(&checked(&hostile).await, "catalog").is_empty());
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let hostile = Hostile::start(|mut stream| async move {
        let head = head(&mut stream).await;
        if head.contains("elsewhere") {
            answered(&mut stream, 200, &catalog()).await;
        } else {
            let moved = b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(moved).await;
        }
    })
    .await;
    names(&checked(&hostile).await, "catalog", "302");
}

#[tokio::test]
async fn a_catalog_of_a_hundred_thousand_plans_is_not_tested_and_that_is_reported() {
    let plan =
        |n: u32| json!({ "id": format!("p{n}"), "name": format!("p{n}"), "description": "x" });
    let mut all = catalog();
    all["services"][0]["plans"] = (0..100_000).map(plan).collect();
    let all = Arc::new(all.to_string());
    let hostile = Hostile::start(move |mut stream| {
        let all = all.clone();
        async move {
            head(&mut stream).await;
            server::raw(&mut stream, 200, all.as_bytes()).await;
        }
    })
    .await;
    let connection = Connection::to(hostile.url()).answer_bytes_max(64 * 1024 * 1024);
    let report = checked_over(connection.build().unwrap()).await;
    let not_walked = report.not_walked.expect("it is told");
    assert!(not_walked.contains("100000 plans"), "{not_walked}");
}

#[tokio::test]
async fn names_and_ids_that_would_steer_a_terminal_are_only_data() {
    let hostile = Hostile::start(|mut stream| async move {
        let head = head(&mut stream).await;
        if !head.starts_with("GET /v2/catalog") {
            return answered(
                &mut stream,
                400,
                &json!({ "description": "\u{1b}[2J\u{0}" }),
            )
            .await;
        }
        let mut all = catalog();
        all["services"][0]["name"] = json!("\u{1b}[31mred\u{0}\r\n");
        all["services"][0]["id"] = json!("../../\u{0}\r\nHost: elsewhere\r\n\r\n");
        all["services"][0]["plans"][0]["id"] = json!("\u{202e}\u{7f}?#&=%00");
        answered(&mut stream, 200, &all).await;
    })
    .await;
    let report = checked(&hostile).await;
    assert!(report.failures(Level::Must).count() > 0);
}

/// A broker whose operations never end, with this `Retry-After` for polls.
async fn endless(retry_after: &'static str) -> Report {
    let hostile = Hostile::start(move |mut stream| async move {
        let head = head(&mut stream).await;
        let body = match head.split(' ').next() {
            Some("GET") if head.contains("/v2/catalog") => catalog(),
            Some("GET") => json!({ "state": "in progress" }),
            _ => json!({ "operation": "o".repeat(20_000) }),
        };
        let status = if head.starts_with("GET") { 200 } else { 202 };
        let header = format!("Retry-After: {retry_after}\r\n");
        server::with_header(&mut stream, status, &header, body.to_string().as_bytes()).await;
    })
    .await;
    checked(&hostile).await
}

#[tokio::test]
async fn an_operation_without_end_and_waits_without_end_are_given_up() {
    let waits = ["0", "1", "100000000", "18446744073709551615", "-1", "soon"];
    let mut checks: JoinSet<_> = waits
        .into_iter()
        .map(async |it| (it, endless(it).await))
        .collect();
    let mut requests = BTreeMap::new();
    while let Some(checked) = checks.join_next().await {
        let (wait, report) = checked.unwrap();
        assert!(report.failures(Level::Must).count() > 0, "{wait}");
        assert!(!report.left_behind.is_empty(), "{wait}");
        assert_eq!(report.not_walked, None, "{wait}");
        requests.insert(wait, report.requests);
    }
    // `Retry-After: 0` must not lead to polls without a pause.
    assert!(requests["0"] <= 2 * requests["soon"], "{requests:?}");
}

#[tokio::test]
async fn one_answer_to_everything_is_named() {
    let statuses = [
        100, 199, 200, 201, 202, 204, 304, 400, 404, 410, 422, 500, 599,
    ];
    let bodies = [json!({}), json!([]), json!(null), json!("x"), catalog()];
    let pairs = statuses
        .iter()
        .flat_map(|it| bodies.iter().map(|body| (*it, body.clone())));
    for (status, body) in pairs {
        let told = format!("{status} {body}");
        let hostile = Hostile::start(move |mut stream| {
            let body = body.clone();
            async move {
                head(&mut stream).await;
                answered(&mut stream, status, &body).await;
            }
        })
        .await;
        let report = checked(&hostile).await;
        assert!(report.failures(Level::Must).count() > 0, "{told}");
        let fault = report.not_walked.filter(|it| it.contains("itself"));
        assert_eq!(fault, None, "{told}");
    }
}
