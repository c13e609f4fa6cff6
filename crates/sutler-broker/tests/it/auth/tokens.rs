//! Bearer tokens of real and of forging providers: authentication, and outages of the provider.

use super::provider::Provider;
use crate::fixture::request::{Reply, RequestBuilder};
use crate::fixture::{Fixture, on_each_store_with};
use serde_json::{Value, json};
use std::time::Duration;
use sutler_broker::{Auth, AuthMethods, Broker, Issuer, Users};

/// An issuer with short fetch intervals.
fn issuer(provider: &Provider) -> Issuer {
    Issuer::new(&provider.issuer, "sutler").fetch_pause(Duration::ZERO)
}

fn trusting(issuer: &Issuer) -> Auth {
    let users = Users::new().with_password("user", &"s3cret".into());
    let proofs = AuthMethods {
        users: users.expect("a user"),
        issuers: vec![issuer.clone()],
        ..AuthMethods::default()
    };
    Auth::any_of(proofs).expect("it can be trusted")
}

fn bearing(kit: &Fixture, token: &str) -> RequestBuilder {
    kit.catalog()
        .header("Authorization", &format!("Bearer {token}"))
}

#[track_caller]
fn invalid(reply: Reply) {
    let reply = reply.is(401);
    let challenges = reply.headers.get_all("WWW-Authenticate").iter();
    let challenges: Vec<&str> = challenges.filter_map(|it| it.to_str().ok()).collect();
    assert_eq!(challenges.len(), 2, "{challenges:?}");
    assert!(challenges[0].starts_with("Basic "), "{challenges:?}");
    assert!(challenges[1].ends_with("error=\"invalid_token\""));
    let description = reply.description();
    for word in ["expired", "audience", "issuer", "signature"] {
        assert!(!description.contains(word), "{description}");
    }
}

/// A token by client credentials, as a platform gets it.
async fn granted(provider: &Provider, client: &str, scope: &str) -> String {
    let url = format!("{}/token", provider.issuer);
    let request = reqwest::Client::builder().no_proxy().build();
    let request = request.expect("a client").post(url);
    let body = format!("grant_type=client_credentials&scope={scope}");
    let answer = request
        .basic_auth(client, Some("a secret of the test"))
        .header("Content-Type", "application/x-www-form-urlencoded")
        .body(body)
        .send()
        .await
        .expect("the provider answers");
    let answer: Value = answer.json().await.expect("JSON");
    let token = answer["access_token"].as_str();
    token
        .unwrap_or_else(|| panic!("no token: {answer}"))
        .to_owned()
}

/// Holds: B-012.
#[tokio::test]
async fn a_token_of_a_real_provider_is_accepted_only_with_its_scope() {
    let Some(provider) = Provider::strict() else {
        return;
    };
    let issuer = issuer(&provider).scope("broker:use");
    let set_up = |broker: Broker| broker.auth(trusting(&issuer));
    on_each_store_with(set_up, async |kit| {
        for client in ["platform-RS256", "platform-ES256"] {
            let token = granted(&provider, client, "broker:use").await;
            bearing(kit, &token).send().await.is(200);
            let mut cut = token.clone();
            cut.truncate(token.len() - 4);
            invalid(bearing(kit, &cut).send().await);
            let token = granted(&provider, client, "broker:look").await;
            let reply = bearing(kit, &token).send().await.is(403);
            let challenge = reply.header("WWW-Authenticate");
            assert!(
                challenge.contains("error=\"insufficient_scope\""),
                "{challenge}"
            );
            assert!(challenge.contains("scope=\"broker:use\""), "{challenge}");
        }
        kit.catalog().send().await.is(200);
    })
    .await;
}

/// Holds: B-010, B-012.
#[tokio::test]
async fn forged_tokens_are_refused() {
    let Some(mut forger) = Provider::forger() else {
        return;
    };
    let issuer = issuer(&forger);
    let mut forged = Vec::new();
    for claims in [
        json!({ "aud": "another" }),
        json!({ "aud": null }),
        json!({ "iss": "https://another.example" }),
        json!({ "exp": null }),
        json!({ "exp": 1_000_000_000 }),
        json!({ "nbf": 4_000_000_000_u64 }),
        json!({ "iat": 4_000_000_000_u64 }),
        json!({ "sub": null }),
        json!({ "sub": "x".repeat(9_000) }),
    ] {
        forged.push(forger.token(&claims));
    }
    for what in ["none", "hmac", "stranger"] {
        forged.push(forger.command(what, &json!({})));
    }
    for header in [
        json!({ "crit": ["exp"] }),
        json!({ "kid": "RS256-99" }),
        json!({ "kid": "ES256-1" }),
    ] {
        forged.push(forger.command("none", &json!({ "header": header })));
        forged.push(forger.command("hmac", &json!({ "header": header })));
    }
    let good = forger.token(&json!({}));
    let (message, signature) = good.rsplit_once('.').expect("three parts");
    let reversed: String = signature.chars().rev().collect();
    forged.extend([
        format!("{message}.{reversed}"),
        format!("{message}."),
        message.to_owned(),
    ]);
    let set_up = |broker: Broker| broker.auth(trusting(&issuer));
    on_each_store_with(set_up, async |kit| {
        bearing(kit, &good).send().await.is(200);
        for token in &forged {
            let reply = bearing(kit, token).send().await;
            assert_eq!(reply.status, 401, "{token}");
            invalid(reply);
        }
        bearing(kit, &good).send().await.is(200);
    })
    .await;
}

#[tokio::test]
async fn every_public_key_algorithm_is_accepted_by_default() {
    let Some(mut forger) = Provider::forger() else {
        return;
    };
    let algorithms = ["RS256", "ES256", "PS256", "EdDSA"];
    let tokens = algorithms.map(|alg| forger.command("token", &json!({ "alg": alg })));
    let any = issuer(&forger);
    on_each_store_with(
        |broker: Broker| broker.auth(trusting(&any)),
        async |kit| {
            for token in &tokens {
                bearing(kit, token).send().await.is(200);
            }
        },
    )
    .await;
    let one = any.algorithms(&["ES256"]).expect("an algorithm");
    on_each_store_with(
        |broker: Broker| broker.auth(trusting(&one)),
        async |kit| {
            let mut statuses = Vec::new();
            for token in &tokens {
                statuses.push(bearing(kit, token).send().await.status);
            }
            assert_eq!(statuses, [401, 200, 401, 401]);
        },
    )
    .await;
}

#[tokio::test]
async fn new_keys_are_found_and_old_ones_forgotten_without_a_restart() {
    let Some(mut forger) = Provider::forger() else {
        return;
    };
    let issuer = issuer(&forger);
    let before = forger.token(&json!({}));
    let kit = crate::fixture::in_memory(|broker: Broker| broker.auth(trusting(&issuer))).await;
    bearing(&kit, &before).send().await.is(200);
    forger.command("rotate", &json!({}));
    let after = forger.token(&json!({}));
    bearing(&kit, &after).send().await.is(200);
    invalid(bearing(&kit, &before).send().await);
}

#[tokio::test]
async fn known_keys_work_while_their_provider_is_down_even_over_a_reload() {
    let Some(mut forger) = Provider::forger() else {
        return;
    };
    let issuer = issuer(&forger);
    let known = forger.token(&json!({}));
    let auth = trusting(&issuer);
    let kit = crate::fixture::in_memory(|broker: Broker| broker.auth(auth.clone())).await;
    bearing(&kit, &known).send().await.is(200);
    let unknown = forger.command("token", &json!({ "header": { "kid": "later" } }));
    forger.command("stop", &json!({}));
    bearing(&kit, &known).send().await.is(200);
    let reply = bearing(&kit, &unknown).send().await.is(503);
    assert_eq!(reply.header("Retry-After"), "5");
    auth.replace(&trusting(&issuer.clone().scope("more")));
    bearing(&kit, &known).send().await.is(403);
    auth.replace(&trusting(&issuer));
    bearing(&kit, &known).send().await.is(200);
    let fresh = crate::fixture::in_memory(|broker: Broker| broker.auth(trusting(&issuer))).await;
    bearing(&fresh, &known).send().await.is(503);
    fresh.catalog().send().await.is(200);
    forger.command("start", &json!({}));
    bearing(&fresh, &known).send().await.is(200);
}

#[tokio::test]
async fn keys_are_not_trusted_for_ever_without_their_provider() {
    let Some(mut forger) = Provider::forger() else {
        return;
    };
    let issuer = issuer(&forger).trust_keys_for(Duration::ZERO);
    let token = forger.token(&json!({}));
    let kit = crate::fixture::in_memory(|broker: Broker| broker.auth(trusting(&issuer))).await;
    bearing(&kit, &token).send().await.is(200);
    forger.command("stop", &json!({}));
    bearing(&kit, &token).send().await.is(503);
}
