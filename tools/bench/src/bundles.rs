//! Runs of bundles as processes: the broker's own share of the work, the delay before an action starts, and
//! the cost of a waiting run.
//!
//! The broker under measurement is [`serve`]; the bundles are written by `bundles/fixture.rs`.

mod fixture;

use crate::load::{BoxError, UserConnection};
use crate::report::{bound, median, print_line};
use crate::subject::{PASSWORD, Server, Subject, USER};
use crate::{http_pairs, machine};
use clap::Args;
use fixture::{BARE, BenchBundle, BundleFixture, HELLO, STAMP, WAITS};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use sutler_broker::Broker;
use sutler_bundle::RunLimits;
use sutler_bundle_service::{
    BundleFolders, BundleService, OfferSettings, Runners, ServiceParts, VersionStore,
};
use sutler_journal::KeyRing;
use sutler_runner::{ProcessRunner, ProcessSettings};
use sutler_store_sqlite::SqliteStore;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Interval of polls.
const POLL_EVERY: Duration = Duration::from_millis(500);
/// Time limit of a whole measurement.
const PATIENCE: Duration = Duration::from_secs(300);

/// Sizes of the measurement.
#[derive(Args)]
pub(crate) struct BundleArgs {
    /// A directory on a real disk, which users of runs can enter; tmpfs is refused
    #[arg(long, default_value = "target/bench-data")]
    dir: PathBuf,
    /// Provisions at the same time
    #[arg(long, default_value_t = 200)]
    provisions: usize,
    /// Starts on an idle broker
    #[arg(long, default_value_t = 50)]
    starts: usize,
}

/// Serves the bundles of a directory.
pub(crate) async fn serve(port: u16, dir: &Path) -> Result<(), BoxError> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let work = dir.join("work");
    let version_store = Arc::new(VersionStore::open(&work)?);
    let roots = vec![dir.join("bundles")];
    let snapshot =
        Arc::new(BundleFolders::new(roots, version_store.clone(), OfferSettings::default()).look());
    if let Some(fault) = snapshot.faults.first() {
        return Err(fault.clone().into());
    }
    let service = Arc::new(BundleService::new(ServiceParts {
        version_store,
        runners: Arc::new(Runners {
            processes: Arc::new(ProcessRunner::open(ProcessSettings::new(work))?),
            containers: None,
        }),
        secrets: Vec::new(),
        limits: RunLimits::default(),
        share_provision_credentials: false,
        host: None,
    }));
    service.offer(snapshot.clone());
    let store = SqliteStore::open(dir.join("broker.db")).await?;
    let running = Broker::new(snapshot.catalog().map_err(|it| it.to_string())?)
        .other_services(service.clone())
        .store(store, KeyRing::file(dir.join("broker.key"))?)
        .settings(|settings| {
            // One user sends all requests.
            settings.limits.rate_per_caller = None;
            settings.limits.requests_per_caller = 4_096;
            settings.limits.changes_at_once = 4_096;
        })
        .basic_auth(USER, PASSWORD)
        .start()
        .await?;
    let operation_lookup = Arc::new(running.clone());
    tokio::join!(
        service.reap(operation_lookup),
        running.serve(listener, std::future::pending())
    );
    Ok(())
}

pub(crate) async fn measure(args: BundleArgs) -> Result<(), BoxError> {
    std::fs::create_dir_all(&args.dir)?;
    machine::describe(&args.dir)?;
    small_supervisor()?;
    print_line("\n-- bundles as processes --");
    let fixture = BundleFixture::new(&http_pairs::fresh_dir(&args.dir.join("bundles"))?)?;
    let server = Server::start(Subject::Bundles, fixture.dir()).await?;
    starts(&fixture, &server, args.starts).await?;
    for bundle in [HELLO, BARE] {
        shares(&fixture, &server, &bundle, args.provisions).await?;
    }
    drop(server);
    let fixture = BundleFixture::new(&http_pairs::fresh_dir(&args.dir.join("bundles"))?)?;
    let server = Server::start(Subject::Bundles, fixture.dir()).await?;
    waits(&fixture, &server, args.provisions).await
}

/// Hundreds of supervisors wait, so they use the small executable if it is built; the large one does the same.
fn small_supervisor() -> Result<(), BoxError> {
    let small = std::env::current_exe()?.with_file_name("sutler-supervisor");
    match small.is_file() {
        true => Ok(()),
        false => Err(
            "sutler-supervisor is not beside this: cargo build --profile bench -p sutler-runner"
                .into(),
        ),
    }
}

/// Time from the acceptance of an operation to its action, one after the other on an idle broker.
async fn starts(fixture: &BundleFixture, server: &Server, count: usize) -> Result<(), BoxError> {
    let (mut from_request, mut from_answer) = (Vec::new(), Vec::new());
    let mut line = UserConnection::to(server.port).await.map_err(as_text)?;
    for nth in 0..=count {
        let sent = now_ms();
        let operation = accept(&mut line, &STAMP, &format!("s{nth}"))
            .await
            .map_err(as_text)?;
        let answered_at = now_ms();
        done(
            &mut line,
            &format!("s{nth}"),
            &operation,
            Duration::from_millis(20),
        )
        .await
        .map_err(as_text)?;
        let stamp = fixture.stamp(&operation)?;
        // The first one warms up.
        if nth > 0 {
            from_request.push(stamp - sent);
            from_answer.push(stamp - answered_at);
        }
    }
    let p95 = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() * 95 / 100]
    };
    bound(
        "202 to the action, median",
        median(&from_answer),
        20.0,
        "ms",
    );
    bound("202 to the action, p95", p95(&mut from_answer), 20.0, "ms");
    bound(
        "request to the action, median",
        median(&from_request),
        20.0,
        "ms",
    );
    bound(
        "request to the action, p95",
        p95(&mut from_request),
        20.0,
        "ms",
    );
    Ok(())
}

/// Processor time of the broker, compared with that of its children.
async fn shares(
    fixture: &BundleFixture,
    server: &Server,
    of: &BenchBundle,
    count: usize,
) -> Result<(), BoxError> {
    let before = (server.cpu_micros(), server.cpu_micros_of_children());
    let began = std::time::Instant::now();
    let mut provisions = JoinSet::new();
    for nth in 0..count {
        let (port, of) = (server.port, *of);
        provisions.spawn(async move {
            let mut line = UserConnection::to(port).await?;
            let id = format!("{}{nth}", of.name);
            let operation = accept(&mut line, &of, &id).await?;
            done(&mut line, &id, &operation, POLL_EVERY).await
        });
    }
    while let Some(ended) = provisions.join_next().await {
        ended?.map_err(as_text)?;
    }
    let took = began.elapsed().as_secs_f64();
    fixture.until_no_run_is_left(PATIENCE).await?;
    let own = server.cpu_micros() - before.0;
    let children = server.cpu_micros_of_children() - before.1;
    let each = |micros: f64| micros / 1e3 / count as f64;
    print_line(&format!(
        "{count} provisions of {}: {took:.1} s; processor time of each: broker {:.2} ms, all else {:.2} ms",
        of.name,
        each(own),
        each(children)
    ));
    let what = format!("the broker's share, {}", of.name);
    bound(&what, own / (own + children) * 100.0, 10.0, "%");
    Ok(())
}

/// Cost of a waiting run: memory of its supervisor, and growth of the broker.
async fn waits(fixture: &BundleFixture, server: &Server, count: usize) -> Result<(), BoxError> {
    let mut line = UserConnection::to(server.port).await.map_err(as_text)?;
    for nth in 0..5 {
        let id = format!("warm{nth}");
        let operation = accept(&mut line, &BARE, &id).await.map_err(as_text)?;
        done(&mut line, &id, &operation, Duration::from_millis(20))
            .await
            .map_err(as_text)?;
    }
    let before = server.resident_mb() * 1024.0;
    let mut operations = Vec::with_capacity(count);
    for nth in 0..count {
        let id = format!("w{nth}");
        let operation = accept(&mut line, &WAITS, &id).await.map_err(as_text)?;
        operations.push((id, operation));
    }
    fixture.until_waiting(count, PATIENCE).await?;
    let supervisors = fixture::private_kb_of_supervisors(server.id());
    let grown = (server.resident_mb() * 1024.0 - before) / count as f64;
    fixture.let_go()?;
    for (id, operation) in &operations {
        done(&mut line, id, operation, POLL_EVERY)
            .await
            .map_err(as_text)?;
    }
    fixture.until_no_run_is_left(PATIENCE).await?;
    if supervisors.len() != count {
        return Err(format!("{} supervisors were seen of {count}", supervisors.len()).into());
    }
    let each = supervisors.iter().sum::<f64>() / count as f64;
    print_line(&format!(
        "{count} runs that wait: supervisor {each:.0} kB each, the broker grows by {grown:.0} kB each"
    ));
    bound("memory of a run that waits", each + grown, 200.0, "kB");
    Ok(())
}

fn as_text(fault: BoxError) -> BoxError {
    fault.to_string().into()
}

fn now_ms() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64() * 1e3
}

/// Requests an instance; returns the operation.
async fn accept(line: &mut UserConnection, of: &BenchBundle, id: &str) -> Result<String, BoxError> {
    let body = format!(
        "{{\"service_id\":\"{}\",\"plan_id\":\"{}\",\"organization_guid\":\"o\",\"space_guid\":\"s\"}}",
        of.service, of.plan
    );
    let start = format!("PUT /v2/service_instances/{id}?accepts_incomplete=true");
    let (status, text) = line.send(&start, &body).await?;
    let json: serde_json::Value = serde_json::from_str(&text)?;
    match (status, json["operation"].as_str()) {
        (202, Some(operation)) => Ok(operation.to_owned()),
        _ => Err(format!("a provision was answered {status}: {text}").into()),
    }
}

/// Polls until it has succeeded.
async fn done(
    line: &mut UserConnection,
    id: &str,
    operation: &str,
    every: Duration,
) -> Result<(), BoxError> {
    let start = format!("GET /v2/service_instances/{id}/last_operation?operation={operation}");
    let began = std::time::Instant::now();
    while began.elapsed() < PATIENCE {
        tokio::time::sleep(every).await;
        let (_, text) = line.send(&start, "").await?;
        let json: serde_json::Value = serde_json::from_str(&text)?;
        match json["state"].as_str() {
            Some("in progress") => {}
            Some("succeeded") => return Ok(()),
            _ => return Err(format!("a provision did not succeed: {text}").into()),
        }
    }
    Err("a provision did not end".into())
}
