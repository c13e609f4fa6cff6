//! All ten endpoints against a real broker, synchronous and asynchronous, with both identities.

use crate::broker::{ASYNC, RunningBroker, SERVICE, SYNC, offered};
use crate::raw_server::{RawServer, ServerAct};
use serde_json::{Map, json};
use std::time::Duration;
use sutler_client::wire::Connection;
use sutler_client::{
    Call, Client, Meaning, Operation, OperationEvent, PollSchedule, PollUpdate, Reading,
    RejectionReason, Reply, ReplyContext, Success, classify, classify_read,
};
use sutler_osb::{
    BindBody, BindingId, InstanceId, OperationKind, OriginatingIdentity, ProvisionBody, UpdateBody,
};

const PACE: PollSchedule = PollSchedule {
    first: Duration::from_millis(2),
    shortest: Duration::from_millis(1),
    longest: Duration::from_millis(20),
    within: Duration::from_secs(20),
};

fn client(broker: &RunningBroker) -> Client {
    let connection = Connection::to(&format!("http://{}", broker.address))
        .basic("user", "s3cret".into())
        .build();
    Client::new(connection.expect("a connection"))
}

fn instance() -> InstanceId {
    "an instance/ä?".try_into().expect("an id")
}

fn binding() -> BindingId {
    "a binding#1".try_into().expect("an id")
}

fn user(name: &str) -> OriginatingIdentity {
    let mut value = Map::new();
    value.insert("user_id".to_owned(), json!(name));
    OriginatingIdentity {
        platform: "cloudfoundry".to_owned(),
        value,
    }
}

fn call(name: &str) -> Call {
    let request = format!("request of {name}");
    let request = request.as_str().try_into().expect("an identity");
    Call::new().on_behalf_of(user(name)).named(request)
}

fn provision_body(plan: &str) -> ProvisionBody {
    let body = json!({
        "service_id": SERVICE, "plan_id": plan,
        "organization_guid": "o", "space_guid": "s", "parameters": { "size": 3 },
    });
    serde_json::from_value(body).expect("a body")
}

fn update_body() -> UpdateBody {
    let body = json!({
        "service_id": SERVICE, "parameters": { "size": 4 },
        "previous_values": { "plan_id": SYNC },
    });
    serde_json::from_value(body).expect("a body")
}

fn bind_body(plan: &str) -> BindBody {
    serde_json::from_value(json!({ "service_id": SERVICE, "plan_id": plan })).expect("a body")
}

fn meaning<B>(kind: OperationKind, reply: Reply<B>) -> Meaning<B> {
    classify(kind, OperationEvent::Reply(reply), &ReplyContext::default())
}

fn now<B: std::fmt::Debug>(meaning: Meaning<B>) -> B {
    match meaning {
        Meaning::Succeeded(Success::Now(body)) => body,
        other => panic!("{other:?}"),
    }
}

/// Operation token for polls.
fn token<B: std::fmt::Debug>(meaning: Meaning<B>) -> Option<sutler_osb::OperationToken> {
    match meaning {
        Meaning::Polling {
            update: PollUpdate::Accepted(accepted),
            ..
        } => accepted.operation,
        other => panic!("{other:?}"),
    }
}

async fn ended(
    client: &Client,
    operation: &Operation,
) -> Meaning<sutler_osb::FetchBindingResponse> {
    let context = ReplyContext::default();
    client
        .poll_to_end(operation, None, &Call::new(), &PACE, &context)
        .await
}

#[tokio::test]
async fn an_instance_lifecycle_with_synchronous_answers() {
    let broker = RunningBroker::start(|broker| broker).await;
    let (client, of) = (client(&broker), offered(SYNC));
    let (instance, binding) = (instance(), binding());

    let catalog = classify_read(client.catalog(&Call::new()).await);
    let Reading::Read(catalog) = catalog else {
        panic!("{catalog:?}");
    };
    assert_eq!(catalog.services()[0].id.as_str(), SERVICE);

    let reply = client
        .provision(&instance, &provision_body(SYNC), &call("ann"))
        .await;
    now(meaning(OperationKind::Provision, reply));
    let fetched = classify_read(client.fetch_instance(&instance, &of, &call("bob")).await);
    let Reading::Read(fetched) = fetched else {
        panic!("{fetched:?}");
    };
    assert_eq!(fetched.parameters.expect("parameters").0["size"], 3);
    let reply = client
        .bind(&instance, &binding, &bind_body(SYNC), &call("cid"))
        .await;
    let bound = now(meaning(OperationKind::Bind, reply));
    assert_eq!(
        bound.credentials.expect("credentials").0["password"],
        "hush"
    );
    let fetched = client
        .fetch_binding(&instance, &binding, &of, &call("dan"))
        .await;
    assert!(matches!(
        classify_read(fetched),
        Reading::Read(fetched) if fetched.credentials.is_some()
    ));
    let reply = client.update(&instance, &update_body(), &call("eve")).await;
    now(meaning(OperationKind::Update, reply));
    let reply = client.unbind(&instance, &binding, &of, &call("fay")).await;
    let gone = meaning(OperationKind::Unbind, reply);
    assert_eq!(gone, Meaning::Succeeded(Success::Gone));
    let reply = client.deprovision(&instance, &of, &call("gus")).await;
    let gone = meaning(OperationKind::Deprovision, reply);
    assert_eq!(gone, Meaning::Succeeded(Success::Gone));
    // A repeated delete is answered with 410, which is a success too.
    let reply = client.deprovision(&instance, &of, &call("gus")).await;
    let gone = meaning(OperationKind::Deprovision, reply);
    assert_eq!(gone, Meaning::Succeeded(Success::Gone));

    let hooks = broker.hooks();
    let expected = [
        (OperationKind::Provision, "ann"),
        (OperationKind::Bind, "cid"),
        (OperationKind::Update, "eve"),
        (OperationKind::Unbind, "fay"),
        (OperationKind::Deprovision, "gus"),
    ];
    assert_eq!(hooks.len(), expected.len(), "{hooks:?}");
    for (hook, (kind, name)) in hooks.iter().zip(expected) {
        assert_eq!(hook.kind, kind);
        assert_eq!(hook.user, Some(json!(user(name))));
        assert_eq!(hook.request, Some(format!("request of {name}")));
    }
    assert_eq!(hooks[0].parameters, json!({ "size": 3 }));
    broker.close().await;
}

#[tokio::test]
async fn an_instance_lifecycle_with_asynchronous_answers() {
    let broker = RunningBroker::start(|broker| broker).await;
    let (client, of) = (client(&broker), offered(ASYNC));
    let (instance, binding) = (instance(), binding());

    let reply = client
        .provision(&instance, &provision_body(ASYNC), &call("ann"))
        .await;
    let token_of = token(meaning(OperationKind::Provision, reply));
    assert!(token_of.is_some());
    let operation = Operation::provision(instance.clone(), of.clone(), token_of);
    let end = ended(&client, &operation).await;
    assert_eq!(end, Meaning::Succeeded(Success::Polled));

    let reply = client
        .bind(&instance, &binding, &bind_body(ASYNC), &call("cid"))
        .await;
    let token_of = token(meaning(OperationKind::Bind, reply));
    let operation = Operation::bind(instance.clone(), binding.clone(), of.clone(), token_of);
    let bound = now(ended(&client, &operation).await);
    assert_eq!(
        bound.credentials.expect("credentials").0["password"],
        "hush"
    );

    let reply = client.update(&instance, &update_body(), &call("eve")).await;
    let token_of = token(meaning(OperationKind::Update, reply));
    let operation = Operation::update(instance.clone(), of.clone(), token_of);
    let end = ended(&client, &operation).await;
    assert_eq!(end, Meaning::Succeeded(Success::Polled));

    let reply = client.unbind(&instance, &binding, &of, &Call::new()).await;
    let token_of = token(meaning(OperationKind::Unbind, reply));
    let operation = Operation::unbind(instance.clone(), binding, of.clone(), token_of);
    let end = ended(&client, &operation).await;
    assert_eq!(end, Meaning::Succeeded(Success::Gone));
    let reply = client.deprovision(&instance, &of, &Call::new()).await;
    let token_of = token(meaning(OperationKind::Deprovision, reply));
    let operation = Operation::deprovision(instance, of, token_of);
    let end = ended(&client, &operation).await;
    assert_eq!(end, Meaning::Succeeded(Success::Gone));
    broker.close().await;
}

/// Holds: P-111.
#[tokio::test]
async fn a_binding_is_rotated_by_a_bind_that_names_its_predecessor() {
    let broker = RunningBroker::start(|broker| broker).await;
    let client = client(&broker);
    let (instance, binding) = (instance(), binding());
    let call = Call::new();
    client
        .provision(&instance, &provision_body(SYNC), &call)
        .await;
    client
        .bind(&instance, &binding, &bind_body(SYNC), &call)
        .await;
    let successor = "another".try_into().expect("an id");
    let rotation = BindBody {
        predecessor_binding_id: Some(binding.clone()),
        ..BindBody::default()
    };
    let reply = client.bind(&instance, &successor, &rotation, &call).await;
    let bound = now(meaning(OperationKind::Bind, reply));
    assert!(bound.credentials.is_some());
    // Both stay valid until each is deleted.
    for id in [&binding, &successor] {
        let fetched = client
            .fetch_binding(&instance, id, &offered(SYNC), &call)
            .await;
        assert!(matches!(classify_read(fetched), Reading::Read(_)));
    }
    broker.close().await;
}

#[tokio::test]
async fn refusals_of_a_real_broker_are_classified() {
    let broker = RunningBroker::start(|broker| broker).await;
    let client = client(&broker);
    let instance = instance();
    let synchronously = Call::new().synchronously();
    let reply = client
        .provision(&instance, &provision_body(ASYNC), &synchronously)
        .await;
    let refused = meaning(OperationKind::Provision, reply);
    assert!(
        matches!(
            refused,
            Meaning::Rejected {
                reason: RejectionReason::AsyncRequired,
                ..
            }
        ),
        "{refused:?}"
    );
    let body = provision_body(SYNC);
    client.provision(&instance, &body, &Call::new()).await;
    let mut other = body.clone();
    other.parameters = None;
    let reply = client.provision(&instance, &other, &Call::new()).await;
    let refused = meaning(OperationKind::Provision, reply);
    assert!(
        matches!(
            refused,
            Meaning::Rejected {
                reason: RejectionReason::Conflict,
                ..
            }
        ),
        "{refused:?}"
    );
    let unknown = "nobody".try_into().expect("an id");
    let fetched = client
        .fetch_instance(&unknown, &offered(SYNC), &Call::new())
        .await;
    assert_eq!(classify_read(fetched), Reading::Absent);
    broker.close().await;
}

/// Holds: P-001, P-004, P-020.
#[tokio::test]
async fn every_request_carries_version_request_identity_and_content_type() {
    let server = RawServer::always(ServerAct::answer(200, "{}")).await;
    let connection = Connection::to(&server.url()).build();
    let client = Client::new(connection.expect("a connection"));
    let (instance, binding, of) = (instance(), binding(), offered(SYNC));
    let call = Call::new();
    let operation = Operation::provision(instance.clone(), of.clone(), None);
    let of_binding = Operation::unbind(instance.clone(), binding.clone(), of.clone(), None);
    client.catalog(&call).await;
    client.fetch_instance(&instance, &of, &call).await;
    client.fetch_binding(&instance, &binding, &of, &call).await;
    client.poll(&operation, &call).await;
    client.poll(&of_binding, &call).await;
    client.deprovision(&instance, &of, &call).await;
    client.unbind(&instance, &binding, &of, &call).await;
    let without_body = server.requests().len();
    client
        .provision(&instance, &provision_body(SYNC), &call)
        .await;
    client.update(&instance, &update_body(), &call).await;
    client
        .bind(&instance, &binding, &bind_body(SYNC), &call)
        .await;
    let requests = server.requests();
    assert_eq!((without_body, requests.len()), (7, 10));
    let mut names = std::collections::BTreeSet::new();
    for (nth, request) in requests.iter().enumerate() {
        let head = request.to_lowercase();
        assert!(
            head.contains("\r\nx-broker-api-version: 2.17\r\n"),
            "{head}"
        );
        assert!(!head.contains("originating-identity"), "{head}");
        let typed = head.contains("\r\ncontent-type: application/json\r\n");
        assert_eq!(typed, nth >= without_body, "{head}");
        let name = head.split("x-broker-api-request-identity: ").nth(1);
        let name = name.and_then(|it| it.lines().next()).expect("a name");
        assert!(names.insert(name.to_owned()), "{name} is used twice");
        let changes = ["put ", "patch ", "delete "];
        let changes = changes.iter().any(|it| head.starts_with(it));
        let accepts_incomplete = head.contains("accepts_incomplete=true");
        assert_eq!(accepts_incomplete, changes, "{head}");
    }
}

/// The same call with the same body is the same request, byte for byte.
#[tokio::test]
async fn a_repeated_call_sends_the_same_bytes() {
    let server = RawServer::always(ServerAct::answer(500, "{}")).await;
    let connection = Connection::to(&server.url()).basic("user", "s3cret".into());
    let client = Client::new(connection.build().expect("a connection"));
    for _ in 0..2 {
        client
            .provision(&instance(), &provision_body(SYNC), &call("ann"))
            .await;
    }
    let requests = server.requests();
    assert_eq!(requests[0], requests[1]);
    assert!(requests[0].contains("request of ann"), "{}", requests[0]);
}
