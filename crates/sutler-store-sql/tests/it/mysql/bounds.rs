//! Time limits and connection limits; the assertions are in `bounds.rs` above.

use super::conformance::MySql;
use crate::{bounds, leases};
use sqlx::Executor as _;
use std::sync::Arc;
use sutler_store_sql::MySqlStore;

const SLOW: &str = "CREATE OR REPLACE VIEW sutler_clock AS
    SELECT CAST(BENCHMARK(100000000000, MD5('slow')) AS SIGNED) AS micros";

#[tokio::test(flavor = "multi_thread")]
async fn statements_and_waiting_are_bounded() {
    let Some(candidate) = MySql::fresh().await else {
        return;
    };
    let store = MySqlStore::open_with(&candidate.url, bounds::narrow()).await;
    let store = Arc::new(store.expect("a store"));
    let mut place = candidate.place.lock().await;
    place.db.execute(SLOW).await.expect("a clock");
    bounds::statements_and_waiting_are_bounded(store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_runs_out_by_itself_and_its_worker_writes_nothing() {
    let Some(candidate) = MySql::fresh().await else {
        return;
    };
    let store = candidate.current();
    leases::a_lease_runs_out_by_itself_and_its_worker_writes_nothing(&*store).await;
}
