//! Growth: the same requests with a thousand and with a million instances.

use crate::RunArgs;
use crate::broker::{self, PLAN, ResponseMode, SERVICE};
use crate::http_pairs::fresh_dir;
use crate::load::{self, Kind, LoadResult};
use crate::report::{bound, median, print_line};
use crate::subject::{PASSWORD, Server, Subject, USER};
use axum::body::Body;
use base64::Engine as _;
use hyper::Request;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tower::ServiceExt as _;

use crate::load::BoxError;

/// The small size.
const FEW: usize = 1000;
/// Concurrent provisions while filling.
const FILLERS: usize = 512;

pub(crate) async fn measure(args: &RunArgs) -> Result<(), BoxError> {
    print_line(&format!(
        "\n-- growth: {FEW} and {} instances --",
        args.instances
    ));
    let few = fresh_dir(&args.dir.join("few"))?;
    let many = fresh_dir(&args.dir.join("many"))?;
    fill(&few, FEW).await?;
    fill(&many, args.instances).await?;
    let small = Server::start(Subject::Broker, &few).await?;
    let large = Server::start(Subject::Broker, &many).await?;
    bound(
        &format!("ready, {} instances", args.instances),
        large.ready.as_secs_f64() * 1e3,
        100.0,
        "ms",
    );
    for kind in [Kind::Poll, Kind::Provision] {
        let (mut p50, mut p99) = (Vec::new(), Vec::new());
        for _ in 0..args.pairs {
            // Few connections: this is about the cost of a request, not about queueing.
            let once = |server: &Server, dir: &Path| {
                load::spawn(
                    kind,
                    server.port,
                    args.seconds as f64,
                    4,
                    Some(&dir.join("list.txt")),
                )
            };
            let (a, b): (LoadResult, LoadResult) = (once(&small, &few)?, once(&large, &many)?);
            p50.push(b.p50_us / a.p50_us);
            p99.push(b.p99_us / a.p99_us);
        }
        bound(
            &format!("{kind:?}: p50, many / few"),
            median(&p50),
            1.2,
            "×",
        );
        bound(
            &format!("{kind:?}: p99, many / few"),
            median(&p99),
            2.0,
            "×",
        );
    }
    Ok(())
}

/// Provisions this many instances in this process, without sockets, and lists some to poll.
async fn fill(dir: &Path, instances: usize) -> Result<(), BoxError> {
    let began = Instant::now();
    let running = broker::start(dir, ResponseMode::AtOnce).await?;
    let router = running.router();
    let next = Arc::new(AtomicUsize::new(0));
    let login = base64::engine::general_purpose::STANDARD.encode(format!("{USER}:{PASSWORD}"));
    let mut tasks = Vec::new();
    for _ in 0..FILLERS {
        let (router, next, login) = (router.clone(), next.clone(), login.clone());
        tasks.push(tokio::spawn(async move {
            let mut listed = String::new();
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= instances {
                    return listed;
                }
                let id = uuid::Uuid::new_v4();
                let listing = instances / FEW == 0 || n % (instances / FEW) == 0;
                let answered = provision(&router, &id.to_string(), &login, listing).await;
                if let Some(operation) = answered.filter(|_| listing) {
                    listed.push_str(&format!("{id} {operation}\n"));
                }
            }
        }));
    }
    let mut list = String::new();
    for task in tasks {
        list.push_str(&task.await?);
    }
    std::fs::write(dir.join("list.txt"), list)?;
    running.shut_down().await;
    print_line(&format!(
        "filled {instances} instances in {:.0} s",
        began.elapsed().as_secs_f64()
    ));
    Ok(())
}

async fn provision(router: &axum::Router, id: &str, login: &str, wait: bool) -> Option<String> {
    let query = if wait { "?accepts_incomplete=true" } else { "" };
    let body = format!(
        "{{\"service_id\":\"{SERVICE}\",\"plan_id\":\"{PLAN}\",\"organization_guid\":\"o\",\"space_guid\":\"s\"}}"
    );
    let request = Request::put(format!("/v2/service_instances/{id}{query}"))
        .header("X-Broker-API-Version", "2.17")
        .header("Authorization", format!("Basic {login}"))
        .body(Body::from(body))
        .ok()?;
    let response = router.clone().oneshot(request).await.ok()?;
    assert!(response.status().is_success(), "{}", response.status());
    let bytes = axum::body::to_bytes(response.into_body(), 4096)
        .await
        .ok()?;
    let json: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
    json.get("operation")
        .and_then(|it| it.as_str())
        .map(str::to_owned)
}
