//! Cost of a refresh of a large registry, with store and catalog: a real `sutler broker` on SQLite, compared with
//! a bare loop of the same requests in the same run.
//!
//! Twice: images in Debian's docker-registry (`registries/test_registry.rs`), where every digest needs a request, and
//! an index whose list contains all versions (`registries/index_server.rs`). The broker is the executable in the
//! directory of this one (`registries/broker.rs`). The effect on users is the time of `GET /v2/catalog`
//! (`registries/catalog_latency.rs`), with and without a refresh, in turns; for a registry also while another client
//! sends the same requests, because on a small machine the registry's own load has an effect, too.

mod broker;
mod catalog_latency;
mod index_server;
mod test_registry;

use crate::http_pairs::fresh_dir;
use crate::machine;
use crate::report::{bound, median, print_line};
use broker::Broker;
use catalog_latency::{CatalogTimes, CatalogWatch};
use index_server::IndexServer;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use test_registry::LargeRegistry;

use crate::load::BoxError;

/// The goal: a refresh with nothing changed, as a multiple of the bare loop.
const GOAL: f64 = 1.3;
/// The same for a listing with versions, in seconds.
const GOAL_SECONDS: f64 = 3.0;
/// Maximum memory of the broker, in MB.
const MEMORY_MB: f64 = 100.0;
/// Limits of the effect of a refresh on users: multiples of the time without one.
const GOAL_P50: f64 = 1.1;
const GOAL_P99: f64 = 2.0;
/// Refreshes of an index that are measured together: each takes part of a second.
const INDEX_REFRESHES: usize = 50;

/// Sizes and repetitions.
#[derive(clap::Args, Clone)]
pub(crate) struct RegistryArgs {
    /// A directory on a real disk; tmpfs is refused
    #[arg(long, default_value = "target/bench-data")]
    dir: PathBuf,
    /// Images in the registry
    #[arg(long, default_value_t = 10_000)]
    images: usize,
    /// Images that change
    #[arg(long, default_value_t = 100)]
    changed: usize,
    /// Rounds of a bare loop, a quiet time and a refresh
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Have the registry run at the same priority as the broker, in place of the lowest
    #[arg(long)]
    beside: bool,
    /// Only the part whose name contains this word: images, index
    #[arg(long, default_value = "")]
    only: String,
}

/// Registry that another client scans.
#[derive(clap::Args)]
pub(crate) struct BareArgs {
    #[arg(long)]
    url: String,
    #[arg(long)]
    images: usize,
}

/// (internal) Requests everything from a registry once, in a separate process.
pub(crate) async fn bare(args: BareArgs) -> Result<(), BoxError> {
    let took = test_registry::bare_loop(&args.url, args.images).await?;
    print_line(&took.as_secs_f64().to_string());
    Ok(())
}

/// Measures, and prints the results.
pub(crate) async fn measure(args: RegistryArgs) -> Result<(), BoxError> {
    std::fs::create_dir_all(&args.dir)?;
    machine::describe(&args.dir)?;
    if "images".contains(&args.only) {
        images(&args).await?;
    }
    if "index".contains(&args.only) {
        of_index(&args).await?;
    }
    Ok(())
}

async fn images(args: &RegistryArgs) -> Result<(), BoxError> {
    let count = args.images;
    print_line(&format!("\n-- {count} images in a registry --"));
    let dir = fresh_dir(&args.dir.join("images"))?;
    let registry = LargeRegistry::open(count, args.beside)?;
    let url = registry.url();
    let block = |url: &str| format!("{{type: oci, name: large, url: '{url}'}}");
    let broker = first(&dir, &block(&url), args).await?;
    print_line(&format!(
        "the catalog has {:.1} MB",
        broker.catalog_mb().await?
    ));
    bound(
        "most memory, reading all of them",
        broker.peak_mb(),
        MEMORY_MB,
        "MB",
    );
    drop(broker);

    let broker = Broker::start(&dir, &block(&url)).await?;
    print_line(&format!(
        "started again in {:.2} s",
        broker.ready.as_secs_f64()
    ));
    broker.settled().await?;
    let (mut loops, mut refreshes, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let mut times = CatalogTimes::default();
    for round in 0..=args.rounds {
        let bare = test_registry::bare_loop(&url, count).await?;
        let took = broker.refresh().await?;
        // The first round warms up.
        if round > 0 {
            loops.push(bare.as_secs_f64());
            refreshes.push(took.as_secs_f64());
            ratios.push(took.as_secs_f64() / bare.as_secs_f64());
            noticed(&broker, &registry, count, took, &mut times).await?;
        }
    }
    print_line(&format!(
        "bare loop {:.2} s, refresh {:.2} s",
        median(&loops),
        median(&refreshes)
    ));
    bound(
        "refresh, nothing changed / bare loop",
        median(&ratios),
        GOAL,
        "×",
    );
    print_times(&times);
    registry.change(0..args.changed)?;
    let took = broker.refresh().await?;
    print_line(&format!(
        "refresh, {} changed: {:.2} s",
        args.changed,
        took.as_secs_f64()
    ));
    bound(
        "most memory, all known at the start",
        broker.peak_mb(),
        MEMORY_MB,
        "MB",
    );
    drop(broker);
    counts(&dir, &registry, args).await
}

/// Counts the requests of a refresh, by a proxy with a delay.
async fn counts(
    dir: &std::path::Path,
    registry: &LargeRegistry,
    args: &RegistryArgs,
) -> Result<(), BoxError> {
    let front = registry.front();
    let block = format!("{{type: oci, name: large, url: '{}'}}", front.url());
    let broker = Broker::start(dir, &block).await?;
    broker.settled().await?;
    drop(front.requests());
    let manifests = |request_log: &[String], method: &str| {
        let is = |it: &&String| it.starts_with(method) && it.contains("/manifests/");
        request_log.iter().filter(is).count()
    };
    broker.refresh().await?;
    let request_log = front.requests();
    let (heads, gets) = (
        manifests(&request_log, "HEAD"),
        manifests(&request_log, "GET"),
    );
    print_line(&format!(
        "nothing changed: {} questions, {heads} of them HEAD",
        request_log.len()
    ));
    bound("manifests read, nothing changed", gets as f64, 0.0, "");
    registry.change(args.changed..2 * args.changed)?;
    broker.refresh().await?;
    let gets = manifests(&front.requests(), "GET");
    bound(
        "manifests read, some changed",
        gets as f64,
        args.changed as f64,
        "",
    );
    Ok(())
}

async fn of_index(args: &RegistryArgs) -> Result<(), BoxError> {
    let count = args.images;
    print_line(&format!("\n-- {count} bundles in an index --"));
    let dir = fresh_dir(&args.dir.join("index"))?;
    let index = IndexServer::open(count)?;
    let block = format!("{{type: index, name: large, url: '{}'}}", index.url());
    drop(first(&dir, &block, args).await?);
    let broker = Broker::start(&dir, &block).await?;
    broker.settled().await?;
    index.take_counts();
    let mut seconds = Vec::new();
    let mut times = CatalogTimes::default();
    for _ in 0..args.rounds {
        let watch = CatalogWatch::begin(broker.port);
        for _ in 0..INDEX_REFRESHES {
            seconds.push(broker.refresh().await?.as_secs_f64());
        }
        times.refreshing.extend(watch.end());
        let idle = seconds.iter().rev().take(INDEX_REFRESHES).sum::<f64>();
        let watch = CatalogWatch::begin(broker.port);
        tokio::time::sleep(Duration::from_secs_f64(idle)).await;
        times.idle.extend(watch.end());
    }
    let (lists, manifests) = index.take_counts();
    print_line(&format!(
        "{} refreshes: {lists} lists asked for",
        seconds.len()
    ));
    bound("manifests read, nothing changed", manifests as f64, 0.0, "");
    bound(
        "refresh, nothing changed",
        median(&seconds),
        GOAL_SECONDS,
        "s",
    );
    print_times(&times);
    index.change(0..args.changed);
    let took = broker.refresh().await?;
    let (_, manifests) = index.take_counts();
    print_line(&format!(
        "refresh, {} changed: {:.2} s",
        args.changed,
        took.as_secs_f64()
    ));
    bound(
        "manifests read, some changed",
        manifests as f64,
        args.changed as f64,
        "",
    );
    bound(
        "most memory, all known at the start",
        broker.peak_mb(),
        MEMORY_MB,
        "MB",
    );
    Ok(())
}

/// A broker that has read everything for the first time.
async fn first(
    dir: &std::path::Path,
    block: &str,
    args: &RegistryArgs,
) -> Result<Broker, BoxError> {
    let began = Instant::now();
    let broker = Broker::start(dir, block).await?;
    broker.until_offered(args.images).await?;
    print_line(&format!(
        "read for the first time in {:.1} s",
        began.elapsed().as_secs_f64()
    ));
    Ok(broker)
}

/// Measures the catalog for the duration of a refresh: without one, while another client sends the same
/// requests, and with one.
async fn noticed(
    broker: &Broker,
    registry: &LargeRegistry,
    count: usize,
    took: Duration,
    times: &mut CatalogTimes,
) -> Result<(), BoxError> {
    let watch = CatalogWatch::begin(broker.port);
    tokio::time::sleep(took).await;
    times.idle.extend(watch.end());
    let watch = CatalogWatch::begin(broker.port);
    registry.bare_loop_elsewhere(count).await?;
    times.beside.extend(watch.end());
    let watch = CatalogWatch::begin(broker.port);
    broker.refresh().await?;
    times.refreshing.extend(watch.end());
    Ok(())
}

fn print_times(times: &CatalogTimes) {
    let of = |what: &str, times: &[f64]| {
        let (p50, p99) = (
            catalog_latency::share(times, 0.5),
            catalog_latency::share(times, 0.99),
        );
        let count = times.len();
        print_line(&format!(
            "catalog, {what}: p50 {p50:.2} ms, p99 {p99:.2} ms ({count} times)"
        ));
        (p50, p99)
    };
    let idle = of("no refresh", &times.idle);
    let with = of("with a refresh", &times.refreshing);
    bound("catalog p50 / no refresh", with.0 / idle.0, GOAL_P50, "×");
    bound("catalog p99 / no refresh", with.1 / idle.1, GOAL_P99, "×");
    if !times.beside.is_empty() {
        let beside = of("somebody else asks the registry", &times.beside);
        bound(
            "catalog p50 / the same questions by others",
            with.0 / beside.0,
            GOAL_P50,
            "×",
        );
        bound(
            "catalog p99 / the same questions by others",
            with.1 / beside.1,
            GOAL_P99,
            "×",
        );
    }
}

/// A manifest of typical size; no two have the same schemas.
fn manifest(number: usize, version: &str) -> String {
    format!(
        "version: 1.0\nname: bundle-{number:05}\ndescription: A database of its own, {version}, number {number}.\n\
         bindable: true\nasync: optional\ntags: [database, bench]\n\
         metadata:\n  displayName: Bundle {number}\n  longDescription: Makes a database, backs it up every \
         night and looks after its users.\n  documentationUrl: https://bundles.example/{number}\n\
         plans:\n  - name: default\n    description: One database on a shared server.\n    free: true\n    \
         parameters:\n      - name: database_name\n        title: Name of the database\n        type: string\n        \
         default: db_{number}\n        pattern: '^[a-z_][a-z0-9_]*$'\n        required: true\n      \
         - name: size\n        title: Size\n        type: enum\n        enum: [small, medium, large]\n        \
         default: small\n      - name: password\n        title: Password\n        type: string\n        \
         display_type: password\n        required: true\n"
    )
}
