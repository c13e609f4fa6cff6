//! Being let in: TLS with certificates on both sides, users and passwords.

use crate::candidate::open;
use crate::scene::{insert, key, until};
use crate::server::Server;
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use secrecy::SecretString;
use std::path::Path;
use sutler_journal::Store;
use sutler_store_etcd::{EtcdSettings, EtcdStore, Login, OpenError, Tls};

const PASSWORD: &str = "canary-3b9f";

/// Writes a certificate authority, and a certificate of it for both sides.
fn write_certificates(folder: &Path) {
    let write = |name: &str, text: String| {
        std::fs::write(folder.join(name), text).expect("a file");
    };
    let mut params = CertificateParams::new(Vec::<String>::new()).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    let key = KeyPair::generate().expect("a key");
    let authority = params.self_signed(&key).expect("a certificate");
    write("ca.pem", authority.pem());
    let issuer = Issuer::new(params, key);
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let mut params = CertificateParams::new(names).expect("parameters");
    params.distinguished_name = rcgen::DistinguishedName::new();
    // etcd's gateway is a client of its own server.
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    let key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, &issuer).expect("a certificate");
    write("cert.pem", certificate.pem());
    write("key.pem", key.serialize_pem());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_demands_certificates_is_reached_with_one() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    write_certificates(folder.path());
    let file = |name: &str| folder.path().join(name);
    let url = "https://127.0.0.1:PORT";
    let mut arguments = vec!["--client-cert-auth".to_owned()];
    for (flag, value) in [
        ("--listen-client-urls", url.to_owned()),
        ("--advertise-client-urls", url.to_owned()),
        ("--cert-file", file("cert.pem").display().to_string()),
        ("--key-file", file("key.pem").display().to_string()),
        ("--trusted-ca-file", file("ca.pem").display().to_string()),
    ] {
        arguments.extend([flag.to_owned(), value]);
    }
    let Some(server) = Server::with(&arguments) else {
        return;
    };
    let mut settings = server.settings();
    settings.tls = Some(Tls {
        ca: Some(file("ca.pem")),
        identity: Some((file("cert.pem"), file("key.pem"))),
    });
    until("etcd takes connections", || async {
        EtcdStore::open_with(&settings).await.is_ok()
    })
    .await;
    let store = open(&settings).await;
    store.commit(&insert("a", 1)).await.expect("a commit");
    assert!(store.get(&key("a")).await.expect("a read").is_some());

    settings.tls = Some(Tls {
        ca: Some(file("ca.pem")),
        identity: None,
    });
    let refused = EtcdStore::open_with(&settings).await;
    assert!(matches!(refused, Err(OpenError::Unavailable(_))));
    settings.tls = Some(Tls::default());
    let unknown = EtcdStore::open_with(&settings).await;
    assert!(matches!(unknown, Err(OpenError::Unavailable(_))));
}

/// Makes a user who may use one prefix only, and has etcd ask for users from now on.
async fn demand_passwords(endpoint: &str) {
    let http = reqwest::Client::new();
    let user = |name: &str| serde_json::json!({"name": name, "password": PASSWORD});
    let named = |name: &str| serde_json::json!({ "name": name });
    let grant = |user: &str, role: &str| serde_json::json!({"user": user, "role": role});
    // From `mine` up to but not including `minf`.
    let prefix = serde_json::json!({
        "name": "keeper",
        "perm": {"permType": "READWRITE", "key": "bWluZQ==", "range_end": "bWluZg=="},
    });
    for (path, body) in [
        ("user/add", user("root")),
        ("role/add", named("root")),
        ("user/grant", grant("root", "root")),
        ("user/add", user("me")),
        ("role/add", named("keeper")),
        ("role/grant", prefix),
        ("user/grant", grant("me", "keeper")),
        ("enable", serde_json::json!({})),
    ] {
        let url = format!("http://{endpoint}/v3/auth/{path}");
        let answer = http.post(url).json(&body).send().await;
        assert!(answer.expect("an answer").status().is_success(), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_is_let_in_by_password_and_again_when_the_token_is_old() {
    let short = ["--auth-token-ttl", "2"].map(str::to_owned);
    let url = ["--listen-client-urls", "http://127.0.0.1:PORT"].map(str::to_owned);
    let known = ["--advertise-client-urls", "http://127.0.0.1:PORT"].map(str::to_owned);
    let Some(server) = Server::with(&[url, known, short].concat()) else {
        return;
    };
    let settings = server.settings();
    until("etcd answers", || async {
        EtcdStore::open_with(&settings).await.is_ok()
    })
    .await;
    demand_passwords(&settings.endpoints[0]).await;
    let url = format!("etcd://me:{PASSWORD}@{}/mine", settings.endpoints[0]);
    let store = EtcdStore::open(&SecretString::from(url)).await;
    let store = store.expect("the password is right");
    let worker = crate::scene::worker(&store).await;
    store.commit(&insert("a", 1)).await.expect("a commit");
    store.release(worker).await.expect("leases work too");
    let began = std::time::Instant::now();
    until("the token is old", || async {
        began.elapsed() > std::time::Duration::from_secs(4)
    })
    .await;
    store.commit(&insert("b", 1)).await.expect("let in again");

    for (user, password) in [("me", "wrong"), ("nobody", PASSWORD), ("me", PASSWORD)] {
        let login = Login {
            user: user.to_owned(),
            password: password.to_owned().into(),
        };
        let settings = EtcdSettings {
            login: Some(login),
            prefix: "not-mine".to_owned(),
            ..settings.clone()
        };
        let refused = EtcdStore::open_with(&settings).await.expect_err("refused");
        let said = format!("{refused} {refused:?} {settings:?}");
        assert!(said.contains("check name, password"), "{said}");
        assert!(
            !said.contains(PASSWORD) && !said.contains("wrong"),
            "{said}"
        );
    }
    let nobody = EtcdStore::open_with(&settings).await;
    assert!(
        matches!(nobody, Err(OpenError::Unavailable(_))),
        "no name at all"
    );
}
