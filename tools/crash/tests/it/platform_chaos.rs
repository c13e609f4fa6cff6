//! Some seconds of chaos for three platforms over PostgreSQL. Longer: `cargo run -p sutler-crash -- platform-chaos`.

use crate::fixture::program;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;
use sutler_crash::chaos::{PlatformChaos, ServerKind, run_platform_round};

/// The same faults for the same code, so that results do not depend on chance.
const SEED: u64 = 7;
const SECONDS: u64 = 14;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_platforms_over_postgres_survive_all_faults() {
    let starting = tokio::task::spawn_blocking(|| ServerKind::Postgres.own());
    let Some(server) = starting.await.expect("a server") else {
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let length = Duration::from_secs(SECONDS);
    let chaos = PlatformChaos::new(program(), dir.path(), SEED, length);
    let ended = run_platform_round(&chaos, &chaos.plan(), Arc::new(server)).await;
    let report = ended.unwrap_or_else(|violation| panic!("{violation}; see {:?}", dir.keep()));
    let _ = writeln!(std::io::stderr(), "seed {SEED}: {report}");
    assert!(report.accepted >= 20, "there was hardly any load: {report}");
    assert!(report.faults >= 5, "hardly anything was broken: {report}");
}
