//! Binds: at once, asynchronous, too early, with answers that cannot be kept; and where credentials are stored.

use crate::lifecycle::binding::{Binding, TargetResource, Transform, Transforms};
use crate::lifecycle::intent::{HoldReason, IntentState};
use crate::records::IntentProgress;
use crate::spec::ParameterSource;
use crate::spec::samples::parameters;
use crate::test_platform::{
    Endpoint, NAMESPACE, ScriptedAnswer, TestPlatform, bind_request, body_of, header,
};
use serde_json::{Value, json};
use std::time::Duration;
use sutler_client::wire::Method;
use sutler_journal::{OperationFilter, OperationList, SealContext};
use sutler_osb::ORIGINATING_IDENTITY_HEADER;

/// Holds: P-010, P-031, P-102.
#[tokio::test(start_paused = true)]
async fn a_bind_is_sent_once_in_the_name_of_its_author() {
    let platform = TestPlatform::start().await;
    let (_, instance) = platform.live_instance().await;
    let mut request = bind_request(&instance, "app-db");
    request.spec.parameters = parameters(json!({"role": "reader"}));
    let key = platform.bind(request).await;
    platform
        .until_binding(&key, "it is bound", |it| it.current().is_some())
        .await;
    let sent = platform.broker.requests(Method::Put, Endpoint::Binding);
    assert_eq!(sent.len(), 1);
    let body = body_of(&sent[0]);
    assert_eq!(body["service_id"], json!("postgresql"));
    assert_eq!(body["plan_id"], json!("small"));
    assert_eq!(body["parameters"], json!({"role": "reader"}));
    assert_eq!(body["context"]["namespace"], json!(NAMESPACE));
    assert!(body.get("bind_resource").is_none());
    assert!(header(&sent[0], ORIGINATING_IDENTITY_HEADER).is_some());
    let binding: Binding = platform.read(&key).await;
    let id = binding.current_id().expect("it is bound").to_string();
    assert_eq!(platform.password(&key).await, format!("CANARY-{id}"));
    assert_eq!(sent[0].path.last(), Some(&id));
}

/// Source: P-059, B-113.
/// Holds: P-059.
#[tokio::test(start_paused = true)]
async fn credentials_of_an_asynchronous_bind_are_fetched() {
    let platform = TestPlatform::start().await;
    let (_, instance) = platform.live_instance().await;
    let broker = &platform.broker;
    broker.answer(
        Method::Put,
        Endpoint::Binding,
        202,
        json!({"operation": "token-7"}),
    );
    let in_progress = json!({"state": "in progress", "description": "half of it"});
    broker.answer(Method::Get, Endpoint::BindingPoll, 200, in_progress);
    // The broker is overloaded when the binding is fetched first.
    broker.answer(Method::Get, Endpoint::Binding, 500, json!({}));
    let key = platform.bound(&instance, "app-db").await;
    let polls = broker.requests(Method::Get, Endpoint::BindingPoll);
    assert_eq!(polls.len(), 2);
    for poll in &polls {
        let query: Vec<&str> = poll.query.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(query, ["postgresql", "small", "token-7"]);
    }
    assert_eq!(broker.requests(Method::Get, Endpoint::Binding).len(), 2);
    assert!(platform.password(&key).await.starts_with("CANARY-"));
}

/// Source: T-81, T-40.
#[tokio::test(start_paused = true)]
async fn a_bind_waits_for_its_instance_and_is_woken_by_it() {
    let platform = TestPlatform::start().await;
    let broker = &platform.broker;
    broker.answer(Method::Put, Endpoint::Instance, 202, json!({}));
    let in_progress = || json!({"state": "in progress"});
    for _ in 0..9 {
        broker.answer(Method::Get, Endpoint::InstancePoll, 200, in_progress());
    }
    let instance_key = platform.create_instance().await;
    let instance = platform.read(&instance_key).await;
    let mut request = bind_request(&instance, "app-db");
    request.facts.instance = crate::lifecycle::binding::InstanceReadiness::NotLiveYet;
    let key = platform.bind(request).await;
    platform
        .until_instance(&instance_key, "it is live", |it| it.confirmed().is_some())
        .await;
    let live = platform.context.records.now();
    platform
        .until_binding(&key, "it is bound", |it| it.current().is_some())
        .await;
    let waited = live.duration_until(platform.context.records.now());
    assert!(waited.unsigned_abs() <= Duration::from_secs(2), "{waited}");
    // Nothing was sent before.
    let targets = platform.broker.targets();
    let bind = targets
        .iter()
        .position(|it| it.contains("service_bindings"));
    let last_poll = targets
        .iter()
        .rposition(|it| it.ends_with("last_operation"));
    assert!(bind > last_poll, "{targets:?}");
}

/// Holds: P-105, P-106.
#[tokio::test(start_paused = true)]
async fn an_application_is_named_when_the_broker_demands_one() {
    let platform = TestPlatform::start().await;
    let (_, instance) = platform.live_instance().await;
    let refusal = json!({"error": "RequiresApp"});
    platform
        .broker
        .answer(Method::Put, Endpoint::Binding, 422, refusal);
    let key = platform.bound(&instance, "app-db").await;
    let sent = platform.broker.requests(Method::Put, Endpoint::Binding);
    assert_eq!(sent.len(), 2);
    assert_eq!(body_of(&sent[0]).get("bind_resource"), None);
    assert_eq!(
        body_of(&sent[1])["bind_resource"]["app_guid"],
        json!("namespace-uid")
    );
    assert_eq!(sent[0].path, sent[1].path);
    let binding: Binding = platform.read(&key).await;
    assert_eq!(binding.spec.target, TargetResource::Application);
}

/// Source: T-35.
#[tokio::test(start_paused = true)]
async fn a_bind_whose_secret_is_missing_waits_for_a_person() {
    let platform = TestPlatform::start().await;
    let (_, instance) = platform.live_instance().await;
    let mut request = bind_request(&instance, "app-db");
    request.spec.parameter_sources.push(ParameterSource {
        secret: "missing".to_owned(),
        key: None,
        watch: false,
    });
    let key = platform.bind(request).await;
    let is_held = |it: &Binding| {
        let state = &it.pending[0].state;
        matches!(
            state,
            IntentState::OnHold(HoldReason::UnresolvedParameters(_))
        )
    };
    platform.until_binding(&key, "it is held", is_held).await;
    assert_eq!(platform.broker.requests(Method::Put, Endpoint::Binding), []);
}

#[tokio::test(start_paused = true)]
async fn transforms_are_applied_to_what_is_delivered_and_not_to_what_is_kept() {
    let platform = TestPlatform::start().await;
    let (_, instance) = platform.live_instance().await;
    let mut request = bind_request(&instance, "app-db");
    let rename = Transform::Rename {
        from: "password".to_owned(),
        to: "DATABASE_PASSWORD".to_owned(),
    };
    request.transforms = Transforms::try_from(vec![rename]).expect("steps");
    let key = platform.bind(request).await;
    platform
        .until_binding(&key, "it is bound", |it| it.current().is_some())
        .await;
    let delivered = platform.credentials(&key).await.expect("credentials");
    let keys: Vec<&String> = delivered.credentials.0.keys().collect();
    assert_eq!(keys, ["DATABASE_PASSWORD"]);
    assert!(
        !format!("{delivered:?}").contains("CANARY"),
        "{delivered:?}"
    );
}

/// Source: invariant I-10.
#[tokio::test(start_paused = true)]
async fn credentials_are_in_the_document_of_the_binding_and_nowhere_else() {
    let platform = TestPlatform::start().await;
    let (_, instance) = platform.live_instance().await;
    // Two attempts, the second of which succeeds.
    platform
        .broker
        .plan(Method::Put, Endpoint::Binding, ScriptedAnswer::Silence);
    let key = platform.bound(&instance, "app-db").await;
    let documents = &platform.context.records.documents;
    let found = documents
        .store
        .scan_documents(&[], 1_000)
        .await
        .expect("all");
    let mut found_in = Vec::new();
    for document in found.into_iter().map(|it| it.document) {
        let place = SealContext::Document(&document.key);
        let (json, _) = documents
            .open::<Value>(place, &document.body)
            .expect("it opens");
        assert!(!String::from_utf8_lossy(&document.body).contains("CANARY"));
        if json.to_string().contains("CANARY") {
            found_in.push(document.key);
        }
    }
    assert_eq!(found_in, [key]);
    let list = OperationList {
        filter: OperationFilter::All,
        before: None,
        limit: 100,
    };
    for row in documents.store.operations(&list).await.expect("all") {
        let operation = documents.store.operation(row.id).await.expect("it is read");
        let operation = operation.expect("it exists");
        let request: Value = documents.open_request(&operation).expect("it opens");
        let progress: IntentProgress = documents.open_progress(&operation).expect("it opens");
        let detail: Value = documents
            .open_detail(row.id, &row.detail)
            .expect("it opens");
        let progress = serde_json::to_value(&progress).expect("JSON");
        assert_eq!(
            progress["prepared"],
            Value::Null,
            "requests are scrubbed at the end"
        );
        for part in [request, progress, detail] {
            assert!(!part.to_string().contains("CANARY"), "{part}");
        }
    }
}
