//! The bytes of requests on the wire: the same for a builder, the client, and a request that was written down.

use crate::raw_server::{RawServer, ServerAct};
use serde_json::{Map, json};
use sutler_client::wire::{Answer, Connection, Method, Request, TransportError};
use sutler_client::{Call, Client, EntityTag, Incomplete, Operation, PlanIds, RequestBuilder};
use sutler_osb::{
    BindBody, BindingId, InstanceId, OriginatingIdentity, ProvisionBody, RequestIdentity,
    UpdateBody,
};
use uuid::Uuid;

fn user() -> OriginatingIdentity {
    let mut value = Map::new();
    value.insert("user_id".to_owned(), json!("ann"));
    OriginatingIdentity {
        platform: "cloudfoundry".to_owned(),
        value,
    }
}

fn identity() -> RequestIdentity {
    "request 7".try_into().expect("an identity")
}

fn instance() -> InstanceId {
    "an instance/ä?".try_into().expect("an id")
}

fn binding() -> BindingId {
    "a binding#1".try_into().expect("an id")
}

fn offered() -> PlanIds {
    PlanIds {
        service_id: "a service".try_into().expect("an id"),
        plan_id: "a&plan".try_into().expect("an id"),
    }
}

fn provision_body() -> ProvisionBody {
    let body = json!({
        "service_id": "a service", "plan_id": "a&plan",
        "organization_guid": "o", "space_guid": "s",
        "parameters": { "z": "\u{1F600}\"\n", "a": 0.1, "m": { "y": 1e300, "b": [] } },
    });
    serde_json::from_value(body).expect("a body")
}

fn update_body() -> UpdateBody {
    serde_json::from_value(json!({ "service_id": "a service" })).expect("a body")
}

fn bind_body() -> BindBody {
    let body = json!({ "service_id": "a service", "plan_id": "a&plan" });
    serde_json::from_value(body).expect("a body")
}

fn polled() -> Operation {
    let token = Some("a/b &=?".try_into().expect("a token"));
    Operation::unbind(instance(), binding(), offered(), token)
}

/// The request of every endpoint.
fn requests(builder: &RequestBuilder) -> Vec<Request> {
    let (instance, binding, of) = (instance(), binding(), offered());
    vec![
        builder.catalog(None),
        builder
            .provision(&instance, &provision_body())
            .expect("a body"),
        builder.fetch_instance(&instance, &of),
        builder.update(&instance, &update_body()).expect("a body"),
        builder.deprovision(&instance, &of),
        builder
            .bind(&instance, &binding, &bind_body())
            .expect("a body"),
        builder.fetch_binding(&instance, &binding, &of),
        builder.unbind(&instance, &binding, &of),
        builder.poll(&Operation::provision(instance, of, None)),
        builder.poll(&polled()),
    ]
}

/// Sends the request of every endpoint by a client.
async fn send_all(client: &Client, call: &Call) {
    let (instance, binding, of) = (instance(), binding(), offered());
    client.catalog(call).await;
    client.provision(&instance, &provision_body(), call).await;
    client.fetch_instance(&instance, &of, call).await;
    client.update(&instance, &update_body(), call).await;
    client.deprovision(&instance, &of, call).await;
    client.bind(&instance, &binding, &bind_body(), call).await;
    client.fetch_binding(&instance, &binding, &of, call).await;
    client.unbind(&instance, &binding, &of, call).await;
    client
        .poll(&Operation::provision(instance, of, None), call)
        .await;
    client.poll(&polled(), call).await;
}

fn connection(server: &RawServer) -> Connection {
    let connection = Connection::to(&server.url()).basic("user", "s3cret".into());
    connection.build().expect("a connection")
}

#[tokio::test]
async fn a_request_that_was_written_down_puts_the_same_bytes_on_the_wire() {
    let server = RawServer::always(ServerAct::answer(500, "{}")).await;
    let builder = RequestBuilder::new(&identity()).on_behalf_of(user());
    let mut all = requests(&builder);
    all.push(Request::new(Method::Put, &["v2", "…"]).body(vec![0, 0xff, b'\n', 0xc3]));
    for request in &all {
        let first = connection(&server);
        first.send(request).await.expect("an answer");
        let stored = request.to_stored().expect("it can be stored");
        drop(first);
        let again = Request::from_stored(&stored).expect("it can be read");
        let second = connection(&server);
        second.send(&again).await.expect("an answer");
    }
    let sent = server.request_bytes();
    assert_eq!(sent.len(), 2 * all.len());
    for (nth, pair) in sent.chunks(2).enumerate() {
        assert!(!pair[0].is_empty());
        assert_eq!(pair[0], pair[1], "request {nth}");
    }
}

/// A new build must send what an older one has written down and perhaps sent.
#[tokio::test]
async fn the_bytes_of_a_provision_are_these() {
    let server = RawServer::always(ServerAct::answer(500, "{}")).await;
    let builder = RequestBuilder::new(&identity()).on_behalf_of(user());
    let body: ProvisionBody = serde_json::from_value(json!({
        "service_id": "s", "plan_id": "p", "organization_guid": "o", "space_guid": "s",
    }))
    .expect("a body");
    let request = builder.provision(&instance(), &body).expect("a request");
    connection(&server).send(&request).await.expect("an answer");
    let body = r#"{"service_id":"s","plan_id":"p","organization_guid":"o","space_guid":"s"}"#;
    let expected = format!(
        "PUT /v2/service_instances/an%20instance%2F%C3%A4%3F?accepts_incomplete=true HTTP/1.1\r\n\
         authorization: Basic dXNlcjpzM2NyZXQ=\r\n\
         x-broker-api-version: 2.17\r\n\
         x-broker-api-request-identity: request 7\r\n\
         accept: application/json\r\n\
         x-broker-api-originating-identity: cloudfoundry eyJ1c2VyX2lkIjoiYW5uIn0=\r\n\
         content-type: application/json\r\n\
         host: {}\r\n\
         content-length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    );
    assert_eq!(server.requests(), [expected]);
}

#[tokio::test]
async fn the_client_sends_what_the_builder_builds() {
    let server = RawServer::always(ServerAct::answer(500, "{}")).await;
    let connection = connection(&server);
    let client = Client::new(connection.clone());
    for (call, builder) in [
        (
            Call::new().named(identity()).on_behalf_of(user()),
            RequestBuilder::new(&identity()).on_behalf_of(user()),
        ),
        (
            Call::new().named(identity()).synchronously(),
            RequestBuilder::new(&identity()).incomplete(Incomplete::Unwanted),
        ),
    ] {
        let before = server.requests().len();
        send_all(&client, &call).await;
        let by_client = server.requests().split_off(before);
        for request in requests(&builder) {
            connection.send(&request).await.expect("an answer");
        }
        let by_builder = server.requests().split_off(before + by_client.len());
        assert_eq!(by_client.len(), 10);
        assert_eq!(by_client, by_builder);
    }
}

#[test]
fn the_same_input_builds_the_same_request() {
    let id = Uuid::from_u128(7);
    assert_eq!(
        requests(&RequestBuilder::from_uuid(id)),
        requests(&RequestBuilder::from_uuid(id))
    );
    let named: RequestIdentity = id.to_string().try_into().expect("an identity");
    assert_eq!(RequestBuilder::from_uuid(id), RequestBuilder::new(&named));
}

/// Holds: P-040.
#[tokio::test]
async fn a_catalog_is_asked_for_with_the_tag_of_its_last_answer() {
    let act = ServerAct::answer_with(304, "ETag: \"v2\"\r\n", "");
    let server = RawServer::always(act).await;
    let last = Answer::new(200, &[("ETag", "W/\"v1\"")], "{}");
    let tag = EntityTag::of(&last).expect("a tag");
    let builder = RequestBuilder::new(&identity());
    let answer = connection(&server).send(&builder.catalog(Some(&tag))).await;
    assert_eq!(answer.expect("an answer").status, 304);
    connection(&server)
        .send(&builder.catalog(None))
        .await
        .expect("an answer");
    let requests = server.requests();
    assert!(
        requests[0].contains("\r\nif-none-match: W/\"v1\"\r\n"),
        "{}",
        requests[0]
    );
    assert!(!requests[1].contains("if-none-match"), "{}", requests[1]);
}

#[tokio::test]
async fn a_target_is_sent_up_to_its_longest_length() {
    let server = RawServer::always(ServerAct::answer(200, "{}")).await;
    let connection = Connection::to(&server.url()).build().expect("a connection");
    let longest = 16 * 1024 - 1;
    let request = Request::new(Method::Get, &[&"x".repeat(longest)]);
    let answer = connection.send(&request).await;
    assert_eq!(answer.expect("an answer").status, 200);
    let request = Request::new(Method::Get, &[&"x".repeat(longest + 1)]);
    let outcome = connection.send(&request).await;
    let Err(TransportError::NotSent(sentence)) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(sentence.contains("16385 bytes"), "{sentence}");
    assert_eq!(server.requests().len(), 1);
}
