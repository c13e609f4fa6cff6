//! Deletes of bindings: refused, confirmed, asynchronous, and with more than one generation.

use crate::credentials::DeliverCredentialsError;
use crate::lifecycle::binding::{Binding, BindingCommand, BindingPhase, RotateRequest};
use crate::records::{NameRecord, Record};
use crate::test_platform::{
    Endpoint, NAMESPACE, ScriptedAnswer, TestPlatform, facts, header, person,
};
use serde_json::json;
use sutler_client::wire::Method;
use sutler_osb::ORIGINATING_IDENTITY_HEADER;

/// Source: P-122, T-87.
/// Holds: P-122.
#[tokio::test(start_paused = true)]
async fn a_refused_unbind_keeps_the_credentials() {
    let platform = TestPlatform::start().await;
    let (_, instance) = platform.live_instance().await;
    let key = platform.bound(&instance, "app-db").await;
    let password = platform.password(&key).await;
    let refusal = json!({"description": "in use"});
    platform
        .broker
        .answer(Method::Delete, Endpoint::Binding, 403, refusal);
    platform
        .ask(&key, BindingCommand::Delete(person("ben")))
        .await;
    platform
        .until_binding(&key, "it is bound again", |it| it.deletion.is_none())
        .await;
    assert_eq!(platform.password(&key).await, password);
}

/// Source: P-120, T-86.
/// Holds: P-120.
#[tokio::test(start_paused = true)]
async fn credentials_are_erased_when_the_broker_confirmed_the_unbind() {
    let platform = TestPlatform::start().await;
    let (_, instance) = platform.live_instance().await;
    let key = platform.bound(&instance, "app-db").await;
    let broker = &platform.broker;
    broker.answer(
        Method::Delete,
        Endpoint::Binding,
        202,
        json!({"operation": "d"}),
    );
    broker.answer(
        Method::Get,
        Endpoint::BindingPoll,
        200,
        json!({"state": "in progress"}),
    );
    platform
        .ask(&key, BindingCommand::Delete(person("ben")))
        .await;
    platform
        .until("it is polled", async || {
            !broker
                .requests(Method::Get, Endpoint::BindingPoll)
                .is_empty()
        })
        .await;
    assert!(
        platform.credentials(&key).await.is_ok(),
        "not confirmed yet"
    );
    platform
        .until_binding(&key, "it is gone", |it| it.phase() == BindingPhase::Gone)
        .await;
    let gone = platform.credentials(&key).await;
    assert!(matches!(gone, Err(DeliverCredentialsError::Gone)));
    let binding: Binding = platform.read(&key).await;
    assert_eq!(binding.generations, []);
    let name = platform
        .context
        .records
        .keys
        .binding_name(NAMESPACE, "app-db");
    let name = platform
        .context
        .records
        .load::<NameRecord>(&name)
        .await
        .expect("it is read");
    assert_eq!(name.state, Record::Absent);
    let sent = broker.requests(Method::Delete, Endpoint::Binding);
    assert_eq!(sent.len(), 1);
    assert!(header(&sent[0], ORIGINATING_IDENTITY_HEADER).is_some());
    let query: Vec<&str> = sent[0]
        .query
        .iter()
        .map(|(_, value)| value.as_str())
        .collect();
    assert_eq!(query, ["postgresql", "small", "true"]);
}

/// A delete has one request for each generation, and repeats the request of the same generation byte for byte.
#[tokio::test(start_paused = true)]
async fn a_delete_unbinds_one_generation_after_another() {
    let platform = TestPlatform::start().await;
    let (_, instance) = platform.live_instance().await;
    let key = platform.bound(&instance, "app-db").await;
    let first = platform.read::<Binding>(&key).await.current_id().cloned();
    let rotate = RotateRequest {
        by: person("ann"),
        idempotency_key: None,
        facts: facts(),
    };
    platform.ask(&key, BindingCommand::Rotate(rotate)).await;
    platform
        .until_binding(&key, "it is rotated", |it| it.generations.len() == 2)
        .await;
    platform
        .until_binding(&key, "it has ended", |it| it.pending.is_empty())
        .await;
    platform
        .broker
        .plan(Method::Delete, Endpoint::Binding, ScriptedAnswer::Silence);
    platform
        .ask(&key, BindingCommand::Delete(person("ben")))
        .await;
    platform
        .until_binding(&key, "it is gone", |it| it.phase() == BindingPhase::Gone)
        .await;
    let sent = platform.broker.requests(Method::Delete, Endpoint::Binding);
    assert_eq!(sent.len(), 3);
    assert_eq!(sent[0], sent[1], "repeated after the lost answer");
    assert_eq!(
        sent[0].path.last().map(String::as_str),
        first.as_ref().map(|it| it.as_str())
    );
    assert_ne!(sent[1].path, sent[2].path);
}
