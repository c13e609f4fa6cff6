//! Servers that die, freeze and come back: a store reports it quickly, and recovers on its own.

use crate::conformance::Etcd;
use crate::fixture::{insert, key, new_operation, until, worker};
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutler_journal::{
    Commit, CommitError, Fence, LeaseError, Next, Outcome, Start, Store, WorkerId,
    commit_until_known,
};

use sutler_servers::{CutPoint, Server};

/// Longer than the time limit of any response.
const SOON: Duration = Duration::from_secs(12);

async fn own() -> Option<(Server, Etcd)> {
    let server = crate::server::own()?;
    let etcd = Etcd::on(&server).await;
    Some((server, etcd))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_server_is_noticed_at_once_and_found_again() {
    let Some((server, etcd)) = own().await else {
        return;
    };
    let store = etcd.current();
    let accepted = insert("a", 2);
    store.commit(&accepted).await.expect("accepted");
    let worker = worker(&*store).await;
    server.kill();
    let began = Instant::now();
    store.now().await.expect_err("it is dead");
    store.get(&key("a")).await.expect_err("it is dead");
    store.stats().await.expect_err("it is dead");
    let commit = insert("b", 2);
    let lost = store.commit(&commit).await;
    assert!(
        matches!(
            lost,
            Err(CommitError::NotWritten(_) | CommitError::Unknown(_))
        ),
        "{lost:?}"
    );
    let renewed = store.renew(worker, Duration::from_secs(60)).await;
    assert!(matches!(renewed, Err(LeaseError::Store(_))), "{renewed:?}");
    assert!(
        began.elapsed() < SOON,
        "quickly, not in {:?}",
        began.elapsed()
    );
    server.start();
    until("the server is back", || async { store.now().await.is_ok() }).await;
    commit_until_known(&*store, &commit)
        .await
        .expect("now it is taken");
    commit_until_known(&*store, &accepted)
        .await
        .expect("it was there before");
    until("the watch is back", || async {
        store.stats().await.is_ok()
    })
    .await;
    store
        .renew(worker, Duration::from_secs(60))
        .await
        .expect("leases survive");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_server_times_out_and_its_commit_is_resolved() {
    let Some((server, etcd)) = own().await else {
        return;
    };
    let store = etcd.current();
    store.commit(&insert("a", 0)).await.expect("accepted");
    server.freeze();
    let began = Instant::now();
    let commit = insert("b", 0).start(new_operation("b", Start::Waiting));
    let unknown = store.commit(&commit).await;
    assert!(
        matches!(unknown, Err(CommitError::Unknown(_))),
        "{unknown:?}"
    );
    store.get(&key("a")).await.expect_err("it is frozen");
    assert!(
        began.elapsed() < SOON,
        "quickly, not in {:?}",
        began.elapsed()
    );
    server.thaw();
    until("the server goes on", || async {
        store.stats().await.is_ok()
    })
    .await;
    commit_until_known(&*store, &commit)
        .await
        .expect("it happened, or happens now");
    let stats = store.stats().await.expect("counts");
    assert_eq!(stats.accepted, 1, "once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_ran_out_while_cut_off_is_lost() {
    let Some(etcd) = Etcd::fresh().await else {
        return;
    };
    let store = etcd.current();
    let worker = WorkerId::fresh();
    let brief = Duration::from_secs(2);
    store.renew(worker, brief).await.expect("a lease");
    let new = new_operation("a", Start::Claimed(worker));
    let id = new.id;
    store.commit(&Commit::new().start(new)).await.expect("it");
    etcd.proxy.set_down(true);
    let (direct, began) = (open_direct(&etcd).await, Instant::now());
    until("the lease ran out", || async {
        let successor = crate::fixture::worker(&*direct).await;
        let queues = [(crate::fixture::WORK, 1)];
        let claimed = direct.claim(successor, &queues).await.expect("a claim");
        claimed
            .iter()
            .any(|operation| operation.row.fence == Fence(2))
    })
    .await;
    assert!(began.elapsed() < SOON);
    etcd.proxy.set_down(false);
    let done = Next::Done(Outcome::Succeeded);
    let late = Commit::new()
        .advance(id, done, None, None)
        .fenced(id, Fence(1));
    let late = commit_until_known(&*store, &late).await;
    assert!(matches!(late, Err(CommitError::Stale(_))), "{late:?}");
    let renewed = store.renew(worker, brief).await;
    assert!(matches!(renewed, Err(LeaseError::Lost)), "{renewed:?}");
}

async fn open_direct(etcd: &Etcd) -> Arc<sutler_store_etcd::EtcdStore> {
    let mut settings = etcd.settings.clone();
    settings.endpoints = etcd.behind();
    crate::conformance::open(&settings).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_member_is_replaced_by_a_live_one() {
    let Some(etcd) = Etcd::fresh().await else {
        return;
    };
    let mut settings = etcd.settings.clone();
    let proxied = settings.endpoints[0].clone();
    settings.endpoints = vec!["127.0.0.1:1".to_owned(), proxied];
    settings.endpoints.extend(etcd.behind());
    let store = crate::conformance::open(&settings).await;
    store.commit(&insert("a", 0)).await.expect("a commit");
    etcd.proxy.set_down(true);
    let commit = insert("b", 0);
    until("another member answers", || async {
        commit_until_known(&*store, &commit).await.is_ok()
    })
    .await;
    until("another member is watched", || async {
        store.stats().await.is_ok()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_was_called_stale_never_happens_late() {
    let Some(etcd) = Etcd::fresh().await else {
        return;
    };
    let store = etcd.current();
    // The transaction is in flight; its response will not arrive.
    let held = etcd.proxy.hold();
    let commit = insert("a", 0);
    let (sender, sent) = (Arc::clone(&store), commit.clone());
    let first = tokio::spawn(async move { sender.commit(&sent).await });
    held.arrived.await.expect("it is sent");
    let unknown = first.await.expect("no panic");
    assert!(
        matches!(unknown, Err(CommitError::Unknown(_))),
        "{unknown:?}"
    );
    let other = insert("a", 0);
    store.commit(&other).await.expect("somebody else's");
    let stale = store.commit(&commit).await;
    assert!(matches!(stale, Err(CommitError::Stale(_))), "{stale:?}");
    let version = sutler_journal::Version(other.id());
    let remove = Commit::new().remove(key("a"), version);
    store.commit(&remove).await.expect("a removal");
    // Only now the first transaction reaches etcd, where its expectation holds again.
    let _ = held.go.send(());
    until("the late transaction was answered", || async {
        etcd.proxy.late_answers() > 0
    })
    .await;
    assert_eq!(store.get(&key("a")).await.expect("a read"), None);
    store
        .commit(&commit)
        .await
        .expect("tried anew, it is taken");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_message_about_a_broken_connection_quotes_the_request() {
    let Some(etcd) = Etcd::fresh().await else {
        return;
    };
    let store = etcd.current();
    etcd.proxy.cut(CutPoint::After);
    let lost = store.commit(&insert("canary", 0)).await;
    let error = lost.expect_err("it was cut");
    let message = format!("{error} {error:?}");
    assert!(
        !message.contains("canary") && !message.contains("http://"),
        "{message}"
    );
}
