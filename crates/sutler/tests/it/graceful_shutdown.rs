//! SIGTERM to a broker under load: acknowledged requests are in the store afterwards, and the broker ends in
//! time.

use crate::process::Broker;
use reqwest::{Client, StatusCode};
use serde_json::json;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The default drain limit, plus some time for the process itself.
const DRAIN_WITHIN: Duration = Duration::from_secs(25);
/// Number of acknowledged requests before the signal.
const ENOUGH: usize = 200;
/// Number of clients that send them.
const CLIENTS: usize = 8;
/// Time limit of every wait.
const TIMEOUT: Duration = Duration::from_secs(60);

fn start(folder: &Path) -> Broker {
    Broker::start(folder, &["broker", "--no-auth", "--db", "stop.db"])
}

/// Requests an instance of the demo service; returns the status if there was a response.
async fn provision(client: &Client, broker: &str, id: &str, delay_ms: u64) -> Option<StatusCode> {
    let (service, plan) = offered(client, broker).await?;
    let body = json!({
        "service_id": service, "plan_id": plan, "organization_guid": "o", "space_guid": "s",
        "parameters": { "delay_ms": delay_ms },
    });
    let url = format!("http://{broker}/v2/service_instances/{id}");
    let request = client.put(url).header("X-Broker-API-Version", "2.17");
    let sent = request.json(&body).send().await.ok()?;
    // A partial response counts as none.
    let status = sent.status();
    sent.bytes().await.ok().map(|_| status)
}

/// The first service and plan of the catalog.
async fn offered(client: &Client, broker: &str) -> Option<(String, String)> {
    let url = format!("http://{broker}/v2/catalog");
    let request = client.get(url).header("X-Broker-API-Version", "2.17");
    let catalog: serde_json::Value = request.send().await.ok()?.json().await.ok()?;
    let service = &catalog["services"][0];
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    Some((text(&service["id"])?, text(&service["plans"][0]["id"])?))
}

#[tokio::test]
async fn a_signal_under_load_loses_no_acknowledged_request_and_ends_in_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let broker = start(folder.path());
    let address = broker.address().to_owned();
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let stop = std::sync::Arc::new(AtomicBool::new(false));
    for client_no in 0..CLIENTS {
        let (address, sender, stop) = (address.clone(), sender.clone(), stop.clone());
        tokio::spawn(async move {
            let client = Client::new();
            for n in 0.. {
                let id = format!("i-{client_no}-{n}");
                match provision(&client, &address, &id, 2).await {
                    Some(StatusCode::CREATED) => {
                        let _ = sender.send(id);
                    }
                    other if !stop.load(Ordering::SeqCst) => {
                        panic!("{other:?} before anybody asked it to stop")
                    }
                    _ => return,
                }
            }
        });
    }
    drop(sender);
    let mut acknowledged = Vec::new();
    while acknowledged.len() < ENOUGH {
        let next = tokio::time::timeout(TIMEOUT, receiver.recv()).await;
        acknowledged.push(next.expect("in time").expect("clients are at work"));
    }
    stop.store(true, Ordering::SeqCst);
    let signalled = Instant::now();
    broker.signal("TERM");
    let ended = tokio::task::spawn_blocking(move || broker.until_ended(TIMEOUT)).await;
    let ended = ended.expect("no panic").expect("it ends");
    assert!(
        signalled.elapsed() < DRAIN_WITHIN,
        "{:?}",
        signalled.elapsed()
    );
    assert!(ended.success(), "{ended}");
    while let Some(id) = receiver.recv().await {
        acknowledged.push(id);
    }
    let again = start(folder.path());
    let client = Client::new();
    for id in &acknowledged {
        // A new instance would be a 201.
        let found = provision(&client, again.address(), id, 2).await;
        assert_eq!(
            found,
            Some(StatusCode::OK),
            "{id} of {}",
            acknowledged.len()
        );
    }
}

#[tokio::test]
async fn a_second_signal_ends_the_broker_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let broker = start(folder.path());
    let address = broker.address().to_owned();
    let waiting = tokio::spawn(async move {
        let client = Client::new();
        provision(&client, &address, "slow", 45_000).await
    });
    let (client, address) = (Client::new(), broker.address().to_owned());
    let url = format!("http://{address}/v2/service_instances/slow/last_operation");
    let polled = async || {
        let request = client.get(&url).header("X-Broker-API-Version", "2.17");
        request.send().await.map(|answer| answer.status()).ok()
    };
    let busy = async {
        while polled().await != Some(StatusCode::OK) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, busy).await.expect("it runs");
    let signalled = Instant::now();
    broker.signal("TERM");
    broker.until_logged("draining");
    broker.signal("TERM");
    let ended = tokio::task::spawn_blocking(move || broker.until_ended(TIMEOUT)).await;
    ended.expect("no panic").expect("it ends");
    assert!(
        signalled.elapsed() < Duration::from_secs(10),
        "{:?}",
        signalled.elapsed()
    );
    waiting.abort();
}
