//! Polling over a real connection: the contents of each poll, and that hostile brokers are polled no
//! longer than to the deadline.

use crate::broker::offered;
use crate::raw_server::{RawServer, ServerAct};
use std::time::Duration;
use sutler_client::wire::Connection;
use sutler_client::{
    Call, CleanupDuty, Client, Meaning, Operation, PollSchedule, ReplyContext, Success,
};
use sutler_osb::FetchBindingResponse;

/// Short waits, with a deadline long enough for a busy machine.
const PACE: PollSchedule = PollSchedule {
    first: Duration::from_millis(1),
    shortest: Duration::from_millis(1),
    longest: Duration::from_millis(10),
    within: Duration::from_secs(20),
};
/// A short deadline, for operations that never end.
const SOON: PollSchedule = PollSchedule {
    within: Duration::from_millis(300),
    ..PACE
};

async fn followed(server: &RawServer, operation: &Operation) -> Meaning<FetchBindingResponse> {
    followed_at(&PACE, server, operation).await
}

async fn followed_at(
    schedule: &PollSchedule,
    server: &RawServer,
    operation: &Operation,
) -> Meaning<FetchBindingResponse> {
    let connection = Connection::to(&server.url())
        .answer_within(schedule.within)
        .answer_bytes_max(4096)
        .build();
    let client = Client::new(connection.expect("a connection"));
    let following = async {
        let (call, context) = (Call::new(), ReplyContext::default());
        client
            .poll_to_end(operation, None, &call, schedule, &context)
            .await
    };
    tokio::time::timeout(2 * PACE.within, following)
        .await
        .expect("it ends by itself")
}

fn update(token: Option<&str>) -> Operation {
    let token = token.map(|it| it.try_into().expect("a token"));
    Operation::update("i".try_into().expect("an id"), offered("old plan"), token)
}

fn bind() -> Operation {
    let token = Some("the bind".try_into().expect("a token"));
    Operation::bind(
        "i".try_into().expect("an id"),
        "b".try_into().expect("an id"),
        offered("p"),
        token,
    )
}

fn target(request: &str) -> &str {
    request.split(' ').nth(1).unwrap_or_default()
}

/// Holds: P-052, P-053.
#[tokio::test]
async fn every_poll_carries_the_same_operation_and_the_old_plan() {
    let server = RawServer::scripted(|nth| match nth {
        0 => ServerAct::answer(200, r#"{"state":"in progress","operation":"another"}"#),
        1 => ServerAct::answer(500, "{}"),
        2 => ServerAct::answer(410, "{}"),
        _ => ServerAct::answer(200, r#"{"state":"succeeded"}"#),
    })
    .await;
    let end = followed(&server, &update(Some("task/7 &x"))).await;
    assert_eq!(end, Meaning::Succeeded(Success::Polled));
    let requests = server.requests();
    assert_eq!(requests.len(), 4);
    for request in &requests {
        assert_eq!(
            target(request),
            "/v2/service_instances/i/last_operation?service_id=service%2F1%20%C3%A4\
             &plan_id=old%20plan&operation=task%2F7%20%26x"
        );
    }
}

/// Holds: P-059.
#[tokio::test]
async fn after_a_bind_the_binding_is_fetched() {
    let server = RawServer::scripted(|nth| match nth {
        0 => ServerAct::answer(200, r#"{"state":"succeeded"}"#),
        _ => ServerAct::answer(200, r#"{"credentials":{"password":"hush"}}"#),
    })
    .await;
    let end = followed(&server, &bind()).await;
    assert!(!format!("{end:?}").contains("hush"), "{end:?}");
    let Meaning::Succeeded(Success::Now(binding)) = end else {
        panic!("{end:?}");
    };
    assert_eq!(
        binding.credentials.expect("credentials").0["password"],
        "hush"
    );
    let requests = server.requests();
    assert!(target(&requests[0]).contains("/last_operation?"));
    let fetch = target(&requests[1]);
    assert!(fetch.starts_with("/v2/service_instances/i/service_bindings/b?"));
}

#[tokio::test]
async fn a_binding_that_is_reported_and_cannot_be_fetched_must_be_deleted() {
    let server = RawServer::scripted(|nth| match nth {
        0 => ServerAct::answer(200, r#"{"state":"succeeded"}"#),
        _ => ServerAct::answer(404, "{}"),
    })
    .await;
    assert!(followed(&server, &bind()).await.mitigates());
}

#[tokio::test]
async fn nonsense_is_polled_through_to_the_deadline() {
    let endless = ServerAct::Repeat(
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{".to_vec(),
        vec![b' '; 4096],
    );
    for act in [
        endless,
        ServerAct::Say(Vec::new()),
        ServerAct::Say(b"garbage\r\n\r\n".to_vec()),
        ServerAct::SayAndHang(Vec::new()),
        ServerAct::answer(200, r#"{"state":"whatever"}"#),
        ServerAct::answer_with(
            200,
            "Retry-After: 99999999\r\n",
            r#"{"state":"in progress"}"#,
        ),
        ServerAct::answer_with(302, "Location: /elsewhere\r\n", ""),
    ] {
        let server = RawServer::always(act).await;
        let end = followed_at(&SOON, &server, &update(None)).await;
        let uncertain = matches!(
            end,
            Meaning::Failed {
                cleanup: CleanupDuty::Uncertain,
                ..
            }
        );
        assert!(uncertain, "{end:?}");
        assert!(!server.requests().is_empty());
    }
}
