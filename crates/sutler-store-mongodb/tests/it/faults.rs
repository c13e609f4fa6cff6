//! Servers that die, freeze and refuse, connections that break: a store reports it quickly, and recovers
//! on its own.

use crate::conformance::{Mongo, open};
use crate::fixture::{WORK, bytes, insert, key, new_operation, until, worker};
use mongodb::bson::{Document as Bsons, doc};
use std::time::{Duration, Instant};
use sutler_journal::{
    Commit, CommitError, Fence, LeaseError, Next, Outcome, Start, Store, WorkerId,
    commit_until_known,
};
use sutler_servers::{CutPoint, Demands, mongodb as servers};

/// Longer than the time limit of any response.
const SOON: Duration = Duration::from_secs(12);

fn is_not_acknowledged(answer: &Result<(), CommitError>) -> bool {
    matches!(
        answer,
        Err(CommitError::NotWritten(_) | CommitError::Unknown(_))
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_server_is_noticed_quickly_and_found_again() {
    let Some(server) = servers::own(Demands::default()) else {
        return;
    };
    let mongo = Mongo::on(&server).await;
    let store = mongo.current();
    let accepted = insert("a", 2);
    store.commit(&accepted).await.expect("accepted");
    let worker = worker(&*store).await;
    server.kill();
    let began = Instant::now();
    store.get(&key("a")).await.expect_err("it is dead");
    let commit = insert("b", 2);
    let lost = store.commit(&commit).await;
    assert!(is_not_acknowledged(&lost), "{lost:?}");
    let renewed = store.renew(worker, Duration::from_secs(60)).await;
    assert!(matches!(renewed, Err(LeaseError::Store(_))), "{renewed:?}");
    let took = began.elapsed();
    assert!(took < SOON, "quickly, not in {took:?}");
    server.start();
    until("the server is back", || async { store.now().await.is_ok() }).await;
    let settled = commit_until_known(&*store, &commit).await;
    settled.expect("now it is taken");
    let settled = commit_until_known(&*store, &accepted).await;
    settled.expect("it was there before");
    assert!(store.get(&key("a")).await.expect("a read").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_server_is_not_waited_for_and_nothing_stays_locked() {
    let Some(server) = servers::own(Demands::default()) else {
        return;
    };
    let mongo = Mongo::on(&server).await;
    let store = mongo.current();
    store.commit(&insert("a", 0)).await.expect("accepted");
    server.freeze();
    let began = Instant::now();
    let commit = insert("b", 0).start(new_operation("b", Start::Waiting));
    let lost = store.commit(&commit).await;
    assert!(is_not_acknowledged(&lost), "{lost:?}");
    let took = began.elapsed();
    assert!(took < SOON, "quickly, not in {took:?}");
    server.thaw();
    until("the server goes on", || async { store.now().await.is_ok() }).await;
    // Commands that arrived while it was frozen left a transaction open, which is aborted later.
    until("the commit is taken", || async {
        commit_until_known(&*store, &commit).await.is_ok()
    })
    .await;
    let stats = store.stats().await.expect("counts");
    assert_eq!(stats.accepted, 1, "once");
}

/// Makes the server fail commands of a kind.
async fn fail(mongo: &Mongo, command: &str, times: i32, how: Bsons) {
    let client = mongodb::Client::with_uri_str(mongo.place.url()).await;
    let client = client.expect("a client");
    let mut data = doc! { "failCommands": [command] };
    data.extend(how);
    let order =
        doc! { "configureFailPoint": "failCommand", "mode": { "times": times }, "data": data };
    let done = client.database("admin").run_command(order).await;
    done.expect("a fail point");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_is_applied_once_whatever_the_server_answers() {
    let Some(server) = servers::own(Demands::default()) else {
        return;
    };
    let mongo = Mongo::on(&server).await;
    let store = mongo.current();
    let transient = doc! { "errorCode": 112, "errorLabels": ["TransientTransactionError"] };
    let faults = [
        ("bulkWrite", 3, transient.clone()),
        ("bulkWrite", 1, doc! { "closeConnection": true }),
        ("commitTransaction", 2, transient),
        ("commitTransaction", 1, doc! { "closeConnection": true }),
        ("commitTransaction", 3, doc! { "closeConnection": true }),
        // Shutting down, and not on a majority: the outcome is unknown.
        ("commitTransaction", 1, doc! { "errorCode": 91 }),
        (
            "commitTransaction",
            1,
            doc! { "writeConcernError": { "code": 64, "errmsg": "waiting" } },
        ),
    ];
    for (n, (command, times, how)) in (0_u64..).zip(faults) {
        fail(&mongo, command, times, how).await;
        let id = format!("{n}");
        let commit = insert(&id, 1).start(new_operation(&id, Start::Waiting));
        let taken = commit_until_known(&*store, &commit).await;
        assert!(taken.is_ok(), "{command} {n}: {taken:?}");
        let stats = store.stats().await.expect("counts");
        assert_eq!(stats.accepted, n + 1, "{command} {n}: once");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finally_refused_commit_is_not_reported_as_not_written() {
    let Some(server) = servers::own(Demands::default()) else {
        return;
    };
    let mongo = Mongo::on(&server).await;
    let store = mongo.current();
    // Once for each time that it is sent.
    fail(&mongo, "commitTransaction", 2, doc! { "errorCode": 2 }).await;
    let commit = insert("a", 1).start(new_operation("a", Start::Waiting));
    let refused = store.commit(&commit).await;
    assert!(
        matches!(refused, Err(CommitError::Unknown(_))),
        "{refused:?}"
    );
    commit_until_known(&*store, &commit)
        .await
        .expect("now it is taken");
    assert_eq!(store.stats().await.expect("counts").accepted, 1, "once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_in_flight_is_never_reported_as_stale() {
    let Some(mongo) = Mongo::fresh().await else {
        return;
    };
    let store = mongo.current();
    // The transaction is open and its commit in flight; the response will not arrive in time.
    let held = mongo.proxy.hold();
    let commit = insert("a", 0);
    let (sender, sent) = (store.clone(), commit.clone());
    let first = tokio::spawn(async move { sender.commit(&sent).await });
    held.arrived.await.expect("it is sent");
    let near = mongo.replica().await;
    // No replica can overtake it meanwhile, and it cannot be reported as stale.
    let other = insert("a", 0);
    let repeated = near.commit(&commit).await;
    assert!(
        !matches!(repeated, Err(CommitError::Stale(_))),
        "{repeated:?}"
    );
    let unknown = first.await.expect("no panic");
    assert!(
        matches!(unknown, Ok(()) | Err(CommitError::Unknown(_))),
        "{unknown:?}"
    );
    let _ = held.go.send(());
    let settled = commit_until_known(&*store, &commit).await;
    let late = near.commit(&other).await;
    settled.expect("nobody else wrote");
    assert!(matches!(late, Err(CommitError::Stale(_))), "{late:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_ran_out_while_cut_off_is_lost() {
    let Some(mongo) = Mongo::fresh().await else {
        return;
    };
    let store = mongo.current();
    let worker = WorkerId::fresh();
    let brief = Duration::from_secs(2);
    store.renew(worker, brief).await.expect("a lease");
    let new = new_operation("a", Start::Claimed(worker));
    let id = new.id;
    store.commit(&Commit::new().start(new)).await.expect("it");
    let near = mongo.replica().await;
    mongo.proxy.set_down(true);
    let successor = crate::fixture::worker(&*near).await;
    until("the lease ran out", || async {
        let claimed = near.claim(successor, &[(WORK, 1)]).await.expect("a claim");
        claimed.iter().any(|it| it.row.fence == Fence(2))
    })
    .await;
    mongo.proxy.set_down(false);
    until("the store is back", || async { store.now().await.is_ok() }).await;
    let done = Next::Done(Outcome::Succeeded);
    let late = Commit::new()
        .advance(id, done, None, None)
        .fenced(id, Fence(1));
    let late = commit_until_known(&*store, &late).await;
    assert!(matches!(late, Err(CommitError::Stale(_))), "{late:?}");
    let renewed = store.renew(worker, brief).await;
    assert!(matches!(renewed, Err(LeaseError::Lost)), "{renewed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_died_is_replaced_and_nothing_acknowledged_is_lost() {
    let Some((members, url)) = servers::three() else {
        return;
    };
    let store = open(&url).await;
    let mut acknowledged = Vec::new();
    for n in 0..20 {
        let commit = insert(&format!("before-{n}"), 1);
        store.commit(&commit).await.expect("accepted");
        acknowledged.push(format!("before-{n}"));
    }
    let primary = members
        .iter()
        .find(|it| servers::is_primary(it.admin_url().port));
    primary.expect("a primary").kill();
    let commit = insert("during", 1).start(new_operation("during", Start::Waiting));
    let took = until("another primary", || async {
        commit_until_known(&*store, &commit).await.is_ok()
    })
    .await;
    assert!(took < Duration::from_secs(60), "not in {took:?}");
    acknowledged.push("during".to_owned());
    for id in &acknowledged {
        let found = store.get(&key(id)).await.expect("a read");
        assert!(found.is_some(), "{id} was acknowledged");
    }
    assert_eq!(store.stats().await.expect("counts").accepted, 1, "once");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_message_quotes_a_request() {
    let Some(mongo) = Mongo::fresh().await else {
        return;
    };
    let store = mongo.current();
    for _ in 0..4 {
        mongo.proxy.cut(CutPoint::After);
    }
    let commit = Commit::new().insert(key("canary"), Vec::new(), bytes("canary"));
    if let Err(error) = store.commit(&commit).await {
        let message = format!("{error} {error:?}");
        assert!(!message.contains("canary"), "{message}");
        assert!(!message.contains("mongodb://"), "{message}");
    }
}
