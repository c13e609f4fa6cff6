//! Egress rules against real listeners: what is not allowed is not connected to.

use crate::raw_server::{RawServer, ServerAct};
use std::io::ErrorKind;
use std::net::TcpListener;
use sutler_client::wire::{
    Answer, ClientCredentials, Connection, ConnectionBuilder, EgressPolicy, Method, Request,
    TransportError,
};

fn allowing(networks: &[&str]) -> EgressPolicy {
    let networks = networks.iter().map(|it| it.parse().expect("a network"));
    EgressPolicy::PublicAnd(networks.collect())
}

async fn send(connection: ConnectionBuilder) -> Result<Answer, TransportError> {
    let connection = connection.build().expect("a connection");
    connection
        .send(&Request::new(Method::Get, &["v2", "catalog"]))
        .await
}

/// The sentence of a request that was not sent.
fn unsent(outcome: Result<Answer, TransportError>) -> String {
    match outcome {
        Err(TransportError::NotSent(sentence)) => sentence,
        other => panic!("{other:?}"),
    }
}

/// A listener that has accepted nothing yet.
struct QuietListener(TcpListener);

impl QuietListener {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("it can be polled");
        Self(listener)
    }

    fn port(&self) -> u16 {
        self.0.local_addr().expect("an address").port()
    }

    /// The kernel completes connections without `accept`, so none is missed here.
    fn assert_no_connection_arrived(&self) {
        let accepted = self.0.accept();
        let is_quiet = matches!(&accepted, Err(error) if error.kind() == ErrorKind::WouldBlock);
        assert!(is_quiet, "{accepted:?}");
    }
}

#[tokio::test]
async fn a_name_that_resolves_to_loopback_is_not_connected_to() {
    let listener = QuietListener::new();
    let url = format!("http://localhost:{}", listener.port());
    for policy in [EgressPolicy::public_only(), allowing(&["10.0.0.0/8"])] {
        let sentence = unsent(send(Connection::to(&url).egress(policy)).await);
        assert!(
            sentence.contains("localhost is not at an address"),
            "{sentence}"
        );
        assert!(
            !sentence.contains("127.") && !sentence.contains("::1"),
            "{sentence}"
        );
    }
    listener.assert_no_connection_arrived();
    // The same listener is reached without a rule: it was there.
    let connection = Connection::to(&url).answer_within(std::time::Duration::from_millis(300));
    let outcome = send(connection).await;
    assert!(
        matches!(outcome, Err(TransportError::TimedOut(_))),
        "{outcome:?}"
    );
    assert!(listener.0.accept().is_ok());
}

#[tokio::test]
async fn a_name_is_connected_to_at_its_allowed_addresses() {
    let server = RawServer::always(ServerAct::answer(200, "{}")).await;
    let url = format!("http://localhost:{}", server.address.port());
    for networks in [["127.0.0.0/8"], ["127.0.0.1"]] {
        let connection = Connection::to(&url).egress(allowing(&networks));
        let answer = send(connection).await.expect("an answer");
        assert_eq!(answer.status, 200);
    }
    // The name is in the request as before.
    let head = server.requests()[0].to_lowercase();
    assert!(head.contains("\r\nhost: localhost:"), "{head}");
}

#[tokio::test]
async fn an_address_in_the_url_is_refused_when_the_connection_is_set_up() {
    let listener = QuietListener::new();
    for host in [
        "127.0.0.1",
        "127.1",
        "0x7f000001",
        "2130706433",
        "0",
        "[::ffff:127.0.0.1]",
    ] {
        let url = format!("http://{host}:{}", listener.port());
        let refusal = Connection::to(&url).egress(EgressPolicy::public_only());
        let sentence = refusal.build().expect_err(host).to_string();
        assert!(
            sentence.contains("not at an address that is allowed"),
            "{sentence}"
        );
    }
    listener.assert_no_connection_arrived();
}

#[tokio::test]
async fn an_allowed_address_in_the_url_is_connected_to() {
    let server = RawServer::always(ServerAct::answer(200, "{}")).await;
    let connection = Connection::to(&server.url()).egress(allowing(&["127.0.0.1"]));
    assert_eq!(send(connection).await.expect("an answer").status, 200);
}

#[tokio::test]
async fn a_token_endpoint_is_under_the_same_rules() {
    let broker = RawServer::always(ServerAct::answer(200, "{}")).await;
    let listener = QuietListener::new();
    let connection = |host: &str| {
        let url = format!("http://{host}:{}/oauth/token", listener.port());
        let client = ClientCredentials::new(&url, "id", "hush".into());
        Connection::to("http://broker.example")
            .egress(EgressPolicy::public_only())
            .oauth2(client)
    };
    let sentence = connection("127.0.0.1")
        .build()
        .expect_err("loopback")
        .to_string();
    assert!(
        sentence.contains("not at an address that is allowed"),
        "{sentence}"
    );
    let sentence = unsent(send(connection("localhost")).await);
    assert!(sentence.contains("no access token"), "{sentence}");
    assert!(
        sentence.contains("localhost is not at an address"),
        "{sentence}"
    );
    listener.assert_no_connection_arrived();
    assert!(broker.requests().is_empty());
}

#[tokio::test]
async fn the_debug_output_of_a_connection_shows_its_rules() {
    let connection = Connection::to("https://broker.example").egress(allowing(&["10.0.0.0/8"]));
    let printed = format!("{:?}", connection.build().expect("a connection"));
    assert!(
        printed.contains("PublicAnd") && printed.contains("10.0.0.0"),
        "{printed}"
    );
}
