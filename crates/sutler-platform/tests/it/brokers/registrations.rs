//! Registering brokers and changing what is written about them.

use super::fixture::{PlatformFixture, definition, until, until_passed};
use super::samples::{catalog, name, namespace, operator};
use std::time::Duration;
use sutler_platform::brokers::{BrokerCommandError, BrokerDefinition};
use sutler_platform::catalog::BrokerScope;
use sutler_platform::lifecycle::breaker::{Breaker, ExchangeOutcome};
use sutler_platform::records::{BrokerAuthentication, NamespaceState};

fn with_token(token: &str) -> BrokerDefinition {
    BrokerDefinition {
        authentication: BrokerAuthentication::Bearer {
            token: token.to_owned(),
        },
        ..definition()
    }
}

#[tokio::test(start_paused = true)]
async fn a_registered_broker_is_found_and_listed_and_its_catalog_is_read_at_once() {
    let platform = PlatformFixture::new();
    platform.broker.answers(200, catalog(&[("s", &["p", "q"])]));
    let replica = platform.replica().await;
    let broker = replica.register("db").await;
    let found = replica.brokers.find(None, &name("db")).await;
    let found = found.expect("it is readable").expect("it is registered");
    assert_eq!((found.uid, found.revision), (broker, 1));
    assert_eq!(found.created_by, operator());
    assert_eq!(found.scope, BrokerScope::AllNamespaces);
    let listed = replica.brokers.list(Some(None), None, 10).await;
    assert_eq!(listed.expect("it is readable").items.len(), 1);
    replica.until_synced(broker).await;
    assert_eq!(replica.items(broker).await, ["s", "s/p", "s/q"]);
    replica.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_name_is_unique_in_its_scope() {
    let platform = PlatformFixture::new();
    let replica = platform.idle_replica().await;
    let key = replica.records.keys.namespace(&name("app"));
    replica.put(&key, namespace(NamespaceState::Active)).await;
    replica.register("db").await;
    let (brokers, by) = (&replica.brokers, operator());
    let (app, db) = (name("app"), name("db"));
    let again = brokers.register(None, &db, definition(), &by).await;
    assert!(
        matches!(again, Err(BrokerCommandError::NameTaken)),
        "{again:?}"
    );
    let elsewhere = brokers.register(Some(&app), &db, definition(), &by).await;
    let scope = elsewhere.expect("another scope").scope;
    assert_eq!(scope, BrokerScope::Namespace("app".to_owned()));
    let all = brokers.list(None, None, 10).await.expect("it is readable");
    assert_eq!(all.items.len(), 2);
    let of_app = brokers.list(Some(Some(&app)), None, 10).await;
    assert_eq!(of_app.expect("it is readable").items.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_has_a_quota_of_brokers_and_operators_have_none() {
    let platform = PlatformFixture::new();
    let replica = platform.idle_replica().await;
    let app = name("app");
    let key = replica.records.keys.namespace(&app);
    replica.put(&key, namespace(NamespaceState::Active)).await;
    let register = async |scope, number: usize| {
        let (db, by) = (name(&format!("db-{number}")), operator());
        replica
            .brokers
            .register(scope, &db, definition(), &by)
            .await
    };
    for number in 0..20 {
        register(Some(&app), number)
            .await
            .expect("it is registered");
    }
    let refused = register(Some(&app), 20).await.expect_err("one too many");
    assert!(
        matches!(refused, BrokerCommandError::TooManyBrokers(20)),
        "{refused:?}"
    );
    let sentence = refused.to_string();
    assert!(sentence.contains("20 brokers already"), "{sentence}");
    register(None, 20).await.expect("it is for all namespaces");
}

#[tokio::test(start_paused = true)]
async fn of_two_replicas_that_register_one_name_at_once_one_is_told_that_it_is_taken() {
    let platform = PlatformFixture::new();
    let (one, other) = (platform.idle_replica().await, platform.idle_replica().await);
    let (db, by) = (name("db"), operator());
    let (first, second) = tokio::join!(
        one.brokers.register(None, &db, definition(), &by),
        other.brokers.register(None, &db, definition(), &by),
    );
    let taken = [&first, &second].map(|it| matches!(it, Err(BrokerCommandError::NameTaken)));
    assert_ne!(taken[0], taken[1], "{first:?} {second:?}");
    // What was not registered has left nothing behind.
    assert_eq!(one.pending_verbs().await, ["sync"]);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_of_a_broker_exists_and_is_not_being_deleted() {
    let platform = PlatformFixture::new();
    let replica = platform.idle_replica().await;
    let (app, db, by) = (name("app"), name("db"), operator());
    let register = || replica.brokers.register(Some(&app), &db, definition(), &by);
    let refused = register().await;
    assert!(
        matches!(refused, Err(BrokerCommandError::NoNamespace)),
        "{refused:?}"
    );
    let key = replica.records.keys.namespace(&app);
    let deleting = namespace(NamespaceState::Deleting(replica.now()));
    replica.put(&key, deleting).await;
    let refused = register().await;
    let is_expected = matches!(refused, Err(BrokerCommandError::NamespaceIsDeleting));
    assert!(is_expected, "{refused:?}");
    assert_eq!(replica.pending_verbs().await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_connected_to_is_not_registered() {
    let platform = PlatformFixture::new();
    let replica = platform.idle_replica().await;
    let mut hasty = definition();
    hasty.limits.relist_every = Duration::ZERO;
    for (wrong, expected) in [
        (BrokerDefinition::at("no address"), "/url"),
        (hasty, "/limits/relistEvery"),
    ] {
        let (db, by) = (name("db"), operator());
        let refused = replica.brokers.register(None, &db, wrong, &by).await;
        match refused {
            Err(BrokerCommandError::Invalid { pointer, .. }) => assert_eq!(pointer, expected),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(replica.pending_verbs().await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_update_needs_the_revision_that_its_author_saw() {
    let platform = PlatformFixture::new();
    let replica = platform.idle_replica().await;
    let broker = replica.register("db").await;
    let update = |revision, token| replica.brokers.update(broker, revision, with_token(token));
    assert_eq!(
        update(Some(1), "a").await.expect("it is updated").revision,
        2
    );
    let late = update(Some(1), "b").await;
    assert!(
        matches!(late, Err(BrokerCommandError::OtherRevision(2))),
        "{late:?}"
    );
    assert_eq!(update(None, "b").await.expect("it is updated").revision, 3);
    let same = update(Some(3), "b").await.expect("nothing is to be done");
    assert_eq!(same.revision, 3);
    let invalid = replica
        .brokers
        .update(broker, None, BrokerDefinition::at(""));
    let invalid = invalid.await;
    assert!(
        matches!(invalid, Err(BrokerCommandError::Invalid { .. })),
        "{invalid:?}"
    );
    assert_eq!(replica.view(broker).await.registration.revision, 3);
}

#[tokio::test(start_paused = true)]
async fn with_new_credentials_the_whole_catalog_is_read_again() {
    let platform = PlatformFixture::new();
    let body = catalog(&[("s", &["p"])]);
    platform.broker.serves_tagged("\"v1\"", body);
    let replica = platform.replica().await;
    let broker = replica.register_as("db", with_token("old")).await;
    replica.until_synced(broker).await;
    let updated = replica
        .brokers
        .update(broker, None, with_token("new"))
        .await;
    updated.expect("it is updated");
    replica.until_synced(broker).await;
    let received = platform.broker.received();
    let read: Vec<_> = received
        .iter()
        .map(|it| (it.token.as_deref(), it.tag()))
        .collect();
    assert_eq!(read, [(Some("old"), None), (Some("new"), None)]);
    replica.close().await;
}

#[tokio::test(start_paused = true)]
async fn with_new_credentials_every_replica_counts_from_the_beginning() {
    let platform = PlatformFixture::new();
    let mut replicas = vec![platform.following_replica().await];
    replicas.push(platform.following_replica().await);
    let broker = replicas[0].register("db").await;
    until("both know the broker", async || {
        replicas[1].queue_limit(broker).is_some()
    })
    .await;
    for replica in &replicas {
        for _ in 0..4 {
            replica.exchange(broker, ExchangeOutcome::Unanswered).await;
        }
    }
    let updated = replicas[0].brokers.update(broker, None, with_token("new"));
    updated.await.expect("it is updated");
    until_passed(2).await;
    for replica in &replicas {
        for _ in 0..4 {
            replica.exchange(broker, ExchangeOutcome::Unanswered).await;
        }
        let breaker = replica.breaker(broker).await;
        assert!(matches!(breaker, Breaker::Closed { .. }), "{breaker:?}");
    }
    replicas[1]
        .exchange(broker, ExchangeOutcome::Unanswered)
        .await;
    let breaker = replicas[0].breaker(broker).await;
    assert!(matches!(breaker, Breaker::Open(_)), "{breaker:?}");
}
