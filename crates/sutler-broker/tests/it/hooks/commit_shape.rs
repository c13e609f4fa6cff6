//! The writes of the two commits that every request costs, in the order that stores have a short way for.
//!
//! PostgreSQL commits both forms with one statement each (`fast_commit.rs` of `sutler-store-sql`); another order
//! is committed as well, only slower, so that no other test would notice.

use super::RestartableBroker;
use std::sync::{Arc, Mutex};
use sutler_broker::{Cx, Provisioned, Result, Service};
use sutler_journal::Write;
use sutler_journal::conformance::{Call, Intercept};

struct Plain;

impl Service for Plain {
    type Params = serde_json::Map<String, serde_json::Value>;
    type State = u32;

    async fn provision(&self, _: &Cx, _: Self::Params) -> Result<Provisioned<u32>> {
        Ok(Provisioned::new(1))
    }

    async fn deprovision(&self, _: &Cx, _: Option<u32>) -> Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_provision_and_its_end_write_the_document_before_the_operation() {
    let restartable = RestartableBroker::new();
    let broker = restartable.open(Plain).await;
    let commits: Arc<Mutex<Vec<Vec<&str>>>> = Arc::default();
    let recorded = commits.clone();
    restartable.inject(move |call| {
        if let Call::Commit(commit) = call {
            let kinds = commit.writes().iter().map(|it| match it {
                Write::Put { .. } => "put",
                Write::Start(_) => "start",
                Write::Advance { .. } => "advance",
                _ => "another",
            });
            recorded.lock().expect("no panic").push(kinds.collect());
        }
        Intercept::Pass
    });
    broker.provision("i").send().await.is(201);
    assert_eq!(
        *commits.lock().expect("no panic"),
        [["put", "start"], ["put", "advance"]]
    );
}
