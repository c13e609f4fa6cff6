//! Formats of images: OCI and Docker, for one or several platforms, with labels or annotations.

use crate::fixture::{RegistryFixture, image_registry, kind_of, settings};
use sutler_registry::{Item, Registry};
use sutler_servers::docker_registry::Image;

const MANIFEST: &str = "version: 1.0\nname: hello-apb\n";

#[tokio::test]
async fn images_of_oci_and_of_docker_alone_and_in_lists_are_read() {
    let Some(fixture) = RegistryFixture::open() else {
        return;
    };
    for (name, docker, listed_for) in [
        ("oci", false, None),
        ("oci-list", false, Some("amd64")),
        ("docker", true, None),
        ("docker-list", true, Some("amd64")),
    ] {
        let image = Image {
            docker,
            listed_for: listed_for.map(str::to_owned),
            ..Image::bundle(MANIFEST)
        };
        let pushed = fixture.server.push(name, "latest", &image);
        let spec = fixture.registry().fetch(&Item::new(name, "latest")).await;
        let spec = spec.unwrap_or_else(|fault| panic!("{name}: {fault}"));
        assert_eq!(spec.digest.to_string(), pushed.digest, "{name}");
        assert_eq!(spec.manifest, MANIFEST.as_bytes(), "{name}");
        assert_eq!(spec.file, "apb.yml", "{name}");
        assert_eq!(spec.runtime.as_deref(), Some("2"), "{name}");
        let host = fixture.proxy.url();
        let host = host.trim_start_matches("http://");
        assert_eq!(spec.image, Some(format!("{host}/{name}@{}", pushed.digest)));
    }
}

#[tokio::test]
async fn annotations_replace_missing_labels_and_name_the_manifest_file() {
    let Some(fixture) = RegistryFixture::open() else {
        return;
    };
    let mut annotations = Image::bundle(MANIFEST).labels;
    annotations.push(("sutler.bundle.file".to_owned(), "bundle.yml".to_owned()));
    let image = Image {
        annotations,
        ..Image::default()
    };
    fixture.server.push("annotated", "latest", &image);
    let spec = fixture
        .registry()
        .fetch(&Item::new("annotated", "latest"))
        .await;
    let spec = spec.expect("a bundle");
    assert_eq!(spec.manifest, MANIFEST.as_bytes());
    assert_eq!(spec.file, "bundle.yml");
    let requests = fixture.proxy.requests();
    assert!(
        !requests.iter().any(|it| it.contains("/blobs/")),
        "{requests:?}"
    );
}

#[tokio::test]
async fn an_image_for_other_platforms_only_is_refused_until_that_one_is_wanted() {
    let Some(fixture) = RegistryFixture::open() else {
        return;
    };
    let image = Image {
        listed_for: Some("arm64".to_owned()),
        ..Image::bundle(MANIFEST)
    };
    fixture.server.push("arm", "latest", &image);
    let fault = fixture.registry().fetch(&Item::new("arm", "latest")).await;
    let sentence = fault.expect_err("none for this platform").to_string();
    assert!(sentence.contains("linux/arm64"), "{sentence}");
    let mut image_settings = settings(&fixture.proxy.url());
    image_settings.platform = Some("linux/arm64".to_owned());
    assert_eq!(
        kind_of(&image_registry(image_settings), "arm").await,
        "read"
    );
}

#[tokio::test]
async fn one_bad_label_is_a_fault_of_its_own_image_only() {
    let Some(fixture) = RegistryFixture::with(&["good"]) else {
        return;
    };
    let label = ("com.redhat.apb.spec".to_owned(), "??? no base64".to_owned());
    let image = Image {
        labels: vec![label],
        ..Image::default()
    };
    fixture.server.push("bad", "latest", &image);
    fixture.server.push("plain", "latest", &Image::default());
    let registry = fixture.registry();
    assert_eq!(kind_of(&registry, "bad").await, "malformed");
    assert_eq!(kind_of(&registry, "plain").await, "not-a-bundle");
    assert_eq!(kind_of(&registry, "good").await, "read");
    // An image that is known not to be a bundle is not read again.
    drop(fixture.proxy.requests());
    for image in ["bad", "plain"] {
        kind_of(&registry, image).await;
    }
    let requests = fixture.proxy.requests();
    assert!(
        requests.iter().all(|it| it.starts_with("HEAD ")),
        "{requests:?}"
    );
}
