//! Failures, and what may be concluded from them: one item, one page, the host; once, or permanent.

use crate::fixture::{
    RegistryFixture, fast_retries, image_registry, kind_of, outcomes, scan_all, settings, status,
};
use std::time::Duration;
use sutler_registry::{Digest, Item, ItemState, ListingMethod, Registry, ScannedItem, scan};
use sutler_servers::docker_registry::Image;
use sutler_servers::{Intercept, RegistryProxy};

#[tokio::test]
async fn a_temporary_failure_is_retried_without_effect() {
    let Some(fixture) = RegistryFixture::with(&["org/a", "org/b"]) else {
        return;
    };
    let expected = ["org/a:latest read", "org/b:latest read"];
    for fate in [
        status(500),
        status(502),
        status(429).with("Retry-After", "0"),
        Intercept::Cut,
        Intercept::BreakOff(5),
    ] {
        for part in ["_catalog", "GET /v2/org/a/manifests", "/blobs/"] {
            fixture.proxy.times(1, part, fate.clone());
            let found = scan_all(&fixture.registry()).await;
            assert_eq!(outcomes(&found), expected, "{part} {fate:?}");
            fixture.proxy.reset();
        }
    }
}

#[tokio::test]
async fn a_permanent_failure_is_requested_three_times_and_affects_no_other_item() {
    let Some(fixture) = RegistryFixture::with(&["org/a", "org/b"]) else {
        return;
    };
    let expected = ["org/a:latest transient", "org/b:latest read"];
    for fate in [
        status(500),
        status(429),
        Intercept::Cut,
        Intercept::BreakOff(5),
        // A 404 from another server says nothing about the registry.
        status(404),
        // A complete HTTP response that does not match its digest.
        Intercept::Truncate(40),
    ] {
        fixture.proxy.when("GET /v2/org/a/manifests", fate.clone());
        let found = scan_all(&fixture.registry()).await;
        assert_eq!(outcomes(&found), expected, "{fate:?}");
        let sentence = format!("{found:?}");
        assert!(sentence.contains("shop org/a:latest"), "{sentence}");
        let requests = fixture.proxy.requests();
        let tries = requests
            .iter()
            .filter(|it| it.starts_with("GET /v2/org/a/manifests"));
        assert!(tries.count() <= 3, "{requests:?}");
        fixture.proxy.reset();
    }
}

#[tokio::test]
async fn a_server_that_wants_more_patience_than_we_have_is_left_alone() {
    let Some(fixture) = RegistryFixture::with(&["org/a"]) else {
        return;
    };
    let later = status(429).with("Retry-After", "3600");
    fixture.proxy.when("HEAD /v2/org/a/", later);
    assert_eq!(kind_of(&fixture.registry(), "org/a").await, "transient");
    assert_eq!(fixture.proxy.requests().len(), 1);
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_given_up() {
    let Some(fixture) = RegistryFixture::with(&["org/a", "org/b"]) else {
        return;
    };
    let mut image_settings = settings(&fixture.proxy.url());
    image_settings.http.response_timeout = Duration::from_millis(500);
    let registry = image_registry(image_settings);
    fixture.proxy.when("/org/a/", Intercept::Hold);
    let found = scan_all(&registry).await;
    assert_eq!(
        outcomes(&found),
        ["org/a:latest transient", "org/b:latest read"]
    );
    fixture.proxy.when("_catalog", Intercept::Hold);
    let fault = registry.list().await.expect_err("no listing");
    assert_eq!(fault.kind(), "unreachable", "{fault}");
}

#[tokio::test]
async fn a_host_that_is_down_gives_no_listing_and_is_itself_again_afterwards() {
    let Some(fixture) = RegistryFixture::with(&["org/a"]) else {
        return;
    };
    let registry = image_registry(settings(&format!("http://{}", fixture.server.address())));
    let before = scan_all(&registry).await;
    fixture.server.kill();
    let fault = registry.list().await.expect_err("it is down");
    assert_eq!(fault.kind(), "unreachable", "{fault}");
    assert_eq!(kind_of(&registry, "org/a").await, "transient");
    fixture.server.start();
    assert_eq!(scan_all(&registry).await, before);
}

#[tokio::test]
async fn a_thousand_items_of_a_silent_host_are_given_up_together() {
    let proxy = RegistryProxy::standalone();
    proxy.when("/v2/", Intercept::Cut);
    let mut image_settings = settings(&proxy.url());
    let images = (0..1_000).map(|it| format!("org/image-{it}"));
    image_settings.listing = ListingMethod::Images(images.collect());
    let registry = image_registry(image_settings);
    let found = scan_all(&registry).await;
    let all = |it: &ScannedItem| matches!(&it.state, ItemState::Failed(fault) if fault.kind() == "transient");
    assert!(found.iter().all(all));
    let requests = proxy.requests().len();
    assert!(requests < 50, "{requests} questions");
    // The next refresh sends requests again.
    assert_eq!(scan_all(&registry).await.len(), 1_000);
    assert!(!proxy.requests().is_empty());
}

#[tokio::test]
async fn an_item_that_changes_between_look_up_and_fetch_is_transient_and_not_gone() {
    let Some(fixture) = RegistryFixture::open() else {
        return;
    };
    let old = fixture
        .server
        .push("org/a", "latest", &Image::bundle("name: a\n"));
    let item = Item::new("org/a", "latest");
    let registry = fixture.registry();
    let digest = registry.look_up(&item).await.expect("a version");
    assert_eq!(digest.to_string(), old.digest);
    fixture
        .server
        .push("org/a", "latest", &Image::bundle("name: b\n"));
    fixture.server.remove("org/a", &old);
    let fault = registry
        .fetch(&item.at(digest))
        .await
        .expect_err("it is replaced");
    assert_eq!(fault.kind(), "transient", "{fault}");
}

#[tokio::test]
async fn a_version_that_came_back_is_known_again() {
    let Some(fixture) = RegistryFixture::open() else {
        return;
    };
    let image = Image::bundle("name: a\n");
    let pushed = fixture.server.push("org/a", "latest", &image);
    let known = |_: &Item| Digest::parse(&pushed.digest).ok();
    let registry = fixture.registry();
    for round in ["first", "second"] {
        let found = scan(&registry, &known, 1).await.expect("a listing").items;
        assert_eq!(outcomes(&found), ["org/a:latest known"], "{round}");
        fixture.server.remove("org/a", &pushed);
        let found = scan(&registry, &known, 1).await.expect("a listing").items;
        assert_eq!(outcomes(&found), ["org/a:latest gone"], "{round}");
        fixture.server.push("org/a", "latest", &image);
    }
}

#[tokio::test]
async fn pages_that_make_no_sense_are_no_listing() {
    let proxy = RegistryProxy::standalone();
    let registry = image_registry(settings(&proxy.url()));
    let endless = "<_catalog?n=1000>; rel=\"next\"";
    let foreign = "<http://other.invalid/v2/_catalog>; rel=\"next\"";
    let cut = "</v2/_catalog?last=org%2Fa";
    let fine = r#"{"repositories":["org/a"]}"#;
    let long = format!(r#"{{"repositories":["{}"]}}"#, "a".repeat(5 * 1024 * 1024));
    for (answer, kind) in [
        (Intercept::text("<html>"), "malformed"),
        (Intercept::text("[]"), "malformed"),
        (Intercept::text(r#"{"repositories":[7]}"#), "malformed"),
        // A response without a list of images is not an empty catalog.
        (Intercept::text("{}"), "malformed"),
        (
            Intercept::text(r#"{"errors":[{"code":"UNKNOWN"}]}"#),
            "malformed",
        ),
        (Intercept::text(fine).with("Link", cut), "malformed"),
        (Intercept::text(fine).with("Link", endless), "malformed"),
        (Intercept::text(fine).with("Link", foreign), "malformed"),
        (Intercept::text(&long), "too-much"),
        (Intercept::status(403), "denied"),
        (
            Intercept::status(302).with("Location", "/login"),
            "malformed",
        ),
        (Intercept::status(404), "unreachable"),
        (Intercept::status(418), "malformed"),
    ] {
        proxy.respond("_catalog", Some(answer.clone()));
        let fault = registry.list().await.expect_err("no listing");
        assert_eq!(fault.kind(), kind, "{fault}");
    }
}

#[tokio::test]
async fn a_thousand_items_of_a_host_that_has_enough_of_us_are_given_up_together() {
    let proxy = RegistryProxy::standalone();
    proxy.when("/v2/", status(429));
    let mut image_settings = settings(&proxy.url());
    let images = (0..1_000).map(|it| format!("org/image-{it}"));
    image_settings.listing = ListingMethod::Images(images.collect());
    let found = scan_all(&image_registry(image_settings)).await;
    let all = |it: &ScannedItem| matches!(&it.state, ItemState::Failed(fault) if fault.kind() == "transient");
    assert!(found.iter().all(all));
    let requests = proxy.requests().len();
    assert!(requests < 50, "{requests} questions");
}

#[tokio::test]
async fn names_that_lead_elsewhere_are_never_requested() {
    let proxy = RegistryProxy::standalone();
    let catalog = r#"{"repositories":["../../secret","a/../b","A B","a?x=y","a#b","%2e%2e/c"]}"#;
    proxy.respond("_catalog", Some(Intercept::text(catalog)));
    let registry = image_registry(settings(&proxy.url()));
    assert!(scan_all(&registry).await.is_empty());
    for (image, tag) in [
        ("../../secret", "latest"),
        ("a", "../b"),
        ("a\nb", "latest"),
    ] {
        let fault = registry.fetch(&Item::new(image, tag)).await;
        let fault = fault.expect_err("it is no name");
        assert_eq!(fault.kind(), "malformed", "{fault}");
        assert!(!fault.to_string().contains('\n'), "{fault}");
    }
    assert_eq!(proxy.requests(), ["GET /v2/_catalog?n=1000"]);
}

#[tokio::test]
async fn invalid_settings_are_reported_before_any_request() {
    let mut authority = settings("https://registry.example");
    authority.http.ca_certificates = Some(b"nothing".to_vec());
    let mut proxy = settings("https://registry.example");
    proxy.http = fast_retries();
    proxy.http.proxy = Some("not a proxy".into());
    let mut platform = settings("https://registry.example");
    platform.platform = Some("amd64".to_owned());
    let mut org = settings("https://registry.example");
    org.listing = ListingMethod::Quay {
        url: "https://quay.io".to_owned(),
        org: "../x".to_owned(),
    };
    let url = settings("https://user:canary@registry.example");
    let mut pulled = settings("https://registry.example");
    pulled.pull_from = Some("https://registry.example".to_owned());
    let mut images = settings("https://registry.example");
    images.listing = ListingMethod::Images(vec!["org/a:latest".to_owned()]);
    for (wrong, word) in [
        (authority, "certificate"),
        (proxy, "proxy"),
        (platform, "platform"),
        (org, "organisation"),
        (images, "without a tag"),
        (pulled, "pull_from"),
        (url, "URL"),
    ] {
        let sentence = sutler_registry::ImageRegistry::new(wrong)
            .err()
            .expect(word);
        assert!(
            sentence.contains(word) && !sentence.contains("canary"),
            "{sentence}"
        );
    }
}
