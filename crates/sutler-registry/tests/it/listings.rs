//! Listings: pages, lists of images, allow and deny lists, named tags, and the cost of a refresh.

use crate::fixture::{RegistryFixture, image_registry, outcomes, scan_all, settings};
use std::collections::BTreeMap;
use sutler_registry::{
    Credentials, Digest, ImageFilter, ImageSelection, Item, ListingMethod, Registry, scan,
};
use sutler_servers::docker_registry::Image;
use sutler_servers::{Intercept, RegistryProxy};

/// More than one page of a catalog.
const MANY: usize = 1_500;

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|it| (*it).to_owned()).collect()
}

#[tokio::test]
async fn a_catalog_of_several_pages_is_read_to_its_end_and_nothing_known_twice() {
    let Some(fixture) = RegistryFixture::open() else {
        return;
    };
    let mut known = BTreeMap::new();
    for number in 0..MANY {
        let name = format!("org/bundle-{number:05}");
        let image = Image::bundle(&format!("name: bundle-{number}\n"));
        let laid = fixture.server.write_image(&name, "latest", &image);
        known.insert(name, Digest::parse(&laid.digest).expect("a digest"));
    }
    let registry = fixture.registry();
    let lookup = |item: &Item| known.get(&item.image).cloned();
    let found = scan(&registry, &lookup, 8).await.expect("a listing").items;
    assert_eq!(found.len(), MANY);
    let requests = fixture.proxy.requests();
    let catalog = requests.iter().filter(|it| it.contains("_catalog")).count();
    let heads = requests.iter().filter(|it| it.starts_with("HEAD ")).count();
    assert_eq!((catalog, heads, requests.len()), (2, MANY, MANY + 2));
    // One item changes: only its manifest and its labels are read.
    let image = Image::bundle("name: changed\n");
    fixture
        .server
        .write_image("org/bundle-00700", "latest", &image);
    let found = scan(&registry, &lookup, 8).await.expect("a listing").items;
    let read: Vec<String> = outcomes(&found)
        .into_iter()
        .filter(|it| !it.ends_with(" known"))
        .collect();
    assert_eq!(read, ["org/bundle-00700:latest read"]);
    let requests = fixture.proxy.requests();
    let reads = requests.iter().filter(|it| it.starts_with("GET /v2/org/"));
    assert_eq!(reads.count(), 2);
}

#[tokio::test]
async fn lists_and_named_tags_select_items() {
    let images = [
        "org/hello-apb",
        "org/postgres-apb",
        "org/broken-apb",
        "org/tool",
    ];
    let Some(fixture) = RegistryFixture::with(&images) else {
        return;
    };
    for tag in ["v1.0", "v2.0"] {
        let image = Image::bundle(&format!("name: hello\ntag: {tag}\n"));
        fixture.server.push("org/hello-apb", tag, &image);
    }
    let wishes = ImageSelection {
        allow: Some(texts(&[".*-apb$"])),
        deny: texts(&["broken"]),
        default_tag: Some("latest".to_owned()),
        named: [
            ("hello-apb".to_owned(), texts(&["v1.0", "v2.0"])),
            ("postgres-apb".to_owned(), texts(&["v3.9"])),
        ]
        .into(),
    };
    let mut image_settings = settings(&fixture.proxy.url());
    image_settings.filter = ImageFilter::new(&wishes).expect("they make sense");
    let expected = [
        "org/hello-apb:latest read",
        "org/hello-apb:v1.0 read",
        "org/hello-apb:v2.0 read",
        "org/postgres-apb:latest read",
        "org/postgres-apb:v3.9 gone",
    ];
    assert_eq!(
        outcomes(&scan_all(&image_registry(image_settings)).await),
        expected
    );
}

#[tokio::test]
async fn a_list_of_images_asks_for_no_catalog() {
    let Some(fixture) = RegistryFixture::with(&["org/a", "org/b"]) else {
        return;
    };
    fixture.proxy.when("_catalog", Intercept::status(403));
    let mut image_settings = settings(&fixture.proxy.url());
    image_settings.listing = ListingMethod::Images(texts(&["org/a", "org/never"]));
    let expected = ["org/a:latest read", "org/never:latest gone"];
    assert_eq!(
        outcomes(&scan_all(&image_registry(image_settings)).await),
        expected
    );
}

#[tokio::test]
async fn docker_hub_is_listed_in_a_session_and_its_images_are_those_of_docker_io() {
    let Some(fixture) = RegistryFixture::with(&["org/private"]) else {
        return;
    };
    let hub = RegistryProxy::standalone();
    hub.respond(
        "POST /v2/users/login",
        Some(Intercept::text(r#"{"token":"session-of-tests"}"#)),
    );
    let listing = r#"{"count":1,"next":null,"results":[{"name":"private","is_private":true}]}"#;
    hub.respond("GET /v2/repositories/org/", Some(Intercept::text(listing)));
    let mut image_settings = settings(&fixture.proxy.url());
    image_settings.pull_from = Some(sutler_registry::HUB_HOST.to_owned());
    image_settings.listing = ListingMethod::DockerHub {
        url: hub.url(),
        org: "org".to_owned(),
    };
    image_settings.credentials = crate::fixture::login();
    let registry = image_registry(image_settings);
    let found = scan_all(&registry).await;
    assert_eq!(outcomes(&found), ["org/private:latest read"]);
    let spec = registry.fetch(&Item::new("org/private", "latest")).await;
    let image = spec.expect("a spec").image.expect("an image");
    assert!(
        image.starts_with("docker.io/org/private@sha256:"),
        "{image}"
    );
    let shown = hub.authorizations();
    let listed = shown.iter().find(|(line, _)| line.starts_with("GET"));
    let proof = listed.and_then(|(_, proof)| proof.as_deref());
    assert_eq!(proof, Some("Bearer session-of-tests"));

    hub.respond("GET /v2/repositories/org/", Some(Intercept::status(404)));
    let fault = registry
        .list()
        .await
        .expect_err("there is no such organisation");
    assert!(fault.to_string().contains("check `org`"), "{fault}");
}

#[tokio::test]
async fn quay_is_listed_with_the_token_of_an_application() {
    let quay = RegistryProxy::standalone();
    let listing = r#"{"repositories":[{"namespace":"org","name":"a","kind":"image"},
        {"namespace":"org","name":"chart","kind":"application"}]}"#;
    quay.respond(
        "GET /api/v1/repository?namespace=org",
        Some(Intercept::text(listing)),
    );
    let mut image_settings = settings(&quay.url());
    image_settings.listing = ListingMethod::Quay {
        url: quay.url(),
        org: "org".to_owned(),
    };
    image_settings.credentials = Credentials::Token("application-of-tests".into());
    let registry = image_registry(image_settings);
    let listing = registry.list().await.expect("a listing");
    assert_eq!(listing.items(), [Item::new("org/a", "latest")]);
    let shown = quay.authorizations();
    // Without this parameter, only the token's own user sees images.
    assert!(shown[0].0.contains("&public=true"), "{shown:?}");
    assert_eq!(shown[0].1.as_deref(), Some("Bearer application-of-tests"));

    // Images are requested with the user name of application tokens.
    quay.demand_tokens("$oauthtoken", "application-of-tests");
    let fault = registry.look_up(&Item::new("org/a", "latest")).await;
    let fault = fault.expect_err("there is no image behind this front");
    assert_ne!(fault.kind(), "denied", "{fault}");
}

#[tokio::test]
async fn a_catalog_that_gives_fewer_at_once_is_read_to_its_end_all_the_same() {
    let proxy = RegistryProxy::standalone();
    let too_many = r#"{"errors":[{"code":"PAGINATION_NUMBER_INVALID"}]}"#;
    let refused = Intercept::Answer {
        status: 400,
        headers: Vec::new(),
        body: too_many.to_owned(),
    };
    let first = Intercept::text(r#"{"repositories":["org/a"]}"#)
        .with("Link", "</v2/_catalog>; rel=\"first\"")
        .with("Link", "</v2/_catalog?last=org%2Fa&n=1>; rel=\"next\"");
    let second = Intercept::text(r#"{"repositories":["org/b"]}"#);
    proxy.respond("_catalog?last=", Some(second));
    proxy.respond("_catalog?n=1000", Some(refused));
    proxy.respond("_catalog", Some(first));
    let listing = image_registry(settings(&proxy.url())).list().await;
    let listing = listing.expect("a listing");
    let expected = ["org/a", "org/b"].map(|it| Item::new(it, "latest"));
    assert_eq!(listing.items(), expected);
}
