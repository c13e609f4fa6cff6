//! Several platforms on one broker: each has its own path, users and records.

use crate::fixture::request::RequestBuilder;
use crate::fixture::test_catalog::{ASYNC, SMALL};
use crate::fixture::{Fixture, catalog_of, on_each_store_with, test_catalog};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::sync::Arc;
use std::time::Duration;
use sutler_broker::{Broker, BuildError, Platform};
use sutler_journal::{KeyRing, MemoryStore, Store};
use sutler_osb::OperationKind;

/// A broker with the default platform and one more, at `/cf`.
fn two(broker: Broker) -> Broker {
    broker.platform(Platform::at("/cf").realm("cf").basic_auth("cf", "other"))
}

/// The same request to the platform at `/cf`, by its own user.
fn to_cf(kit: &Fixture, request: RequestBuilder) -> RequestBuilder {
    let header = format!("Basic {}", STANDARD.encode("cf:other"));
    request
        .through(&kit.router(), "/cf")
        .header("Authorization", &header)
}

#[tokio::test]
async fn two_platforms_never_see_each_others_instances() {
    on_each_store_with(two, async |kit| {
        kit.has_instance("shared-id").await;
        kit.has_binding("shared-id", "b").await;
        to_cf(kit, kit.fetch("shared-id")).send().await.is(404);
        to_cf(kit, kit.fetch_binding("shared-id", "b"))
            .send()
            .await
            .is(404);
        to_cf(kit, kit.bind("shared-id", "b2")).send().await.is(404);
        to_cf(kit, kit.deprovision("shared-id"))
            .send()
            .await
            .is(410);
        kit.fetch("shared-id").send().await.is(200);
        // The same id is another instance there.
        to_cf(kit, kit.provision("shared-id")).send().await.is(201);
        to_cf(kit, kit.deprovision("shared-id"))
            .send()
            .await
            .is(200);
        kit.fetch("shared-id").send().await.is(200);
        kit.fetch_binding("shared-id", "b").send().await.is(200);
        assert_eq!(kit.script.calls(OperationKind::Provision).len(), 2);
    })
    .await;
}

#[tokio::test]
async fn a_user_of_one_platform_is_unknown_to_the_other() {
    on_each_store_with(two, async |kit| {
        for request in kit.ten_endpoints("i", "b") {
            let crossed = request.clone().through(&kit.router(), "/cf");
            crossed.send().await.is(401);
            let header = format!("Basic {}", STANDARD.encode("cf:other"));
            request
                .header("Authorization", &header)
                .send()
                .await
                .is(401);
        }
    })
    .await;
}

#[tokio::test]
async fn background_work_of_every_platform_uses_its_own_records() {
    on_each_store_with(two, async |kit| {
        let provision = to_cf(kit, kit.provision("i").plan(ASYNC).accepts_incomplete());
        let operation = provision.send().await.operation();
        let poll = |operation: &str| to_cf(kit, kit.poll("i").operation(operation));
        let ended = kit.poll_until_done(poll(&operation)).await;
        assert_eq!(ended.json["state"], "succeeded");
        // Operations of one platform are unknown to the other.
        kit.poll("i").operation(&operation).send().await.is(404);
        // A cascade stays in its realm, too.
        let bind = kit.bind("i", "b").plan(ASYNC).accepts_incomplete();
        let operation = to_cf(kit, bind).send().await.operation();
        let poll_bind = kit.poll_binding("i", "b").operation(&operation);
        kit.poll_until_done(to_cf(kit, poll_bind)).await.is(200);
        let delete = kit.deprovision("i").plan(ASYNC).accepts_incomplete();
        let operation = to_cf(kit, delete).send().await.operation();
        let gone = kit.poll_until_done(poll(&operation)).await;
        assert_eq!(gone.json["state"], "succeeded");
        assert_eq!(kit.script.calls(OperationKind::Unbind).len(), 1);
    })
    .await;
}

#[tokio::test]
async fn double_slashes_before_the_api_are_accepted() {
    on_each_store_with(two, async |kit| {
        kit.request("GET", "//v2/catalog").send().await.is(200);
        to_cf(kit, kit.request("GET", "//v2/catalog"))
            .send()
            .await
            .is(200);
        let etag = |reply: &crate::fixture::request::Reply| reply.header("ETag").to_owned();
        let ours = kit.catalog().send().await.is(200);
        let theirs = to_cf(kit, kit.catalog()).send().await.is(200);
        assert_eq!(etag(&ours), etag(&theirs));
    })
    .await;
}

#[tokio::test]
async fn a_replaced_catalog_reaches_every_platform() {
    on_each_store_with(two, async |kit| {
        to_cf(kit, kit.provision("i")).send().await.is(201);
        let without = catalog_of(test_catalog::catalog_without(SMALL));
        kit.running
            .replace_catalog(without)
            .await
            .expect("a catalog");
        to_cf(kit, kit.provision("j")).send().await.is(400);
        // Existing instances keep the copy of their plan in their own realm.
        to_cf(kit, kit.bind("i", "b")).send().await.is(201);
    })
    .await;
}

#[tokio::test]
async fn work_of_a_platform_that_is_not_served_waits_for_it() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let keys = tempfile::tempdir().expect("a folder");
    let key_file = keys.path().join("keys");
    let script = Arc::new(crate::fixture::scripted_service::Script::default());
    let start = async |platforms: Vec<Platform>| {
        let broker = Broker::new(catalog_of(test_catalog::catalog()))
            .basic_auth("user", "s3cret")
            .settings(|settings| settings.drain = Duration::from_millis(50))
            .shared_store(store.clone(), KeyRing::file(&key_file).expect("keys"));
        let broker = [
            "db-id",
            "plain-offering-id",
            "logs-id",
            "routes-id",
            "volumes-id",
        ]
        .iter()
        .fold(broker, |it, name| it.untyped_service(name, script.clone()));
        let broker = platforms.into_iter().fold(broker, Broker::platform);
        broker.start().await.expect("the broker starts")
    };
    let cf = || Platform::at("/cf").basic_auth("cf", "other");
    let first = Fixture::around(start(vec![cf()]).await);
    let gate = script.hold(OperationKind::Provision);
    let provision = first.provision("i").plan(ASYNC).accepts_incomplete();
    let operation = to_cf(&first, provision).send().await.operation();
    first
        .until("the hook runs", async || {
            !script.calls(OperationKind::Provision).is_empty()
        })
        .await;
    drop(gate);
    first.running.shut_down().await;
    let second = Fixture::around(start(Vec::new()).await);
    to_cf(&second, second.catalog()).send().await.is(404);
    second.running.shut_down().await;
    let third = Fixture::around(start(vec![cf()]).await);
    script.open_all();
    let poll = to_cf(&third, third.poll("i").operation(&operation));
    let ended = third.poll_until_done(poll).await;
    assert_eq!(ended.json["state"], "succeeded");
    third.running.shut_down().await;
}

#[tokio::test]
async fn a_broker_with_only_prefixed_platforms_answers_nothing_at_the_root() {
    let broker = |platform: Platform| {
        Broker::new(catalog_of(serde_json::json!({ "services": [] })))
            .in_memory()
            .platform(platform)
    };
    let running = broker(Platform::at("/cf").without_auth())
        .start()
        .await
        .expect("no default platform is needed");
    let kit = Fixture::around(running);
    kit.catalog().send().await.is(404);
    to_cf(&kit, kit.catalog()).send().await.is(200);
    kit.running.shut_down().await;
    let refused = broker(Platform::at("/v2").without_auth()).start().await;
    assert!(matches!(refused, Err(BuildError::Prefix(..))));
}
