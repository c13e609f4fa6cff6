//! Documents of images as registries send them.

use super::*;

fn digest(of: &str) -> Digest {
    Digest::of(of.as_bytes())
}

fn child(of: &str, platform: Option<&str>) -> Child {
    Child {
        digest: digest(of),
        platform: platform.map(str::to_owned),
    }
}

fn labels_of(pairs: &[(&str, &str)]) -> Labels {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn images_of_oci_and_of_docker_are_read_alike() {
    for media in [
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    ] {
        let text = format!(
            r#"{{"schemaVersion":2,"mediaType":"{media}","config":{{"mediaType":"x","size":1,"digest":"{}"}},
            "layers":[],"annotations":{{"a":"b"}}}}"#,
            digest("config")
        );
        let expected = ImageManifest::Image {
            config: digest("config"),
            annotations: labels_of(&[("a", "b")]),
        };
        assert_eq!(read(text.as_bytes()), Ok(expected));
    }
}

#[test]
fn an_index_lists_an_image_per_platform() {
    let text = format!(
        r#"{{"schemaVersion":2,"manifests":[
        {{"digest":"{}","size":1,"platform":{{"os":"linux","architecture":"arm64","variant":"v8"}}}},
        {{"digest":"{}","size":1}}]}}"#,
        digest("arm"),
        digest("plain")
    );
    let expected = ImageManifest::Index {
        children: vec![child("arm", Some("linux/arm64/v8")), child("plain", None)],
        annotations: Labels::new(),
    };
    assert_eq!(read(text.as_bytes()), Ok(expected));
}

#[test]
fn a_document_that_is_not_an_image_is_refused_with_a_hint() {
    for text in [
        "",
        "<html>",
        "[]",
        "{}",
        r#"{"schemaVersion":1,"history":[]}"#,
        r#"{"config":{"digest":"md5:x"}}"#,
        r#"{"manifests":[{"digest":"latest"}]}"#,
    ] {
        let sentence = read(text.as_bytes()).expect_err(text);
        assert!(sentence.contains("push it again"), "{sentence}");
    }
}

#[test]
fn the_nearest_platform_is_chosen() {
    let children = [
        child("arm", Some("linux/arm64/v8")),
        child("amd", Some("linux/amd64")),
    ];
    let chosen = |platform| choose(&children, platform).map(|it| it.digest.clone());
    assert_eq!(chosen("linux/amd64"), Ok(digest("amd")));
    assert_eq!(chosen("linux/arm64"), Ok(digest("arm")));
    let sentence = chosen("linux/s390x").expect_err("there is none");
    assert!(sentence.contains("linux/amd64"), "{sentence}");
    let only = [child("only", None)];
    assert_eq!(
        choose(&only, "linux/amd64").map(|it| &it.digest),
        Ok(&digest("only"))
    );
}

#[test]
fn labels_are_found_where_images_have_them() {
    let expected = labels_of(&[("a", "b")]);
    assert_eq!(labels(br#"{"config":{"Labels":{"a":"b"}}}"#), expected);
    let older = br#"{"config":{"Labels":null},"container_config":{"Labels":{"a":"b"}}}"#;
    assert_eq!(labels(older), expected);
    for none in ["", "{}", "[]", r#"{"config":{"Labels":null}}"#] {
        assert_eq!(labels(none.as_bytes()), Labels::new(), "{none}");
    }
}

#[test]
fn a_bundle_is_read_from_its_labels() {
    // "version: 1.0\n", with the line breaks and the missing padding that tools leave.
    let spec = "dmVyc2lv\nbjogMS4wCg";
    let found = labelled(&labels_of(&[
        (SPEC_LABEL, spec),
        ("com.redhat.apb.runtime", "1"),
        ("com.redhat.bundle.runtime", "2"),
        (FILE_LABEL, "bundle.yml"),
    ]));
    let expected = BundleLabels {
        manifest: Bytes::from_static(b"version: 1.0\n"),
        file: "bundle.yml".to_owned(),
        runtime: Some("2".to_owned()),
    };
    assert_eq!(found, Ok(Some(expected)));
}

#[test]
fn an_image_without_the_label_is_not_a_bundle_and_one_with_a_bad_label_is_broken() {
    assert_eq!(labelled(&labels_of(&[("a", "b")])), Ok(None));
    let large = "A".repeat(2 * SPEC_BYTES_MAX);
    for bad in ["", "?", "====", &large] {
        assert!(labelled(&labels_of(&[(SPEC_LABEL, bad)])).is_err());
    }
    let odd = labels_of(&[(SPEC_LABEL, "YQ=="), (FILE_LABEL, "../x")]);
    let found = labelled(&odd).expect("readable").expect("a bundle");
    assert_eq!(found.file, FILE);
}
