//! How registries let us in: TLS with an authority of one's own, passwords, tokens, a proxy; and that no
//! password goes where it should not.

use crate::stage::{Shop, hasty, login, look, made, settings, told};
use sutler_registry::{Credentials, Item, Names, Registry};
use sutler_servers::registry::{self, Entry, Image};
use sutler_servers::{Demands, Fate, PASSWORD, Tls};

#[tokio::test]
async fn images_that_skopeo_copied_are_read_over_tls_with_a_password() {
    let Some(shop) = Shop::with(&["org/hello-apb"]) else {
        return;
    };
    let demands = Demands {
        tls: Tls::Server,
        ..Demands::default()
    };
    let (Some(skopeo), Some(vault)) = (registry::skopeo(), registry::own(demands, Entry::Password))
    else {
        return;
    };
    let from = format!("docker://{}/org/hello-apb:latest", shop.server.address());
    registry::copy(&skopeo, &vault, &from, "org/hello-apb:latest");
    let authority = std::fs::read(&vault.certificates().authority).expect("an authority");
    let url = format!("https://localhost:{}", vault.place().port);
    let mut wanted = settings(&url);
    wanted.reach.authorities = Some(authority);
    wanted.credentials = login();
    let registry = made(wanted.clone());
    assert_eq!(told(&look(&registry).await), ["org/hello-apb:latest read"]);

    wanted.credentials = Credentials::Basic {
        user: registry::USER.to_owned(),
        password: "wrong".into(),
    };
    let fault = made(wanted.clone())
        .list()
        .await
        .expect_err("a wrong password");
    assert_eq!(fault.kind(), "denied", "{fault}");
    wanted.credentials = Credentials::None;
    let fault = made(wanted.clone()).list().await.expect_err("no password");
    assert!(
        fault.to_string().contains("a user and a password"),
        "{fault}"
    );
    wanted.reach = hasty();
    let fault = made(wanted).list().await.expect_err("an unknown authority");
    assert_eq!(fault.kind(), "unreachable", "{fault}");
    assert!(fault.to_string().contains("under `ca`"), "{fault}");
}

#[tokio::test]
async fn tokens_are_got_once_for_each_scope_and_passwords_are_shown_only_for_them() {
    let Some(shop) = Shop::with(&["org/a", "org/b"]) else {
        return;
    };
    shop.front.demand_tokens(registry::USER, PASSWORD);
    let mut wanted = settings(&shop.front.url());
    wanted.credentials = login();
    let registry = made(wanted);
    let expected = ["org/a:latest read", "org/b:latest read"];
    assert_eq!(told(&look(&registry).await), expected);
    drop(shop.front.asked());
    assert_eq!(told(&look(&registry).await), expected);
    let asked = shop.front.asked();
    let tokens = asked.iter().filter(|it| it.contains("/token")).count();
    assert_eq!(tokens, 0, "{asked:?}");
    for (line, proof) in shop.front.shown() {
        let basic = proof.is_some_and(|it| it.starts_with("Basic"));
        assert_eq!(basic, line.contains("/token"), "{line}");
    }
    // One that was withdrawn before its time is replaced.
    shop.front.forget_tokens();
    assert_eq!(told(&look(&registry).await), expected);
}

#[tokio::test]
async fn without_the_right_password_there_is_no_token_and_no_word_of_it_in_the_sentence() {
    let Some(shop) = Shop::with(&["org/a"]) else {
        return;
    };
    shop.front.demand_tokens(registry::USER, PASSWORD);
    let mut wanted = settings(&shop.front.url());
    wanted.credentials = Credentials::Basic {
        user: registry::USER.to_owned(),
        password: "canary-of-a-wrong-password".into(),
    };
    wanted.names = Names::Images(vec!["org/a".to_owned()]);
    let registry = made(wanted.clone());
    let fault = registry.fetch(&Item::new("org/a", "latest")).await;
    let fault = fault.expect_err("a wrong password");
    assert_eq!(fault.kind(), "denied", "{fault}");
    wanted.names = Names::Catalog { org: None };
    let listing = made(wanted).list().await.expect_err("a wrong password");
    for said in [fault.to_string(), listing.to_string(), format!("{fault:?}")] {
        assert!(!said.contains("canary"), "{said}");
    }
}

#[tokio::test]
async fn a_place_of_tokens_that_is_down_is_no_refusal() {
    let Some(shop) = Shop::with(&["org/a"]) else {
        return;
    };
    shop.front.demand_tokens(registry::USER, PASSWORD);
    shop.front.when("GET /token", Fate::status(503));
    let mut wanted = settings(&shop.front.url());
    wanted.credentials = login();
    let fault = made(wanted).list().await.expect_err("no tokens today");
    assert_eq!(fault.kind(), "unreachable", "{fault}");
}

#[tokio::test]
async fn a_proxy_is_used_for_hosts_that_only_it_can_find() {
    let Some(shop) = Shop::with(&["org/a"]) else {
        return;
    };
    let mut wanted = settings("http://registry.invalid");
    wanted.reach.proxy = Some(shop.front.url().into());
    assert_eq!(told(&look(&made(wanted)).await), ["org/a:latest read"]);
}

#[tokio::test]
async fn blobs_that_lie_elsewhere_are_fetched_without_credentials() {
    let Some(shop) = Shop::with(&["org/a"]) else {
        return;
    };
    let config = config_of(&shop, "org/a").await;
    shop.front.demand_tokens(registry::USER, PASSWORD);
    shop.front.say("GET /elsewhere", Some(Fate::text(&config)));
    let moved = |to: &str| Fate::status(307).with("Location", to);
    shop.front.when("/blobs/", moved("/elsewhere/1"));
    let mut wanted = settings(&shop.front.url());
    wanted.credentials = login();
    wanted.names = Names::Images(vec!["org/a".to_owned()]);
    let registry = made(wanted);
    assert_eq!(told(&look(&registry).await), ["org/a:latest read"]);
    let shown = shop.front.shown();
    let there = shown.iter().find(|(line, _)| line.contains("/elsewhere"));
    assert_eq!(there.map(|(_, proof)| proof), Some(&None));

    let other = sutler_servers::Front::alone();
    shop.front.mend();
    shop.front
        .when("/blobs/", moved(&format!("{}/x", other.url())));
    assert_eq!(told(&look(&registry).await), ["org/a:latest denied"]);
    assert!(
        other.asked().is_empty(),
        "nothing goes where TLS does not reach"
    );

    shop.front.mend();
    shop.front.when("/manifests/", moved("/elsewhere/2"));
    assert_eq!(told(&look(&registry).await), ["org/a:latest malformed"]);

    shop.front.mend();
    shop.front.when("/blobs/", moved("/round"));
    shop.front.when("/round", moved("/round"));
    assert_eq!(told(&look(&registry).await), ["org/a:latest malformed"]);
}

/// The configuration of an image, as it lies in the registry.
async fn config_of(shop: &Shop, image: &str) -> String {
    let get = async |path: String| {
        let url = format!("http://{}{path}", shop.server.address());
        let accept = "application/vnd.oci.image.manifest.v1+json";
        let client = reqwest::Client::new();
        let answer = client.get(url).header("Accept", accept).send().await;
        answer.expect("an answer").text().await.expect("a text")
    };
    let manifest = get(format!("/v2/{image}/manifests/latest")).await;
    let manifest: serde_json::Value = serde_json::from_str(&manifest).expect("JSON");
    let digest = manifest["config"]["digest"].as_str().expect("a digest");
    get(format!("/v2/{image}/blobs/{digest}")).await
}

#[tokio::test]
async fn an_image_is_pinned_as_engines_pull_it() {
    let Some(shop) = Shop::open() else {
        return;
    };
    let pushed = shop
        .server
        .push("org/a", "latest", &Image::bundle("name: a\n"));
    let mut wanted = settings(&shop.front.url());
    wanted.pull_from = Some("registry.inside:5000".to_owned());
    let spec = made(wanted).fetch(&Item::new("org/a", "latest")).await;
    let spec = spec.expect("a spec");
    let expected = format!("registry.inside:5000/org/a@{}", pushed.digest);
    assert_eq!(spec.image, Some(expected));
}
