//! Deregistering brokers, also while instances are created, and in spite of crashes.

use super::fixture::{PlatformFixture, Replica, until, until_passed};
use super::samples::{catalog, deferred_orphan, gone, instance, name, operator};
use super::scripted_broker::Reaction;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use sutler_client::wire::Answer;
use sutler_journal::conformance::{Call, Intercept};
use sutler_journal::{Commit, CommitError, OperationFilter, State};
use sutler_platform::brokers::{BrokerCommandError, RemainingInstances};
use sutler_platform::lifecycle::instance::Instance;
use sutler_platform::lifecycle::orphan::OrphanState;
use tokio::sync::Notify;
use uuid::Uuid;

async fn synced(platform: &PlatformFixture, replica: &Replica) -> Uuid {
    let plans: Vec<String> = (0..150).map(|number| format!("p{number}")).collect();
    let plans: Vec<&str> = plans.iter().map(String::as_str).collect();
    platform.broker.answers(200, catalog(&[("s", &plans)]));
    let broker = replica.register("db").await;
    replica.until_synced(broker).await;
    broker
}

async fn put_instance(replica: &Replica, instance: Instance) {
    let keys = &replica.records.keys;
    let key = keys.instance(&instance.namespace, instance.uid);
    replica.put(&key, instance).await;
}

/// Nothing of the broker is left.
async fn check_removed(replica: &Replica, broker: Uuid) {
    let found = replica.brokers.find(None, &name("db")).await;
    assert_eq!(found.expect("it is readable"), None);
    let state = replica.brokers.state(broker).await;
    assert_eq!(state.expect("it is readable"), None);
    assert_eq!(replica.stored_items(broker).await, 0);
    for row in replica.operations(OperationFilter::All).await {
        let is_over = matches!(row.state, State::Done(_)) && !row.pinned;
        assert!(is_over, "{row:?}");
    }
}

fn remaining(result: Result<(), BrokerCommandError>) -> RemainingInstances {
    match result {
        Err(BrokerCommandError::HasInstances(remaining)) => remaining,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_broker_without_instances_is_removed_with_everything_and_everywhere() {
    let platform = PlatformFixture::new();
    let (one, other) = (platform.replica().await, platform.following_replica().await);
    let broker = synced(&platform, &one).await;
    one.trip(broker).await;
    put_instance(&one, gone(instance(broker, 1, "p1"))).await;
    put_instance(&one, instance(Uuid::nil(), 2, "p1")).await;
    until("the other knows it", async || {
        other.queue_limit(broker).is_some()
    })
    .await;
    let removed = one.brokers.deregister(broker).await;
    removed.expect("it has no instances");
    check_removed(&one, broker).await;
    assert_eq!(one.queue_limit(broker), None);
    until_passed(2).await;
    assert_eq!(other.queue_limit(broker), None);
    let again = one.brokers.deregister(broker).await;
    assert!(
        matches!(again, Err(BrokerCommandError::NoBroker)),
        "{again:?}"
    );
    // The name is free, for another broker.
    let next = one.register("db").await;
    assert_ne!(next, broker);
    one.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_broker_with_instances_is_not_removed_and_goes_on() {
    let platform = PlatformFixture::new();
    let replica = platform.replica().await;
    let broker = synced(&platform, &replica).await;
    for number in 1..=7 {
        put_instance(&replica, instance(broker, number, "p1")).await;
    }
    let refused = replica.brokers.deregister(broker).await;
    assert_eq!(
        refused.as_ref().map_err(ToString::to_string),
        Err(
            "the broker has 7 instances: app/db1, app/db2, app/db3, app/db4, app/db5, …; \
             delete or abandon them first"
                .to_owned()
        )
    );
    let remaining = remaining(refused);
    assert!(remaining.is_complete);
    let view = replica.view(broker).await;
    assert_eq!(view.registration.deregistering, None);
    let late = instance(broker, 8, "p1");
    let key = replica.records.keys.instance("app", late.uid);
    let commit = view.expect_registered(Commit::new());
    let commit = replica.with_put(commit, &key, late).await;
    let created = replica.store().commit(&commit).await;
    created.expect("instances are created again");
    replica.brokers.sync(broker).await.expect("it is requested");
    replica.until_synced(broker).await;
    replica.close().await;
}

/// Source: T-92. Without the broker nobody could delete what may still exist there.
#[tokio::test(start_paused = true)]
async fn a_broker_with_unsettled_orphans_is_not_removed() {
    let platform = PlatformFixture::new();
    let replica = platform.replica().await;
    let broker = synced(&platform, &replica).await;
    let other = deferred_orphan(Uuid::nil(), 3);
    for row in [
        deferred_orphan(broker, 1),
        deferred_orphan(broker, 2),
        other,
    ] {
        replica
            .put(&replica.records.keys.orphan(&row.orphan.key), row)
            .await;
    }
    let refused = replica.brokers.deregister(broker).await;
    assert_eq!(
        refused.map_err(|error| error.to_string()),
        Err(
            "2 rows of the orphan ledger are about the broker and not settled; wait until they are \
             deleted, or forget them"
                .to_owned()
        )
    );
    let view = replica.view(broker).await;
    assert_eq!(view.registration.deregistering, None);
    for number in 1..=2 {
        let mut row = deferred_orphan(broker, number);
        let key = replica.records.keys.orphan(&row.orphan.key);
        row.orphan.state = OrphanState::Done {
            at: jiff::Timestamp::UNIX_EPOCH,
        };
        replica.put(&key, row).await;
    }
    let removed = replica.brokers.deregister(broker).await;
    removed.expect("every row is settled");
    check_removed(&replica, broker).await;
    replica.close().await;
}

/// The commit of a create expects the registration unchanged; so it is seen by the look, or refused.
#[tokio::test(start_paused = true)]
async fn a_create_that_saw_the_broker_before_the_mark_is_not_written_after_it() {
    let platform = PlatformFixture::new();
    let replica = platform.idle_replica().await;
    let broker = replica.register("db").await;
    let seen = replica.view(broker).await;
    let (held, released) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (holding, release) = (held.clone(), released.clone());
    // The look for instances is the first list of the deregistration: the key is known.
    platform.intercept(move |call| match call {
        Call::Read("list") => {
            holding.notify_one();
            Intercept::Hold(release.clone())
        }
        _ => Intercept::Pass,
    });
    let brokers = replica.brokers.clone();
    let deregistering = tokio::spawn(async move { brokers.deregister(broker).await });
    held.notified().await;
    let late = instance(broker, 1, "p1");
    let key = replica.records.keys.instance("app", late.uid);
    let commit = seen.expect_registered(Commit::new());
    let commit = replica.with_put(commit, &key, late).await;
    let refused = replica.store().commit(&commit).await;
    assert!(matches!(refused, Err(CommitError::Stale(_))), "{refused:?}");
    let view = replica.view(broker).await;
    assert!(
        view.registration.deregistering.is_some(),
        "who looks again sees the mark"
    );
    platform.intercept(|_| Intercept::Pass);
    released.notify_one();
    deregistering
        .await
        .expect("no panic")
        .expect("it has no instances");
    check_removed(&replica, broker).await;
}

#[tokio::test(start_paused = true)]
async fn a_create_that_is_written_before_the_mark_is_found() {
    let platform = PlatformFixture::new();
    let replica = platform.idle_replica().await;
    let broker = replica.register("db").await;
    let seen = replica.view(broker).await;
    let early = instance(broker, 1, "p1");
    let key = replica.records.keys.instance("app", early.uid);
    let commit = seen.expect_registered(Commit::new());
    let commit = replica.with_put(commit, &key, early).await;
    let (store, mut commits) = (replica.store().clone(), Some(commit));
    // Between the read of the registration and the commit of the mark.
    let (created, create) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (hold, begin) = (created.clone(), create.clone());
    let mut is_first = true;
    platform.intercept(move |call| match call {
        Call::Commit(_) if std::mem::take(&mut is_first) => {
            begin.notify_one();
            Intercept::Hold(hold.clone())
        }
        _ => Intercept::Pass,
    });
    let creating = tokio::spawn(async move {
        create.notified().await;
        let commit = commits.take().expect("once");
        store
            .commit(&commit)
            .await
            .expect("the mark is not written");
        created.notify_one();
    });
    let refused = replica.brokers.deregister(broker).await;
    creating.await.expect("no panic");
    assert_eq!(remaining(refused).count, 1);
}

#[tokio::test(start_paused = true)]
async fn several_who_deregister_at_once_do_not_disturb_each_other() {
    let platform = PlatformFixture::new();
    let replicas = [platform.replica().await, platform.replica().await];
    let broker = synced(&platform, &replicas[0]).await;
    let (first, second) = tokio::join!(
        replicas[0].brokers.deregister(broker),
        replicas[1].brokers.deregister(broker),
    );
    let is_done = |result: &Result<(), BrokerCommandError>| {
        matches!(result, Ok(()) | Err(BrokerCommandError::NoBroker))
    };
    assert!(first.is_ok() || second.is_ok(), "{first:?} {second:?}");
    assert!(is_done(&first) && is_done(&second), "{first:?} {second:?}");
    check_removed(&replicas[0], broker).await;
    for replica in replicas {
        replica.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_sync_under_way_writes_nothing_after_the_removal() {
    let platform = PlatformFixture::new();
    let replica = platform.replica().await;
    let broker = synced(&platform, &replica).await;
    let before = platform.broker.request_count();
    let hanging = Arc::new(Notify::new());
    let held = hanging.clone();
    let answer = Answer::new(200, &[], catalog(&[("new", &["plan"])]));
    platform
        .broker
        .reacts(move |_| Reaction::AnswerAfter(held.clone(), answer.clone()));
    replica.brokers.sync(broker).await.expect("it is requested");
    until("a sync hangs", async || {
        platform.broker.request_count() > before
    })
    .await;
    let removed = replica.brokers.deregister(broker).await;
    removed.expect("it has no instances");
    hanging.notify_one();
    until_passed(600).await;
    check_removed(&replica, broker).await;
    replica.close().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_being_deregistered_is_not_changed() {
    let platform = PlatformFixture::new();
    let replica = platform.idle_replica().await;
    let broker = replica.register("db").await;
    die_after_commits(&platform, &replica, broker, 1).await;
    let update = replica
        .brokers
        .update(broker, None, super::fixture::definition());
    let update = update.await;
    assert!(
        matches!(update, Err(BrokerCommandError::Deregistering)),
        "{update:?}"
    );
    let (db, by) = (name("db"), operator());
    let again = replica
        .brokers
        .register(None, &db, super::fixture::definition(), &by);
    let again = again.await;
    assert!(
        matches!(again, Err(BrokerCommandError::NameTaken)),
        "{again:?}"
    );
}

/// Deregisters until a number of commits is written, and then never goes on. Returns whether that many were needed.
async fn die_after_commits(
    platform: &PlatformFixture,
    replica: &Replica,
    broker: Uuid,
    commits: usize,
) -> bool {
    let written = Arc::new(AtomicUsize::new(0));
    let counted = written.clone();
    platform.intercept(move |call| match call {
        Call::Commit(_) => match counted.fetch_add(1, Ordering::Relaxed) + 1 == commits {
            true => Intercept::CrashAfter,
            false => Intercept::Pass,
        },
        _ => Intercept::Pass,
    });
    let brokers = replica.brokers.clone();
    let dying = tokio::spawn(async move { brokers.deregister(broker).await });
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    let is_dead = !dying.is_finished();
    dying.abort();
    platform.intercept(|_| Intercept::Pass);
    is_dead
}

#[tokio::test(start_paused = true)]
async fn a_deregistration_that_was_interrupted_at_any_commit_is_finished_by_another_process() {
    let mut deaths = 0;
    loop {
        let platform = PlatformFixture::new();
        let starting = platform.replica().await;
        let broker = synced(&platform, &starting).await;
        starting.close().await;
        let dying = platform.idle_replica().await;
        if !die_after_commits(&platform, &dying, broker, deaths + 1).await {
            break;
        }
        deaths += 1;
        let replica = platform.replica().await;
        until("it is finished", async || {
            let found = replica.brokers.find(None, &name("db")).await;
            found.expect("it is readable").is_none()
        })
        .await;
        check_removed(&replica, broker).await;
        replica.close().await;
    }
    // The mark, the decision, two batches of plans, the offering, the rest.
    assert_eq!(deaths, 6);
}

#[tokio::test(start_paused = true)]
async fn a_mark_that_was_left_behind_is_taken_back_if_there_are_instances() {
    let platform = PlatformFixture::new();
    let replica = platform.replica().await;
    let broker = synced(&platform, &replica).await;
    put_instance(&replica, instance(broker, 1, "p1")).await;
    let dying = platform.idle_replica().await;
    assert!(die_after_commits(&platform, &dying, broker, 1).await);
    until("the mark is taken back", async || {
        let view = replica.view(broker).await;
        view.registration.deregistering.is_none()
    })
    .await;
    let before = platform.broker.request_count();
    until("it is synced again", async || {
        platform.broker.request_count() > before
    })
    .await;
    replica.close().await;
}
