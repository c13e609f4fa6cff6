//! Brokers that take one operation per instance at a time (P-061).

use crate::lifecycle::instance::{Instance, InstanceCommand, InstancePhase};
use crate::test_platform::{
    Endpoint, TestPlatform, TestSettings, bind_request, change_facts, person,
};
use serde_json::json;
use sutler_client::wire::Method;

async fn serialized() -> TestPlatform {
    let mut settings = TestSettings::default();
    settings.options.serialize = true;
    TestPlatform::with(settings).await
}

/// An update that the broker works on for some polls.
async fn begin_update(platform: &TestPlatform, key: &sutler_journal::Key, polls: usize) {
    let broker = &platform.broker;
    broker.answer(Method::Patch, Endpoint::Instance, 202, json!({}));
    for _ in 0..polls {
        broker.answer(
            Method::Get,
            Endpoint::InstancePoll,
            200,
            json!({"state": "in progress"}),
        );
    }
    platform
        .ask_instance(key, InstanceCommand::Touch(change_facts("ann")))
        .await;
    platform
        .until_instance(key, "the update is sent", Instance::is_busy)
        .await;
}

/// Source: T-82.
#[tokio::test(start_paused = true)]
async fn a_bind_waits_while_an_operation_of_its_instance_is_in_progress() {
    let platform = serialized().await;
    let (instance_key, instance) = platform.live_instance().await;
    begin_update(&platform, &instance_key, 5).await;
    let key = platform.bind(bind_request(&instance, "app-db")).await;
    platform
        .until_binding(&key, "it is bound", |it| it.current().is_some())
        .await;
    let targets = platform.broker.targets();
    let bind = targets
        .iter()
        .position(|it| it.contains("service_bindings"));
    let last_poll = targets
        .iter()
        .rposition(|it| it.ends_with("last_operation"));
    assert!(bind > last_poll, "{targets:?}");
}

/// A delete of the instance polls nothing below it before its bindings are gone, so they do not wait for that.
#[tokio::test(start_paused = true)]
async fn a_cascade_over_an_update_in_progress_ends() {
    let platform = serialized().await;
    let (instance_key, instance) = platform.live_instance().await;
    platform.bound(&instance, "app-db").await;
    begin_update(&platform, &instance_key, 0).await;
    let command = InstanceCommand::Delete {
        by: person("ben"),
        cascade: true,
        bindings: Vec::new(),
    };
    let busy = json!({"error": "ConcurrencyError"});
    platform
        .broker
        .answer(Method::Delete, Endpoint::Binding, 422, busy);
    platform.ask_instance(&instance_key, command).await;
    let is_gone = |it: &Instance| it.phase() == InstancePhase::Gone;
    platform
        .until_instance(&instance_key, "it is gone", is_gone)
        .await;
}
