//! Traces, as an OpenTelemetry collector receives them: one from the request to the hook.

use super::{ObservedBroker, until};
use mock_collector::{MockServer, Protocol, ServerHandle};
use serde_json::json;
use std::net::TcpListener;
use std::time::{Duration, Instant};

/// A trace that a platform began.
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// A span as received.
#[derive(Clone, Debug)]
struct ReceivedSpan {
    name: String,
    trace: String,
    id: String,
    parent: String,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn collector() -> ServerHandle {
    let server = MockServer::builder().protocol(Protocol::HttpBinary);
    server.start().await.expect("the collector starts")
}

async fn received(server: &ServerHandle) -> Vec<ReceivedSpan> {
    let read = |span: &mock_collector::TestSpan| {
        let span = span.span();
        ReceivedSpan {
            name: span.name.clone(),
            trace: hex(&span.trace_id),
            id: hex(&span.span_id),
            parent: hex(&span.parent_span_id),
        }
    };
    server
        .with_collector(|collector| collector.spans().iter().map(read).collect())
        .await
}

/// Waits until a span of this name, in this trace, has arrived.
async fn span(server: &ServerHandle, broker: &ObservedBroker, name: &str) -> ReceivedSpan {
    let poll = async || {
        let all = received(server).await;
        all.into_iter()
            .find(|it| it.name == name && it.trace == TRACE)
    };
    until(poll, || format!("no {name}: {:#?}", broker.lines())).await
}

fn traceparent() -> String {
    format!("00-{TRACE}-{PARENT}-01")
}

/// Variables that make a broker send its traces quickly to a collector.
fn variables(endpoint: &str) -> Vec<(&str, &str)> {
    vec![
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint),
        ("OTEL_BSP_SCHEDULE_DELAY", "50"),
    ]
}

#[tokio::test]
async fn one_trace_leads_from_the_request_to_the_hook() {
    let server = collector().await;
    let endpoint = format!("http://{}", server.addr());
    let folder = tempfile::tempdir().expect("a folder");
    let broker =
        ObservedBroker::start(folder.path(), &["--in-memory"], &variables(&endpoint)).await;
    let traceparent = traceparent();
    let headers = [("traceparent", traceparent.as_str())];
    assert_eq!(broker.provision("one", json!({}), &headers).await, 201);
    let request = span(&server, &broker, "PUT /v2/service_instances/{instance_id}").await;
    let operation = span(&server, &broker, "provision").await;
    let hook = span(&server, &broker, "hook provision").await;
    assert_eq!(request.parent, PARENT);
    assert_eq!(operation.parent, request.id);
    assert_eq!(hook.parent, operation.id);
}

#[tokio::test]
async fn a_run_after_a_restart_belongs_to_the_trace_of_its_request() {
    let server = collector().await;
    let endpoint = format!("http://{}", server.addr());
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["--db", "traces.db"];
    let first = ObservedBroker::start(folder.path(), &arguments, &variables(&endpoint)).await;
    let traceparent = traceparent();
    let headers = [("traceparent", traceparent.as_str())];
    let slow = json!({"delay_ms": 1000});
    let query = "?accepts_incomplete=true";
    assert_eq!(first.put("one", slow, &headers, query).await, 202);
    let request = span(&server, &first, "PUT /v2/service_instances/{instance_id}").await;
    drop(first);
    let second = ObservedBroker::start(folder.path(), &arguments, &variables(&endpoint)).await;
    let operation = span(&server, &second, "provision").await;
    assert_eq!(operation.parent, request.id);
}

#[tokio::test]
async fn a_missing_collector_slows_nothing() {
    // A port that accepts connections and never responds, which is worse than a closed one.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("http://{}", silent.local_addr().expect("an address"));
    let folder = tempfile::tempdir().expect("a folder");
    let mut broker =
        ObservedBroker::start(folder.path(), &["--in-memory"], &variables(&endpoint)).await;
    let began = Instant::now();
    for n in 0..20 {
        assert_eq!(
            broker.provision(&format!("id-{n}"), json!({}), &[]).await,
            201
        );
    }
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
    broker.signal("-TERM");
    let took = broker.ended().await;
    assert!(took < Duration::from_secs(15), "{took:?}");
}
