//! Authentication at registries: TLS with a private certificate authority, passwords, tokens, a proxy; and that no
//! password is sent to the wrong host.

use crate::fixture::{
    RegistryFixture, fast_retries, image_registry, login, outcomes, scan_all, settings,
};
use sutler_registry::{Credentials, Item, ListingMethod, Registry};
use sutler_servers::docker_registry::{self, Image, RegistryAccess};
use sutler_servers::{Demands, Intercept, PASSWORD, Tls};

#[tokio::test]
async fn images_that_skopeo_copied_are_read_over_tls_with_a_password() {
    let Some(fixture) = RegistryFixture::with(&["org/hello-apb"]) else {
        return;
    };
    let demands = Demands {
        tls: Tls::Server,
        ..Demands::default()
    };
    let (Some(skopeo), Some(vault)) = (
        docker_registry::skopeo(),
        docker_registry::own(demands, RegistryAccess::Password),
    ) else {
        return;
    };
    let from = format!("docker://{}/org/hello-apb:latest", fixture.server.address());
    docker_registry::copy(&skopeo, &vault, &from, "org/hello-apb:latest");
    let authority = std::fs::read(&vault.certificates().authority).expect("an authority");
    let url = format!("https://localhost:{}", vault.admin_url().port);
    let mut image_settings = settings(&url);
    image_settings.http.ca_certificates = Some(authority);
    image_settings.credentials = login();
    let registry = image_registry(image_settings.clone());
    assert_eq!(
        outcomes(&scan_all(&registry).await),
        ["org/hello-apb:latest read"]
    );

    image_settings.credentials = Credentials::Basic {
        user: docker_registry::USER.to_owned(),
        password: "wrong".into(),
    };
    let fault = image_registry(image_settings.clone())
        .list()
        .await
        .expect_err("a wrong password");
    assert_eq!(fault.kind(), "denied", "{fault}");
    image_settings.credentials = Credentials::None;
    let fault = image_registry(image_settings.clone())
        .list()
        .await
        .expect_err("no password");
    assert!(
        fault.to_string().contains("a user and a password"),
        "{fault}"
    );
    image_settings.http = fast_retries();
    let fault = image_registry(image_settings)
        .list()
        .await
        .expect_err("an unknown authority");
    assert_eq!(fault.kind(), "unreachable", "{fault}");
    assert!(fault.to_string().contains("under `ca`"), "{fault}");
}

#[tokio::test]
async fn tokens_are_got_once_for_each_scope_and_passwords_are_shown_only_for_them() {
    let Some(fixture) = RegistryFixture::with(&["org/a", "org/b"]) else {
        return;
    };
    fixture.proxy.demand_tokens(docker_registry::USER, PASSWORD);
    let mut image_settings = settings(&fixture.proxy.url());
    image_settings.credentials = login();
    let registry = image_registry(image_settings);
    let expected = ["org/a:latest read", "org/b:latest read"];
    assert_eq!(outcomes(&scan_all(&registry).await), expected);
    drop(fixture.proxy.requests());
    assert_eq!(outcomes(&scan_all(&registry).await), expected);
    let requests = fixture.proxy.requests();
    let tokens = requests.iter().filter(|it| it.contains("/token")).count();
    assert_eq!(tokens, 0, "{requests:?}");
    for (line, proof) in fixture.proxy.authorizations() {
        let basic = proof.is_some_and(|it| it.starts_with("Basic"));
        assert_eq!(basic, line.contains("/token"), "{line}");
    }
    // A token that was revoked early is replaced.
    fixture.proxy.forget_tokens();
    assert_eq!(outcomes(&scan_all(&registry).await), expected);
}

#[tokio::test]
async fn without_the_right_password_there_is_no_token_and_the_error_does_not_quote_it() {
    let Some(fixture) = RegistryFixture::with(&["org/a"]) else {
        return;
    };
    fixture.proxy.demand_tokens(docker_registry::USER, PASSWORD);
    let mut image_settings = settings(&fixture.proxy.url());
    image_settings.credentials = Credentials::Basic {
        user: docker_registry::USER.to_owned(),
        password: "canary-of-a-wrong-password".into(),
    };
    image_settings.listing = ListingMethod::Images(vec!["org/a".to_owned()]);
    let registry = image_registry(image_settings.clone());
    let fault = registry.fetch(&Item::new("org/a", "latest")).await;
    let fault = fault.expect_err("a wrong password");
    assert_eq!(fault.kind(), "denied", "{fault}");
    image_settings.listing = ListingMethod::Catalog { org: None };
    let listing = image_registry(image_settings)
        .list()
        .await
        .expect_err("a wrong password");
    for sentence in [fault.to_string(), listing.to_string(), format!("{fault:?}")] {
        assert!(!sentence.contains("canary"), "{sentence}");
    }
}

#[tokio::test]
async fn a_token_service_that_is_down_is_not_a_denial() {
    let Some(fixture) = RegistryFixture::with(&["org/a"]) else {
        return;
    };
    fixture.proxy.demand_tokens(docker_registry::USER, PASSWORD);
    fixture.proxy.when("GET /token", Intercept::status(503));
    let mut image_settings = settings(&fixture.proxy.url());
    image_settings.credentials = login();
    let fault = image_registry(image_settings)
        .list()
        .await
        .expect_err("no tokens today");
    assert_eq!(fault.kind(), "unreachable", "{fault}");
}

#[tokio::test]
async fn a_proxy_is_used_for_hosts_that_only_it_can_find() {
    let Some(fixture) = RegistryFixture::with(&["org/a"]) else {
        return;
    };
    let mut image_settings = settings("http://registry.invalid");
    image_settings.http.proxy = Some(fixture.proxy.url().into());
    assert_eq!(
        outcomes(&scan_all(&image_registry(image_settings)).await),
        ["org/a:latest read"]
    );
}

#[tokio::test]
async fn redirected_blobs_are_fetched_without_credentials() {
    let Some(fixture) = RegistryFixture::with(&["org/a"]) else {
        return;
    };
    let config = config_of(&fixture, "org/a").await;
    fixture.proxy.demand_tokens(docker_registry::USER, PASSWORD);
    fixture
        .proxy
        .respond("GET /elsewhere", Some(Intercept::text(&config)));
    let moved = |to: &str| Intercept::status(307).with("Location", to);
    fixture.proxy.when("/blobs/", moved("/elsewhere/1"));
    let mut image_settings = settings(&fixture.proxy.url());
    image_settings.credentials = login();
    image_settings.listing = ListingMethod::Images(vec!["org/a".to_owned()]);
    let registry = image_registry(image_settings);
    assert_eq!(outcomes(&scan_all(&registry).await), ["org/a:latest read"]);
    let shown = fixture.proxy.authorizations();
    let there = shown.iter().find(|(line, _)| line.contains("/elsewhere"));
    assert_eq!(there.map(|(_, proof)| proof), Some(&None));

    let other = sutler_servers::RegistryProxy::standalone();
    fixture.proxy.reset();
    fixture
        .proxy
        .when("/blobs/", moved(&format!("{}/x", other.url())));
    assert_eq!(
        outcomes(&scan_all(&registry).await),
        ["org/a:latest denied"]
    );
    assert!(
        other.requests().is_empty(),
        "nothing goes where TLS does not reach"
    );

    fixture.proxy.reset();
    fixture.proxy.when("/manifests/", moved("/elsewhere/2"));
    assert_eq!(
        outcomes(&scan_all(&registry).await),
        ["org/a:latest malformed"]
    );

    fixture.proxy.reset();
    fixture.proxy.when("/blobs/", moved("/round"));
    fixture.proxy.when("/round", moved("/round"));
    assert_eq!(
        outcomes(&scan_all(&registry).await),
        ["org/a:latest malformed"]
    );
}

/// Digest of an image's configuration in the registry.
async fn config_of(fixture: &RegistryFixture, image: &str) -> String {
    let get = async |path: String| {
        let url = format!("http://{}{path}", fixture.server.address());
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
    let Some(fixture) = RegistryFixture::open() else {
        return;
    };
    let pushed = fixture
        .server
        .push("org/a", "latest", &Image::bundle("name: a\n"));
    let mut image_settings = settings(&fixture.proxy.url());
    image_settings.pull_from = Some("registry.inside:5000".to_owned());
    let spec = image_registry(image_settings)
        .fetch(&Item::new("org/a", "latest"))
        .await;
    let spec = spec.expect("a spec");
    let expected = format!("registry.inside:5000/org/a@{}", pushed.digest);
    assert_eq!(spec.image, Some(expected));
}
