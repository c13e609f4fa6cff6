//! Icons in the directory of the file.

use super::{OFFERING, faults, served};
use crate::CatalogFile;
use serde_json::{Value, json};
use std::path::Path;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

fn yaml(resource: &str) -> String {
    format!("{OFFERING}  metadata: {{image-url-resource: '{resource}'}}\n")
}

fn image_url(resource: &str, directory: Option<&Path>) -> Value {
    let file = CatalogFile::parse(&yaml(resource), directory).unwrap();
    served(&file)["services"][0]["metadata"]["imageUrl"].clone()
}

fn refusal(resource: &str, directory: &Path) -> String {
    let faults = faults(&yaml(resource), Some(directory));
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].path, "services[0].metadata.image_url_resource");
    faults[0].reason.clone()
}

/// Holds: B-065.
#[test]
fn an_icon_becomes_a_data_url_of_its_format() {
    let directory = tempfile::tempdir().unwrap();
    let svg = b"\xef\xbb\xbf<?xml version=\"1.0\"?>\n<!-- a licence -->\n<svg></svg>";
    let icons: [(&str, &[u8], &str); 6] = [
        ("a.png", PNG, "data:image/png;base64,iVBORw0KGgpyZXN0"),
        (
            "b.JPG",
            b"\xff\xd8\xff\xe0",
            "data:image/jpeg;base64,/9j/4A==",
        ),
        (
            "c.jpeg",
            b"\xff\xd8\xff\xe0",
            "data:image/jpeg;base64,/9j/4A==",
        ),
        ("d.gif", b"GIF89a", "data:image/gif;base64,R0lGODlh"),
        (
            "e.webp",
            b"RIFF1234WEBP",
            "data:image/webp;base64,UklGRjEyMzRXRUJQ",
        ),
        ("f.svg", svg, "data:image/svg+xml;base64,"),
    ];
    for (name, bytes, expected) in icons {
        std::fs::write(directory.path().join(name), bytes).unwrap();
        let url = image_url(name, Some(directory.path()));
        assert!(url.as_str().unwrap().starts_with(expected), "{url}");
    }
    std::fs::create_dir(directory.path().join("sub")).unwrap();
    std::fs::write(directory.path().join("sub/a.png"), PNG).unwrap();
    let url = image_url("./sub/a.png", Some(directory.path()));
    assert_eq!(url, json!("data:image/png;base64,iVBORw0KGgpyZXN0"));
}

#[test]
fn a_url_stays_as_it_is() {
    for url in [
        "https://example.com/a.png",
        "HTTP://example.com/a",
        "data:image/png;base64,AA==",
    ] {
        assert_eq!(image_url(url, None), json!(url));
    }
}

#[test]
fn an_image_url_wins_over_a_resource() {
    let lines = "  metadata: {image-url-resource: gone.png, image-url: 'https://example.com/b'}\n";
    let directory = tempfile::tempdir().unwrap();
    let file = CatalogFile::parse(&format!("{OFFERING}{lines}"), Some(directory.path())).unwrap();
    let metadata = &served(&file)["services"][0]["metadata"];
    assert_eq!(*metadata, json!({"imageUrl": "https://example.com/b"}));
}

#[test]
fn without_a_directory_the_icon_is_left_out_with_a_warning() {
    let file = CatalogFile::parse(&yaml("a.png"), None).unwrap();
    assert_eq!(served(&file)["services"][0]["metadata"], json!({}));
    assert!(
        file.warnings[0].contains("image_url_resource is left out"),
        "{:?}",
        file.warnings
    );
}

#[test]
fn nothing_outside_the_directory_is_read() {
    let outside = tempfile::tempdir().unwrap();
    let directory = outside.path().join("inside");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(outside.path().join("secret.png"), PNG).unwrap();
    let absolute = outside.path().join("secret.png");
    let escapes = [
        "../secret.png",
        "sub/../../secret.png",
        absolute.to_str().unwrap(),
        "",
    ];
    for resource in escapes {
        let reason = refusal(resource, &directory);
        assert!(
            reason.contains("in or below the directory"),
            "{resource}: {reason}"
        );
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&absolute, directory.join("link.png")).unwrap();
        assert!(refusal("link.png", &directory).contains("in or below the directory"));
    }
}

#[test]
fn a_file_that_is_not_an_image_is_not_served() {
    let directory = tempfile::tempdir().unwrap();
    let write =
        |name: &str, bytes: &[u8]| std::fs::write(directory.path().join(name), bytes).unwrap();
    write("passwords.txt", b"hunter2");
    write("passwords.png", b"hunter2");
    write("passwords.svg", b"hunter2 <svg");
    write("photo.gif", PNG);
    write("large.png", &[PNG, &vec![0; 256 * 1024]].concat());
    std::fs::create_dir(directory.path().join("folder.png")).unwrap();
    let table = [
        ("passwords.txt", "must be an image: .png"),
        ("passwords", "must be an image: .png"),
        ("passwords.png", "is no image/png"),
        ("passwords.svg", "is no image/svg+xml"),
        ("photo.gif", "is no image/gif"),
        ("large.png", "must not be larger than 262144 bytes"),
        ("folder.png", "must be a file"),
        ("gone.png", "cannot be read"),
    ];
    for (resource, expected) in table {
        let reason = refusal(resource, directory.path());
        assert!(reason.contains(expected), "{resource}: {reason}");
        assert!(!reason.contains("hunter2"), "{reason}");
    }
}
