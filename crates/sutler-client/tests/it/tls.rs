//! TLS and client certificates against a real broker.

use crate::broker::RunningBroker;
use crate::certificates::{Authority, SignedCertificate};
use secrecy::SecretString;
use std::path::PathBuf;
use sutler_broker::{ClientCertificates, Tls};
use sutler_client::wire::{Connection, ConnectionBuilder};
use sutler_client::{Call, Client, Reading, RetryCause, classify_read};
use sutler_osb::Catalog;

/// A broker with TLS, and the authority of its certificate.
struct Fixture {
    authority: Authority,
    broker: RunningBroker,
    _folder: tempfile::TempDir,
}

impl Fixture {
    async fn new(clients: Option<&Authority>) -> Self {
        let authority = Authority::new("servers");
        let signed = authority.signs("127.0.0.1");
        let folder = tempfile::tempdir().expect("a folder");
        let put = |name: &str, text: &str| -> PathBuf {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("a file");
            path
        };
        let certificate = put("tls.crt", &signed.certificate);
        let mut tls = Tls::files(certificate, put("tls.key", &signed.key));
        if let Some(clients) = clients {
            let file = put("clients.crt", &clients.pem);
            tls = tls.client_ca(file, ClientCertificates::Required);
        }
        let broker = RunningBroker::start(|broker| broker.tls(tls)).await;
        Self {
            authority,
            broker,
            _folder: folder,
        }
    }

    fn connection(&self) -> ConnectionBuilder {
        let url = format!("https://{}", self.broker.address);
        Connection::to(&url).basic("user", "s3cret".into())
    }

    /// A connection that trusts an authority.
    fn trusting(&self, authority: &Authority) -> ConnectionBuilder {
        let connection = self.connection().trust(authority.pem.as_bytes());
        connection.expect("a certificate")
    }
}

async fn catalog(connection: ConnectionBuilder) -> Reading<Catalog> {
    let client = Client::new(connection.build().expect("a connection"));
    classify_read(client.catalog(&Call::new()).await)
}

/// Whether the broker has not received the request.
fn is_unsent(reading: &Reading<Catalog>) -> bool {
    matches!(
        reading,
        Reading::Retry {
            cause: RetryCause::NotSent,
            ..
        }
    )
}

/// Holds: P-003.
#[tokio::test]
async fn a_broker_is_trusted_by_its_own_authority_and_by_no_other() {
    let fixture = Fixture::new(None).await;
    let reading = catalog(fixture.trusting(&fixture.authority)).await;
    assert!(matches!(reading, Reading::Read(_)), "{reading:?}");
    for connection in [
        fixture.trusting(&Authority::new("strangers")),
        fixture.connection(),
    ] {
        let reading = catalog(connection).await;
        assert!(is_unsent(&reading), "{reading:?}");
    }
    fixture.broker.close().await;
}

#[tokio::test]
async fn a_client_certificate_is_sent_and_without_it_the_handshake_fails() {
    let clients = Authority::new("clients");
    let fixture = Fixture::new(Some(&clients)).await;
    let with = |signed: &SignedCertificate| {
        let pem = SecretString::from(format!("{}{}", signed.certificate, signed.key));
        let connection = fixture.trusting(&fixture.authority).identity(&pem);
        connection.expect("an identity")
    };
    let reading = catalog(with(&clients.signs("platform"))).await;
    assert!(matches!(reading, Reading::Read(_)), "{reading:?}");
    for connection in [
        fixture.trusting(&fixture.authority),
        with(&Authority::new("strangers").signs("platform")),
    ] {
        let reading = catalog(connection).await;
        assert!(is_unsent(&reading), "{reading:?}");
    }
    assert!(fixture.broker.hooks().is_empty());
    fixture.broker.close().await;
}

#[tokio::test]
async fn wrong_credentials_and_wrong_certificates_are_distinguished() {
    let fixture = Fixture::new(None).await;
    let connection = fixture
        .trusting(&fixture.authority)
        .basic("user", "wrong".into());
    let reading = catalog(connection).await;
    let unauthorized = matches!(
        reading,
        Reading::Retry {
            cause: RetryCause::Unauthorized,
            ..
        }
    );
    assert!(unauthorized, "{reading:?}");
    fixture.broker.close().await;
}

/// `insecureSkipTLSVerify`, with a client certificate and without.
#[tokio::test]
async fn any_certificate_is_accepted_if_verification_is_skipped() {
    let clients = Authority::new("clients");
    for clients in [None, Some(&clients)] {
        let fixture = Fixture::new(clients).await;
        // The certificate is for 127.0.0.1, and of an authority that is not trusted.
        let url = format!("https://localhost:{}", fixture.broker.address.port());
        let mut connection = Connection::to(&url)
            .basic("user", "s3cret".into())
            .dangerously_skip_tls_verification();
        if let Some(clients) = clients {
            let signed = clients.signs("platform");
            let pem = SecretString::from(format!("{}{}", signed.certificate, signed.key));
            connection = connection.identity(&pem).expect("an identity");
        }
        let reading = catalog(connection).await;
        assert!(matches!(reading, Reading::Read(_)), "{reading:?}");
        fixture.broker.close().await;
    }
}

#[tokio::test]
async fn a_connection_shows_that_it_skips_verification() {
    let verifying = Connection::to("https://127.0.0.1").build();
    assert!(!verifying.expect("a connection").skips_tls_verification());
    let connection = Connection::to("https://127.0.0.1").dangerously_skip_tls_verification();
    let connection = connection.build().expect("a connection");
    assert!(connection.skips_tls_verification());
    let printed = format!("{connection:?}");
    assert!(
        printed.contains("skips_tls_verification: true"),
        "{printed}"
    );
}
