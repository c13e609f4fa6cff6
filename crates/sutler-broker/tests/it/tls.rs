//! TLS and client certificates with real clients, and certificate changes under load.

mod certificate_authority;
mod certificate_reload;

use crate::fixture::server_port::{Port, read_to_end};
use crate::fixture::{AUTHORIZATION, VERSION, WAIT_LIMIT};
use certificate_authority::{Authority, Files, SignedCertificate};
use reqwest::{Certificate, Client, ClientBuilder, Identity, Response};
use std::process::{Command, Stdio};
use std::time::Duration;
use sutler_broker::{Broker, BuildError, ClientCertificates, Tls};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Server name of every valid certificate.
const NAME: &str = "broker.test";

/// A broker with TLS, its files, and the authority behind them.
struct Fixture {
    authority: Authority,
    files: Files,
    port: Port,
}

impl Fixture {
    async fn new(clients: Option<(&Authority, ClientCertificates)>) -> Self {
        let authority = Authority::new("servers");
        let signed = authority.signs(NAME);
        Self::with(authority, &signed, clients).await
    }

    async fn with(
        authority: Authority,
        signed: &SignedCertificate,
        clients: Option<(&Authority, ClientCertificates)>,
    ) -> Self {
        let files = Files::new();
        files.put_both(signed);
        let mut tls = Tls::files(files.path("tls.crt"), files.path("tls.key"));
        if let Some((clients, demand)) = clients {
            tls = tls.client_ca(files.put("clients.crt", &clients.pem), demand);
        }
        let port = Port::open(|broker| {
            broker.tls(tls).settings(|settings| {
                settings.limits.handshake_within = Duration::from_millis(700);
            })
        })
        .await;
        Self {
            authority,
            files,
            port,
        }
    }

    /// A client that trusts an authority and resolves the name.
    fn client(&self, trusted: &Authority) -> ClientBuilder {
        let root = Certificate::from_pem(trusted.pem.as_bytes()).expect("a certificate");
        Client::builder()
            .tls_certs_only([root])
            .resolve(NAME, self.port.address)
            .timeout(WAIT_LIMIT)
    }

    /// A client with its own certificate.
    fn client_with(&self, signed: &SignedCertificate) -> Client {
        let pem = format!("{}{}", signed.certificate, signed.key);
        let identity = Identity::from_pem(pem.as_bytes()).expect("an identity");
        let client = self.client(&self.authority).identity(identity);
        client.build().expect("a client")
    }

    async fn catalog(&self, client: &Client) -> reqwest::Result<Response> {
        self.catalog_at(client, NAME).await
    }

    async fn catalog_at(&self, client: &Client, name: &str) -> reqwest::Result<Response> {
        let url = format!("https://{name}:{}/v2/catalog", self.port.address.port());
        let request = client.get(url).header("Authorization", AUTHORIZATION);
        request.header(VERSION, "2.17").send().await
    }

    async fn serves(&self, client: &Client) {
        let response = self.catalog(client).await.expect("an answer");
        assert_eq!(response.status(), 200);
    }

    async fn serves_next_client(&self) {
        let client = self.client(&self.authority).build().expect("a client");
        self.serves(&client).await;
    }
}

#[tokio::test]
async fn both_versions_of_http_are_served_over_tls() {
    let fixture = Fixture::new(None).await;
    let client = fixture
        .client(&fixture.authority)
        .build()
        .expect("a client");
    let response = fixture.catalog(&client).await.expect("an answer");
    assert_eq!(response.version(), hyper::Version::HTTP_2);
    let older = fixture.client(&fixture.authority).http1_only().build();
    let response = fixture.catalog(&older.expect("a client")).await;
    let response = response.expect("an answer");
    assert_eq!(response.version(), hyper::Version::HTTP_11);
    assert_eq!(response.status(), 200);
    fixture.port.close().await;
}

#[tokio::test]
async fn clients_refuse_another_authority_another_name_and_expired_certificates() {
    let fixture = Fixture::new(None).await;
    let strangers = Authority::new("strangers");
    let client = fixture.client(&strangers).build().expect("a client");
    assert!(fixture.catalog(&client).await.is_err());
    let client = fixture.client(&fixture.authority);
    let client = client.resolve("other.test", fixture.port.address).build();
    let client = client.expect("a client");
    assert!(fixture.catalog_at(&client, "other.test").await.is_err());
    fixture.serves_next_client().await;
    fixture.port.close().await;

    let authority = Authority::new("servers");
    let signed = authority.expired(NAME);
    let fixture = Fixture::with(authority, &signed, None).await;
    let client = fixture
        .client(&fixture.authority)
        .build()
        .expect("a client");
    assert!(fixture.catalog(&client).await.is_err());
    fixture.port.close().await;
}

#[tokio::test]
async fn a_required_client_certificate_must_be_present_trusted_and_valid() {
    let clients = Authority::new("clients");
    let fixture = Fixture::new(Some((&clients, ClientCertificates::Required))).await;
    let bare = fixture
        .client(&fixture.authority)
        .build()
        .expect("a client");
    assert!(fixture.catalog(&bare).await.is_err());
    let stranger = Authority::new("clients").signs("platform");
    let stranger = fixture.client_with(&stranger);
    assert!(fixture.catalog(&stranger).await.is_err());
    let late = fixture.client_with(&clients.expired("platform"));
    assert!(fixture.catalog(&late).await.is_err());
    fixture
        .serves(&fixture.client_with(&clients.signs("platform")))
        .await;
    fixture.port.close().await;
}

#[tokio::test]
async fn an_optional_client_certificate_may_be_missing_but_not_invalid() {
    let clients = Authority::new("clients");
    let fixture = Fixture::new(Some((&clients, ClientCertificates::Optional))).await;
    fixture.serves_next_client().await;
    fixture
        .serves(&fixture.client_with(&clients.signs("platform")))
        .await;
    let stranger = Authority::new("others").signs("platform");
    assert!(
        fixture
            .catalog(&fixture.client_with(&stranger))
            .await
            .is_err()
    );
    fixture.port.close().await;
}

/// The ClientHello of TLS 1.1: version, time and random bytes, one cipher, no compression.
fn hello_of_tls_1_1() -> Vec<u8> {
    let mut body = vec![0x03, 0x02];
    body.extend([0x5a; 32]);
    body.extend([0x00, 0x00, 0x02, 0x00, 0x2f, 0x01, 0x00]);
    let mut hello = vec![
        0x16,
        0x03,
        0x01,
        0x00,
        u8::try_from(body.len() + 4).unwrap(),
    ];
    hello.extend([0x01, 0x00, 0x00, u8::try_from(body.len()).unwrap()]);
    hello.extend(body);
    hello
}

#[tokio::test]
async fn old_versions_of_tls_plain_text_and_silence_are_refused() {
    let fixture = Fixture::new(None).await;
    let mut stream = fixture.port.connect().await;
    stream
        .write_all(&hello_of_tls_1_1())
        .await
        .expect("it is taken");
    let mut alert = [0; 7];
    stream.read_exact(&mut alert).await.expect("an alert");
    // Fatal, protocol_version or handshake_failure.
    assert_eq!((alert[0], alert[5]), (0x15, 2), "{alert:?}");
    assert!([70, 40].contains(&alert[6]), "{alert:?}");
    let plain = "GET /v2/catalog HTTP/1.1\r\nHost: x\r\n\r\n";
    let answer = fixture.port.send(plain.as_bytes()).await;
    assert!(!answer.contains("HTTP/"), "{answer}");
    // A silent client is closed.
    let mut silent = fixture.port.connect().await;
    assert_eq!(read_to_end(&mut silent).await, "");
    fixture.serves_next_client().await;
    fixture.port.close().await;
}

#[tokio::test]
async fn openssl_accepts_the_served_certificate_and_protocols() {
    let fixture = Fixture::new(None).await;
    let authority = fixture.files.put("authority.crt", &fixture.authority.pem);
    let connect = async |version: &'static str| {
        let (address, authority) = (fixture.port.address.to_string(), authority.clone());
        let run = move || {
            Command::new("openssl")
                .args(["s_client", "-brief", "-verify_return_error", version])
                .args(["-servername", NAME, "-verify_hostname", NAME])
                .args(["-alpn", "h2", "-connect", &address])
                .arg("-CAfile")
                .arg(&authority)
                .stdin(Stdio::null())
                .output()
        };
        tokio::task::spawn_blocking(run).await.expect("no panic")
    };
    let Ok(modern) = connect("-tls1_3").await else {
        assert!(
            std::env::var_os("CI").is_none(),
            "openssl is not on the PATH"
        );
        eprintln!("skipped: openssl is not on the PATH");
        return;
    };
    assert!(modern.status.success(), "{modern:?}");
    assert!(connect("-tls1_2").await.expect("openssl").status.success());
    assert!(!connect("-tls1_1").await.expect("openssl").status.success());
    fixture.serves_next_client().await;
    fixture.port.close().await;
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named_and_never_quoted() {
    let authority = Authority::new("servers");
    let (good, other) = (authority.signs(NAME), authority.signs(NAME));
    let secret = good.key.lines().nth(1).expect("a line of the key");
    let cut = &good.key[..good.key.len() - 40];
    let cases: [(&str, &str, &str, &str); 6] = [
        ("", &good.key, "tls.crt", "no certificate"),
        (&good.key, &good.key, "tls.crt", "no certificate"),
        (&good.certificate, "", "tls.key", "no private key"),
        (&good.certificate, cut, "tls.key", "PEM"),
        (&good.certificate, &other.key, "tls.key", "tls.crt"),
        (
            &good.certificate,
            &good.certificate,
            "tls.key",
            "no private key",
        ),
    ];
    let files = Files::new();
    for (certificate, key, file, word) in cases {
        files.put("tls.crt", certificate);
        files.put("tls.key", key);
        let tls = Tls::files(files.path("tls.crt"), files.path("tls.key"));
        let catalog = crate::fixture::catalog_of(serde_json::json!({ "services": [] }));
        let broker = Broker::new(catalog).without_auth().in_memory().tls(tls);
        let Err(BuildError::Tls(fault)) = broker.start().await else {
            panic!("{file} {word}: it starts");
        };
        let message = format!("{fault} {fault:?}");
        assert!(fault.file.ends_with(file), "{message}");
        assert!(message.contains(word), "{message}");
        assert!(!message.contains(secret), "{message}");
    }
    let gone = Tls::files(files.path("not-there"), files.path("tls.key"));
    let catalog = crate::fixture::catalog_of(serde_json::json!({ "services": [] }));
    let broker = Broker::new(catalog).without_auth().in_memory().tls(gone);
    let refused = broker.start().await.err().expect("no such file");
    assert!(refused.to_string().contains("check the path"), "{refused}");
}
