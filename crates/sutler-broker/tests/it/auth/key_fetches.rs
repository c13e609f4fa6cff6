//! Requests to a token issuer: how often they are made, and which responses are rejected.

use crate::fixture::request::RequestBuilder;
use crate::fixture::{Fixture, in_memory};
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use sutler_broker::{Auth, AuthConfigError, Broker, Certificates, Issuer, KeySet, PeerCertificate};
use sutler_broker::{AuthMethods, Users};
use tokio::net::TcpListener;

/// Answers every path in the same way, and counts requests.
async fn answering(
    answer: impl Fn(&str) -> axum::response::Response + Clone + Send + Sync + 'static,
) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let name = format!("http://{address}");
    let (counter, issuer_name) = (Arc::new(AtomicUsize::new(0)), name.clone());
    let counted = counter.clone();
    let any = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        let reply = answer(&issuer_name);
        async move { reply }
    };
    let router = Router::new().fallback(get(any));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (name, counter)
}

fn trusting(issuer: Issuer) -> Result<Auth, AuthConfigError> {
    Auth::any_of(AuthMethods {
        issuers: vec![issuer],
        ..AuthMethods::default()
    })
}

async fn kit(issuer: Issuer) -> Fixture {
    let auth = trusting(issuer).expect("it can be trusted");
    in_memory(|broker: Broker| broker.auth(auth.clone())).await
}

/// An unsigned token.
fn token(kit: &Fixture, issuer: &str, kid: &str) -> RequestBuilder {
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let header = part(json!({ "alg": "RS256", "kid": kid }));
    let claims =
        part(json!({ "iss": issuer, "aud": "sutler", "sub": "x", "exp": 4_000_000_000_u64 }));
    let bearer = format!("Bearer {header}.{claims}.c2lnbmVk");
    kit.catalog().header("Authorization", &bearer)
}

#[tokio::test]
async fn unknown_keys_cause_bounded_fetches_from_the_issuer() {
    let (name, fetches) = answering(|_| r#"{"keys":[]}"#.into_response()).await;
    let kit = kit(Issuer::new(&name, "sutler").keys_at(&format!("{name}/keys"))).await;
    let replies = (0..300).map(|n| token(&kit, &name, &format!("key {n}")).start());
    for reply in replies.collect::<Vec<_>>() {
        let status = reply.await.expect("an answer").status;
        // At the start the number of requests that wait for the first keys is limited.
        assert!(status == 401 || status == 503, "{status}");
    }
    for n in 0..50 {
        token(&kit, &name, &format!("later {n}"))
            .send()
            .await
            .is(401);
    }
    assert_eq!(fetches.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn invalid_responses_and_redirects_of_an_issuer_are_refused() {
    let (elsewhere, lured) = answering(|_| r#"{"keys":[]}"#.into_response()).await;
    let target = elsewhere.clone();
    let redirect = move |_: &str| {
        let headers = [(header::LOCATION, target.clone())];
        (StatusCode::FOUND, headers).into_response()
    };
    let (redirecting, _) = answering(redirect).await;
    let (endless, _) = answering(|_| vec![b' '; 1024 * 1024].into_response()).await;
    let (broken, _) = answering(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response()).await;
    for name in [&redirecting, &endless, &broken] {
        let kit = kit(Issuer::new(name, "sutler").keys_at(name)).await;
        token(&kit, name, "k").send().await.is(503);
    }
    let target = elsewhere.clone();
    let other = move |_: &str| {
        let description = json!({ "issuer": "https://other.example", "jwks_uri": target });
        description.to_string().into_response()
    };
    let (misnamed, _) = answering(other).await;
    let target = elsewhere.replace("http:", "ftp:");
    let far = move |issuer_name: &str| {
        let description = json!({ "issuer": issuer_name, "jwks_uri": target });
        description.to_string().into_response()
    };
    let (far, _) = answering(far).await;
    for name in [&misnamed, &far] {
        let kit = kit(Issuer::new(name, "sutler")).await;
        token(&kit, name, "k").send().await.is(503);
    }
    assert_eq!(lured.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn with_fixed_keys_no_key_is_fetched() {
    let (name, fetches) = answering(|_| r#"{"keys":[]}"#.into_response()).await;
    let keys = KeySet::parse(br#"{"keys":[]}"#).expect("a set");
    let kit = kit(Issuer::new(&name, "sutler").keys(keys)).await;
    token(&kit, &name, "k").send().await.is(401);
    assert_eq!(fetches.load(Ordering::SeqCst), 0);
}

#[test]
fn an_issuer_that_cannot_be_trusted_is_refused_with_a_sentence() {
    let good = || Issuer::new("https://issuer.example", "sutler");
    let faulty = [
        Issuer::new("", "sutler"),
        Issuer::new("https://issuer.example", ""),
        Issuer::new("http://issuer.example", "sutler"),
        Issuer::new("issuer.example", "sutler"),
        good().keys_at("http://issuer.example/keys"),
        good().keys_at("https://user:canary@issuer.example/keys"),
        good().scope(""),
        good().scope("two words"),
        good().scope("quo\"te"),
        good().authorities(b"no PEM"),
    ];
    for issuer in faulty {
        let message = match trusting(issuer.clone()) {
            Ok(_) => panic!("{issuer:?} is trusted"),
            Err(fault) => fault.to_string(),
        };
        assert!(message.split_whitespace().count() > 8, "{message}");
        assert!(!message.contains("canary"), "{message}");
    }
    assert!(trusting(good()).is_ok());
    assert!(trusting(Issuer::new("http://far.example", "s").allow_plain_http()).is_ok());
    for names in [&["none"][..], &["HS256"], &["RS256", "HS512"], &[]] {
        assert!(good().algorithms(names).is_err(), "{names:?}");
    }
    let twice = AuthMethods {
        issuers: vec![good(), good()],
        ..AuthMethods::default()
    };
    assert!(matches!(
        Auth::any_of(twice),
        Err(AuthConfigError::DuplicateIssuer(_))
    ));
    assert!(matches!(
        Auth::any_of(AuthMethods::default()),
        Err(AuthConfigError::Nobody)
    ));
}

/// A certificate with an alternative name.
fn certificate(uri: &str) -> PeerCertificate {
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut params = rcgen::CertificateParams::default();
    let name = uri.try_into().expect("ASCII");
    params.subject_alt_names = vec![rcgen::SanType::URI(name)];
    let made = params.self_signed(&key).expect("a certificate");
    PeerCertificate::of(made.der())
}

#[tokio::test]
async fn a_certificate_authenticates_without_a_header() {
    let users = Users::new().with_password("user", &"s3cret".into());
    let certificates = Certificates::new().uri("spiffe://house/cf", "cf");
    let proofs = AuthMethods {
        users: users.expect("a user"),
        certificates: certificates.expect("a list"),
        ..AuthMethods::default()
    };
    let auth = Auth::any_of(proofs).expect("two ways in");
    let kit = in_memory(|broker: Broker| broker.auth(auth.clone())).await;
    let through = |uri: &str| kit.router().layer(axum::Extension(certificate(uri)));
    let (listed, other) = (
        through("spiffe://house/cf"),
        through("spiffe://house/other"),
    );
    let bare = kit.catalog().without_header("Authorization");
    bare.clone().through(&listed, "").send().await.is(200);
    bare.clone().through(&other, "").send().await.is(401);
    bare.clone().send().await.is(401);
    let wrong = bare
        .clone()
        .header("Authorization", &super::basic("user:wrong"));
    wrong.through(&listed, "").send().await.is(401);
    kit.catalog().through(&other, "").send().await.is(200);
}
