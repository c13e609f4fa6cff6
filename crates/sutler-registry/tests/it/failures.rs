//! What fails, and what may be concluded from it: one item, one page, the host; once, or for good.

use crate::stage::{Shop, hasty, kind_of, look, made, settings, status, told};
use std::time::Duration;
use sutler_registry::{Digest, Found, Item, Names, Registry, State, gather};
use sutler_servers::registry::Image;
use sutler_servers::{Fate, Front};

#[tokio::test]
async fn what_passes_by_itself_is_asked_again_and_nobody_notices() {
    let Some(shop) = Shop::with(&["org/a", "org/b"]) else {
        return;
    };
    let expected = ["org/a:latest read", "org/b:latest read"];
    for fate in [
        status(500),
        status(502),
        status(429).with("Retry-After", "0"),
        Fate::Cut,
        Fate::BreakOff(5),
    ] {
        for part in ["_catalog", "GET /v2/org/a/manifests", "/blobs/"] {
            shop.front.times(1, part, fate.clone());
            let found = look(&shop.registry()).await;
            assert_eq!(told(&found), expected, "{part} {fate:?}");
            shop.front.mend();
        }
    }
}

#[tokio::test]
async fn what_fails_for_good_is_asked_three_times_and_hurts_no_other() {
    let Some(shop) = Shop::with(&["org/a", "org/b"]) else {
        return;
    };
    let expected = ["org/a:latest transient", "org/b:latest read"];
    for fate in [
        status(500),
        status(429),
        Fate::Cut,
        Fate::BreakOff(5),
        // Somebody else's 404 is no word of the registry.
        status(404),
        // Whole as HTTP has it, and not what its digest says.
        Fate::Truncate(40),
    ] {
        shop.front.when("GET /v2/org/a/manifests", fate.clone());
        let found = look(&shop.registry()).await;
        assert_eq!(told(&found), expected, "{fate:?}");
        let said = format!("{found:?}");
        assert!(said.contains("shop org/a:latest"), "{said}");
        let asked = shop.front.asked();
        let tries = asked
            .iter()
            .filter(|it| it.starts_with("GET /v2/org/a/manifests"));
        assert!(tries.count() <= 3, "{asked:?}");
        shop.front.mend();
    }
}

#[tokio::test]
async fn a_server_that_wants_more_patience_than_we_have_is_left_alone() {
    let Some(shop) = Shop::with(&["org/a"]) else {
        return;
    };
    let later = status(429).with("Retry-After", "3600");
    shop.front.when("HEAD /v2/org/a/", later);
    assert_eq!(kind_of(&shop.registry(), "org/a").await, "transient");
    assert_eq!(shop.front.asked().len(), 1);
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_given_up() {
    let Some(shop) = Shop::with(&["org/a", "org/b"]) else {
        return;
    };
    let mut wanted = settings(&shop.front.url());
    wanted.reach.answer_within = Duration::from_millis(500);
    let registry = made(wanted);
    shop.front.when("/org/a/", Fate::Hold);
    let found = look(&registry).await;
    assert_eq!(
        told(&found),
        ["org/a:latest transient", "org/b:latest read"]
    );
    shop.front.when("_catalog", Fate::Hold);
    let fault = registry.list().await.expect_err("no listing");
    assert_eq!(fault.kind(), "unreachable", "{fault}");
}

#[tokio::test]
async fn a_host_that_is_down_gives_no_listing_and_is_itself_again_afterwards() {
    let Some(shop) = Shop::with(&["org/a"]) else {
        return;
    };
    let registry = made(settings(&format!("http://{}", shop.server.address())));
    let before = look(&registry).await;
    shop.server.kill();
    let fault = registry.list().await.expect_err("it is down");
    assert_eq!(fault.kind(), "unreachable", "{fault}");
    assert_eq!(kind_of(&registry, "org/a").await, "transient");
    shop.server.start();
    assert_eq!(look(&registry).await, before);
}

#[tokio::test]
async fn a_thousand_items_of_a_silent_host_are_given_up_together() {
    let front = Front::alone();
    front.when("/v2/", Fate::Cut);
    let mut wanted = settings(&front.url());
    let images = (0..1_000).map(|it| format!("org/image-{it}"));
    wanted.names = Names::Images(images.collect());
    let registry = made(wanted);
    let found = look(&registry).await;
    let all = |it: &Found| matches!(&it.state, State::Failed(fault) if fault.kind() == "transient");
    assert!(found.iter().all(all));
    let asked = front.asked().len();
    assert!(asked < 50, "{asked} questions");
    // The next refresh asks again.
    assert_eq!(look(&registry).await.len(), 1_000);
    assert!(!front.asked().is_empty());
}

#[tokio::test]
async fn what_changed_between_look_and_read_is_another_time_and_not_gone() {
    let Some(shop) = Shop::open() else {
        return;
    };
    let old = shop
        .server
        .push("org/a", "latest", &Image::bundle("name: a\n"));
    let item = Item::new("org/a", "latest");
    let registry = shop.registry();
    let digest = registry.look_up(&item).await.expect("a version");
    assert_eq!(digest.to_string(), old.digest);
    shop.server
        .push("org/a", "latest", &Image::bundle("name: b\n"));
    shop.server.remove("org/a", &old);
    let fault = registry
        .fetch(&item.at(digest))
        .await
        .expect_err("it is replaced");
    assert_eq!(fault.kind(), "transient", "{fault}");
}

#[tokio::test]
async fn a_version_that_came_back_is_known_again() {
    let Some(shop) = Shop::open() else {
        return;
    };
    let image = Image::bundle("name: a\n");
    let pushed = shop.server.push("org/a", "latest", &image);
    let known = |_: &Item| Digest::parse(&pushed.digest).ok();
    let registry = shop.registry();
    for round in ["first", "second"] {
        let found = gather(&registry, &known, 1).await.expect("a listing").found;
        assert_eq!(told(&found), ["org/a:latest known"], "{round}");
        shop.server.remove("org/a", &pushed);
        let found = gather(&registry, &known, 1).await.expect("a listing").found;
        assert_eq!(told(&found), ["org/a:latest gone"], "{round}");
        shop.server.push("org/a", "latest", &image);
    }
}

#[tokio::test]
async fn pages_that_make_no_sense_are_no_listing() {
    let front = Front::alone();
    let registry = made(settings(&front.url()));
    let endless = "<_catalog?n=1000>; rel=\"next\"";
    let foreign = "<http://other.invalid/v2/_catalog>; rel=\"next\"";
    let cut = "</v2/_catalog?last=org%2Fa";
    let fine = r#"{"repositories":["org/a"]}"#;
    let long = format!(r#"{{"repositories":["{}"]}}"#, "a".repeat(5 * 1024 * 1024));
    for (answer, kind) in [
        (Fate::text("<html>"), "malformed"),
        (Fate::text("[]"), "malformed"),
        (Fate::text(r#"{"repositories":[7]}"#), "malformed"),
        // What says nothing of its images is no empty catalog.
        (Fate::text("{}"), "malformed"),
        (
            Fate::text(r#"{"errors":[{"code":"UNKNOWN"}]}"#),
            "malformed",
        ),
        (Fate::text(fine).with("Link", cut), "malformed"),
        (Fate::text(fine).with("Link", endless), "malformed"),
        (Fate::text(fine).with("Link", foreign), "malformed"),
        (Fate::text(&long), "too-much"),
        (Fate::status(403), "denied"),
        (Fate::status(302).with("Location", "/login"), "malformed"),
        (Fate::status(404), "unreachable"),
        (Fate::status(418), "malformed"),
    ] {
        front.say("_catalog", Some(answer.clone()));
        let fault = registry.list().await.expect_err("no listing");
        assert_eq!(fault.kind(), kind, "{fault}");
    }
}

#[tokio::test]
async fn a_thousand_items_of_a_host_that_has_enough_of_us_are_given_up_together() {
    let front = Front::alone();
    front.when("/v2/", status(429));
    let mut wanted = settings(&front.url());
    let images = (0..1_000).map(|it| format!("org/image-{it}"));
    wanted.names = Names::Images(images.collect());
    let found = look(&made(wanted)).await;
    let all = |it: &Found| matches!(&it.state, State::Failed(fault) if fault.kind() == "transient");
    assert!(found.iter().all(all));
    let asked = front.asked().len();
    assert!(asked < 50, "{asked} questions");
}

#[tokio::test]
async fn names_that_lead_elsewhere_are_never_asked_for() {
    let front = Front::alone();
    let catalog = r#"{"repositories":["../../secret","a/../b","A B","a?x=y","a#b","%2e%2e/c"]}"#;
    front.say("_catalog", Some(Fate::text(catalog)));
    let registry = made(settings(&front.url()));
    assert!(look(&registry).await.is_empty());
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
    assert_eq!(front.asked(), ["GET /v2/_catalog?n=1000"]);
}

#[tokio::test]
async fn settings_that_cannot_be_used_are_said_before_anything_is_asked() {
    let mut authority = settings("https://registry.example");
    authority.reach.authorities = Some(b"nothing".to_vec());
    let mut proxy = settings("https://registry.example");
    proxy.reach = hasty();
    proxy.reach.proxy = Some("not a proxy".into());
    let mut platform = settings("https://registry.example");
    platform.platform = Some("amd64".to_owned());
    let mut org = settings("https://registry.example");
    org.names = Names::Quay {
        url: "https://quay.io".to_owned(),
        org: "../x".to_owned(),
    };
    let url = settings("https://user:canary@registry.example");
    let mut pulled = settings("https://registry.example");
    pulled.pull_from = Some("https://registry.example".to_owned());
    let mut images = settings("https://registry.example");
    images.names = Names::Images(vec!["org/a:latest".to_owned()]);
    for (wrong, word) in [
        (authority, "certificate"),
        (proxy, "proxy"),
        (platform, "platform"),
        (org, "organisation"),
        (images, "without a tag"),
        (pulled, "pull_from"),
        (url, "URL"),
    ] {
        let said = sutler_registry::ImageRegistry::new(wrong)
            .err()
            .expect(word);
        assert!(said.contains(word) && !said.contains("canary"), "{said}");
    }
}
