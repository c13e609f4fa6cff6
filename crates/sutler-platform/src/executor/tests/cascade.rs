//! A delete of an instance with its bindings.

use crate::lifecycle::binding::{Binding, BindingPhase};
use crate::lifecycle::instance::{Instance, InstanceCommand, InstancePhase};
use crate::lifecycle::intent::IntentEnd;
use crate::test_platform::{Endpoint, TestPlatform, header, person};
use serde_json::json;
use std::time::Duration;
use sutler_client::wire::Method;
use sutler_osb::ORIGINATING_IDENTITY_HEADER;

fn delete(by: &str) -> InstanceCommand {
    InstanceCommand::Delete {
        by: person(by),
        cascade: true,
        bindings: Vec::new(),
    }
}

/// Source: P-121, T-53.
/// Holds: P-121.
#[tokio::test(start_paused = true)]
async fn bindings_are_unbound_before_their_instance_in_the_name_of_who_deletes_it() {
    let platform = TestPlatform::start().await;
    let (instance_key, instance) = platform.live_instance().await;
    let mut keys = Vec::new();
    for name in ["one", "two", "three"] {
        keys.push(platform.bound(&instance, name).await);
    }
    let asked = platform.context.records.now();
    platform.ask_instance(&instance_key, delete("ben")).await;
    let is_gone = |it: &Instance| it.phase() == InstancePhase::Gone;
    platform
        .until_instance(&instance_key, "it is gone", is_gone)
        .await;
    let took = asked.duration_until(platform.context.records.now());
    assert!(
        took.unsigned_abs() < Duration::from_secs(5),
        "woken by its last binding: {took}"
    );
    for key in &keys {
        let binding: Binding = platform.read(key).await;
        assert_eq!(binding.phase(), BindingPhase::Gone);
    }
    let broker = &platform.broker;
    let unbinds = broker.requests(Method::Delete, Endpoint::Binding);
    let deletes = broker.requests(Method::Delete, Endpoint::Instance);
    assert_eq!((unbinds.len(), deletes.len()), (3, 1));
    let identity = header(&deletes[0], ORIGINATING_IDENTITY_HEADER);
    assert!(identity.is_some());
    for unbind in &unbinds {
        assert_eq!(header(unbind, ORIGINATING_IDENTITY_HEADER), identity);
    }
    let last = broker.targets().pop().expect("requests");
    assert!(!last.contains("service_bindings"), "{last}");
}

/// Source: T-54.
#[tokio::test(start_paused = true)]
async fn a_binding_that_cannot_be_unbound_takes_the_delete_back() {
    let platform = TestPlatform::start().await;
    let (instance_key, instance) = platform.live_instance().await;
    let key = platform.bound(&instance, "app-db").await;
    platform
        .broker
        .answer(Method::Delete, Endpoint::Binding, 403, json!({}));
    platform.ask_instance(&instance_key, delete("ben")).await;
    let is_back = |it: &Instance| it.deletion.is_none();
    platform
        .until_instance(&instance_key, "it is live again", is_back)
        .await;
    let instance: Instance = platform.read(&instance_key).await;
    let ended = instance.ended.back().expect("the delete");
    assert!(
        matches!(&ended.end, IntentEnd::Rejected(it) if it.description.as_ref().is_some_and(|it| it.contains("app-db")))
    );
    assert!(platform.credentials(&key).await.is_ok());
    assert_eq!(
        platform.broker.requests(Method::Delete, Endpoint::Instance),
        []
    );
}
