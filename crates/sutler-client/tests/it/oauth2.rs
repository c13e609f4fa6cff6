//! OAuth2 client credentials against a real token endpoint and a real broker, both scripted.

use crate::certificates::Authority;
use crate::raw_server::{RawServer, ServerAct};
use std::time::Duration;
use sutler_client::wire::{
    Answer, ClientCredentials, Connection, ConnectionBuilder, Method, Proof, Request,
    SecretPlacement, TransportError,
};
use tokio::task::JoinSet;

/// Longer than a token may be the reason of a 401 without being replaced.
const A_WHILE: Duration = Duration::from_secs(6);

fn request() -> Request {
    Request::new(Method::Put, &["v2", "service_instances", "i"])
        .header("X-Broker-API-Request-Identity", "request 7")
        .body("{\"plan_id\":\"p\"}")
}

/// A server that gives the tokens `t0`, `t1`, … for an hour each.
async fn token_server() -> RawServer {
    RawServer::scripted(|nth| token_answer(&format!("t{nth}"))).await
}

fn token_answer(token: &str) -> ServerAct {
    let body = format!(r#"{{"access_token":"{token}","token_type":"bearer","expires_in":3600}}"#);
    ServerAct::answer(200, &body)
}

/// A broker that refuses one token.
async fn broker_refusing(token: &'static str) -> RawServer {
    RawServer::reading(move |_, request| {
        let is_refused = bearer(&String::from_utf8_lossy(request)).as_deref() == Some(token);
        ServerAct::answer(if is_refused { 401 } else { 200 }, "{}")
    })
    .await
}

fn client(tokens: &RawServer) -> ClientCredentials {
    ClientCredentials::new(
        &format!("{}/oauth/token?zone=a", tokens.url()),
        "id",
        "hush".into(),
    )
}

fn to(broker: &RawServer, tokens: &RawServer) -> ConnectionBuilder {
    Connection::to(&broker.url()).oauth2(client(tokens))
}

fn connect(broker: &RawServer, tokens: &RawServer) -> Connection {
    to(broker, tokens).build().expect("a connection")
}

fn header(request: &str, name: &str) -> Option<String> {
    let line = request
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    line.map(str::to_owned)
}

fn bearer(request: &str) -> Option<String> {
    Some(
        header(request, "authorization")?
            .strip_prefix("Bearer ")?
            .to_owned(),
    )
}

/// The tokens that a broker received, in order.
fn bearers(broker: &RawServer) -> Vec<String> {
    let requests = broker.requests();
    requests.iter().filter_map(|it| bearer(it)).collect()
}

async fn status(connection: &Connection) -> u16 {
    connection.send(&request()).await.expect("an answer").status
}

/// The statuses of requests that are sent at the same time.
async fn statuses(connection: &Connection, count: usize) -> Vec<Result<Answer, TransportError>> {
    let mut sending = JoinSet::new();
    for _ in 0..count {
        let connection = connection.clone();
        sending.spawn(async move { connection.send(&request()).await });
    }
    sending.join_all().await
}

/// Moves the clock of tokens forward. It stands still only here, not while bytes are on their way.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

fn unsent(outcome: Result<Answer, TransportError>) -> String {
    match outcome {
        Err(TransportError::NotSent(sentence)) => sentence,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_token_is_asked_for_by_basic_authentication() {
    let (broker, tokens) = (broker_refusing("").await, token_server().await);
    let client = client(&tokens).scope("broker.read").scope("broker.write");
    let connection = Connection::to(&broker.url()).oauth2(client).build();
    assert_eq!(status(&connection.expect("a connection")).await, 200);
    let [asked] = &tokens.requests()[..] else {
        panic!("{:?}", tokens.requests());
    };
    assert!(
        asked.starts_with("POST /oauth/token?zone=a HTTP/1.1\r\n"),
        "{asked}"
    );
    assert_eq!(
        header(asked, "authorization").as_deref(),
        Some("Basic aWQ6aHVzaA==")
    );
    let kind = "application/x-www-form-urlencoded";
    assert_eq!(header(asked, "content-type").as_deref(), Some(kind));
    let form = "\r\n\r\ngrant_type=client_credentials&scope=broker.read%20broker.write";
    assert!(asked.ends_with(form), "{asked}");
    assert_eq!(bearers(&broker), ["t0"]);
}

#[tokio::test]
async fn a_secret_may_be_sent_in_the_body_instead() {
    let (broker, tokens) = (broker_refusing("").await, token_server().await);
    let client = client(&tokens).placement(SecretPlacement::Body);
    let connection = Connection::to(&broker.url()).oauth2(client).build();
    assert_eq!(status(&connection.expect("a connection")).await, 200);
    let asked = &tokens.requests()[0];
    assert_eq!(header(asked, "authorization"), None);
    let form = "\r\n\r\ngrant_type=client_credentials&client_id=id&client_secret=hush";
    assert!(asked.ends_with(form), "{asked}");
}

#[tokio::test]
async fn a_token_is_fetched_once_for_many_concurrent_requests() {
    let (broker, tokens) = (broker_refusing("").await, token_server().await);
    let connection = connect(&broker, &tokens);
    for outcome in statuses(&connection, 30).await {
        assert_eq!(outcome.expect("an answer").status, 200);
    }
    assert_eq!(tokens.requests().len(), 1);
    assert_eq!(bearers(&broker), vec!["t0"; 30]);
}

#[tokio::test]
async fn a_token_is_replaced_shortly_before_it_expires() {
    let (broker, tokens) = (broker_refusing("").await, token_server().await);
    let connection = connect(&broker, &tokens);
    status(&connection).await;
    pass(Duration::from_secs(3560)).await;
    status(&connection).await;
    pass(Duration::from_secs(11)).await;
    status(&connection).await;
    assert_eq!(bearers(&broker), ["t0", "t0", "t1"]);
}

/// A revoked token must not look like wrong credentials.
#[tokio::test]
async fn a_request_refused_with_an_older_token_is_sent_once_more_with_another() {
    let (broker, tokens) = (broker_refusing("t0").await, token_server().await);
    let connection = connect(&broker, &tokens);
    assert_eq!(status(&connection).await, 401);
    pass(A_WHILE).await;
    assert_eq!(status(&connection).await, 200);
    assert_eq!(bearers(&broker), ["t0", "t0", "t1"]);
    // Besides the token, the repeated request is the same.
    let requests = broker.requests();
    assert_eq!(requests[1].replace("Bearer t0", "Bearer t1"), requests[2]);
}

/// Its successor would be refused too.
#[tokio::test]
async fn a_request_refused_with_a_fresh_token_is_not_repeated() {
    let broker = RawServer::always(ServerAct::answer(401, "{}")).await;
    let tokens = token_server().await;
    let connection = connect(&broker, &tokens);
    assert_eq!(
        [status(&connection).await, status(&connection).await],
        [401, 401]
    );
    assert_eq!(bearers(&broker), ["t0", "t0"]);
    // A broker that always refuses costs one token and one more request per while.
    pass(A_WHILE).await;
    assert_eq!(
        [status(&connection).await, status(&connection).await],
        [401, 401]
    );
    assert_eq!(bearers(&broker), ["t0", "t0", "t0", "t1", "t1"]);
    assert_eq!(tokens.requests().len(), 2);
}

#[tokio::test]
async fn requests_refused_at_the_same_time_share_one_new_token() {
    let (broker, tokens) = (broker_refusing("t0").await, token_server().await);
    let connection = connect(&broker, &tokens);
    assert_eq!(status(&connection).await, 401);
    pass(A_WHILE).await;
    for outcome in statuses(&connection, 20).await {
        assert_eq!(outcome.expect("an answer").status, 200);
    }
    assert_eq!(tokens.requests().len(), 2);
}

#[tokio::test]
async fn without_a_token_nothing_is_sent_to_the_broker() {
    let long = format!(r#"{{"access_token":"{}"}}"#, "x".repeat(100_000));
    for (act, words) in [
        (
            ServerAct::answer(
                401,
                r#"{"error":"invalid_client","error_description":"hush"}"#,
            ),
            "401 invalid_client; check the client's id",
        ),
        (ServerAct::answer(200, "<html>hush"), "is its URL right"),
        (
            ServerAct::answer_with(302, "Location: http://127.0.0.1/\r\n", ""),
            "check its URL",
        ),
        (ServerAct::answer(503, "hush"), "it may work again later"),
        (ServerAct::answer(200, &long), "longer than 65536 bytes"),
        (ServerAct::Say(b"hush\r\n\r\n".to_vec()), "not HTTP"),
        (ServerAct::Say(Vec::new()), "closed"),
    ] {
        let broker = broker_refusing("").await;
        let tokens = RawServer::always(act).await;
        let sentence = unsent(connect(&broker, &tokens).send(&request()).await);
        assert!(sentence.contains("no access token: "), "{sentence}");
        assert!(sentence.contains(words), "{sentence}");
        assert!(!sentence.contains("hush"), "{sentence}");
        assert!(broker.requests().is_empty());
    }
}

#[tokio::test]
async fn a_token_endpoint_that_is_silent_is_not_a_broker_that_is_silent() {
    let broker = broker_refusing("").await;
    let tokens = RawServer::always(ServerAct::SayAndHang(Vec::new())).await;
    let connection = to(&broker, &tokens).answer_within(Duration::from_millis(300));
    let sentence = unsent(
        connection
            .build()
            .expect("a connection")
            .send(&request())
            .await,
    );
    assert!(sentence.contains("no access token: "), "{sentence}");
    assert!(broker.requests().is_empty());
}

#[tokio::test]
async fn concurrent_requests_share_a_failure_and_later_ones_try_again() {
    let broker = broker_refusing("").await;
    let tokens = RawServer::scripted(|nth| match nth {
        0 => ServerAct::answer(503, "{}"),
        _ => token_answer("t1"),
    })
    .await;
    let connection = connect(&broker, &tokens);
    for outcome in statuses(&connection, 30).await {
        assert!(unsent(outcome).contains("503"));
    }
    assert_eq!(tokens.requests().len(), 1);
    assert_eq!(status(&connection).await, 200);
}

/// The request was refused, so nothing has happened, and the credentials may still be right.
#[tokio::test]
async fn a_refused_request_without_another_token_counts_as_not_sent() {
    let broker = broker_refusing("t0").await;
    let tokens = RawServer::scripted(|nth| match nth {
        0 => token_answer("t0"),
        _ => ServerAct::answer(503, "{}"),
    })
    .await;
    let connection = connect(&broker, &tokens);
    status(&connection).await;
    pass(A_WHILE).await;
    let sentence = unsent(connection.send(&request()).await);
    assert!(sentence.contains("503"), "{sentence}");
}

#[tokio::test]
async fn wrong_or_missing_credentials_need_no_token() {
    let (broker, tokens) = (broker_refusing("").await, token_server().await);
    let connection = connect(&broker, &tokens);
    assert!(connection.is_authenticated());
    for proof in [Proof::Missing, Proof::Wrong] {
        let answer = connection.send(&request().proof(proof)).await;
        assert_eq!(answer.expect("an answer").status, 200);
    }
    assert!(tokens.requests().is_empty());
    assert_eq!(bearers(&broker), ["sutler-wrong-on-purpose"]);
}

#[tokio::test]
async fn a_token_endpoint_is_trusted_like_the_broker() {
    let broker = broker_refusing("").await;
    let authority = Authority::new("servers");
    let tls = authority.signs("127.0.0.1").acceptor();
    let tokens = RawServer::always_with_tls(tls, token_answer("t0")).await;
    let connection = || {
        let url = format!("https://{}/oauth/token", tokens.address);
        let client = ClientCredentials::new(&url, "id", "hush".into());
        Connection::to(&broker.url()).oauth2(client)
    };
    let sentence = unsent(
        connection()
            .build()
            .expect("a connection")
            .send(&request())
            .await,
    );
    assert!(sentence.contains("no access token: "), "{sentence}");
    assert!(broker.requests().is_empty());
    let trusting = connection()
        .trust(authority.pem.as_bytes())
        .expect("a certificate");
    for connection in [trusting, connection().dangerously_skip_tls_verification()] {
        assert_eq!(
            status(&connection.build().expect("a connection")).await,
            200
        );
    }
    assert_eq!(bearers(&broker), ["t0", "t0"]);
}

#[tokio::test]
async fn neither_secret_nor_token_is_printed() {
    let broker = broker_refusing("").await;
    let tokens = RawServer::always(token_answer("hush")).await;
    let connection = connect(&broker, &tokens);
    status(&connection).await;
    let printed = format!("{connection:?} {:?}", client(&tokens).scope("s"));
    assert!(printed.contains("oauth2"), "{printed}");
    assert!(!printed.contains("hush"), "{printed}");
}
