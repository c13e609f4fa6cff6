//! Packed images: equal bundles give equal bytes, and other tools can read them.

use super::{PackError, PackOptions, pack};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

const MANIFEST: &str = "{name: some, bundle_version: 1.2.3, description: Some thing., \
    plans: [{name: p, description: P.}]}";

fn bundle(folder: &Path) {
    fs::create_dir_all(folder.join("actions")).expect("folders");
    fs::write(folder.join("bundle.yml"), MANIFEST).expect("a manifest");
    for action in ["provision", "deprovision"] {
        let path = folder.join("actions").join(action);
        fs::write(&path, "#!/bin/sh\n").expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("its mode");
    }
    let deep = folder.join("deep").join("x".repeat(120));
    fs::create_dir_all(&deep).expect("folders");
    fs::write(deep.join("y".repeat(120)), "long").expect("a file");
    symlink("actions/provision", folder.join("first")).expect("a link");
}

fn packed(folder: &Path, options: &PackOptions) -> (Vec<u8>, super::PackedImage) {
    let mut out = Vec::new();
    let packed = pack(folder, options, &mut out);
    let packed = packed.unwrap_or_else(|fault| panic!("{fault}"));
    (out, packed)
}

/// Files of a tar: content and mode.
fn files(tar: &[u8]) -> BTreeMap<String, (Vec<u8>, u32)> {
    let mut archive = tar::Archive::new(tar);
    let entries = archive.entries().expect("a tar");
    let read = |entry: std::io::Result<tar::Entry<'_, _>>| {
        let mut entry = entry.expect("an entry");
        let path = entry.path().expect("a path").display().to_string();
        let mode = entry.header().mode().expect("a mode");
        assert_eq!(entry.header().mtime().expect("a time"), 0, "{path}");
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("its bytes");
        (path, (bytes, mode))
    };
    entries.map(read).collect()
}

fn blob(files: &BTreeMap<String, (Vec<u8>, u32)>, descriptor: &Value) -> Vec<u8> {
    let digest = descriptor["digest"].as_str().expect("a digest");
    let (bytes, _) = &files[&format!("blobs/{}", digest.replace(':', "/"))];
    assert_eq!(descriptor["size"], json!(bytes.len()));
    bytes.clone()
}

fn parsed(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("JSON")
}

#[test]
fn the_same_bundle_gives_the_same_bytes_in_every_folder() {
    let (one, other) = (
        tempfile::tempdir().expect("one"),
        tempfile::tempdir().expect("two"),
    );
    bundle(one.path());
    bundle(other.path());
    // Files of checkouts and runs are not packed.
    fs::create_dir_all(other.path().join(".git")).expect("a folder");
    fs::write(other.path().join(".git/HEAD"), "x").expect("a file");
    let (first, packed_image) = packed(one.path(), &PackOptions::default());
    let (second, same) = packed(other.path(), &PackOptions::default());
    assert!(first == second, "the bytes differ");
    assert_eq!(packed_image, same);
    assert_eq!(packed_image.reference, "some:1.2.3");
    fs::write(other.path().join("more"), "x").expect("a file");
    let (_, changed) = packed(other.path(), &PackOptions::default());
    assert_ne!(packed_image.digest, changed.digest);
}

#[test]
fn an_image_carries_the_manifest_and_starts_the_scripts() {
    let folder = tempfile::tempdir().expect("a folder");
    bundle(folder.path());
    let (out, packed_image) = packed(folder.path(), &PackOptions::default());
    let files = files(&out);
    assert_eq!(
        parsed(&files["oci-layout"].0)["imageLayoutVersion"],
        json!("1.0.0")
    );
    let index = parsed(&files["index.json"].0);
    assert_eq!(index["manifests"][0]["digest"], json!(packed_image.digest));
    let image = parsed(&blob(&files, &index["manifests"][0]));
    let annotations = &image["annotations"];
    assert_eq!(annotations["org.opencontainers.image.title"], json!("some"));
    assert_eq!(
        annotations["org.opencontainers.image.version"],
        json!("1.2.3")
    );
    let config = parsed(&blob(&files, &image["config"]));
    let labels = &config["config"]["Labels"];
    assert_eq!(
        labels["com.redhat.apb.spec"],
        json!(STANDARD.encode(MANIFEST))
    );
    assert_eq!(labels["com.redhat.apb.runtime"], json!("2"));
    assert_eq!(
        config["config"]["Entrypoint"],
        json!(["/opt/bundle-entrypoint"])
    );
    assert_eq!(
        config["rootfs"]["diff_ids"][0],
        image["layers"][0]["digest"]
    );
    let layer = self::files(&blob(&files, &image["layers"][0]));
    assert_eq!(layer["opt/bundle/bundle.yml"].1, 0o644);
    assert_eq!(layer["opt/bundle/actions/provision"].1, 0o755);
    let (script, mode) = &layer["opt/bundle-entrypoint"];
    assert!(script.starts_with(b"#!/bin/sh\n") && *mode == 0o755);
}

#[test]
fn an_image_can_have_a_base_image() {
    let folder = tempfile::tempdir().expect("a folder");
    bundle(folder.path());
    let base = tempfile::tempdir().expect("a folder");
    let (below, _) = packed(folder.path(), &PackOptions::default());
    let tar = base.path().join("base.tar");
    fs::write(&tar, &below).expect("a file");
    let layout = base.path().join("layout");
    tar::Archive::new(&below[..])
        .unpack(&layout)
        .expect("a layout");
    fs::write(folder.path().join("more"), "x").expect("a file");
    let on = |base: &Path| {
        let options = PackOptions {
            base: Some(base.to_owned()),
            reference: Some("mine:1".to_owned()),
            ..PackOptions::default()
        };
        packed(folder.path(), &options)
    };
    let (from_tar, packed_image) = on(&tar);
    let (from_folder, same) = on(&layout);
    assert!(from_tar == from_folder && packed_image == same);
    assert_eq!(
        (packed_image.layers, packed_image.reference.as_str()),
        (2, "mine:1")
    );
    let files = files(&from_tar);
    let index = parsed(&files["index.json"].0);
    let image = parsed(&blob(&files, &index["manifests"][0]));
    for layer in image["layers"].as_array().expect("layers") {
        blob(&files, layer);
    }
    let config = parsed(&blob(&files, &image["config"]));
    assert_eq!(
        config["rootfs"]["diff_ids"].as_array().map(Vec::len),
        Some(2)
    );
}

#[test]
fn a_bundle_that_cannot_be_an_image_is_refused_with_a_hint() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |options: &PackOptions| {
        let fault = pack(folder.path(), options, &mut Vec::new());
        fault.expect_err("it is refused").to_string()
    };
    assert!(refused(&PackOptions::default()).contains("sutler bundle new"));
    bundle(folder.path());
    let missing = PackOptions {
        base: Some(folder.path().join("bundle.yml")),
        ..PackOptions::default()
    };
    let said = refused(&missing);
    assert!(said.contains("base"), "{said}");
    symlink("/etc/hostname", folder.path().join("out")).expect("a link");
    assert!(refused(&PackOptions::default()).starts_with("out cannot be packed"));
    fs::remove_file(folder.path().join("bundle.yml")).expect("removed");
    let old = "{version: 1.0, name: a, description: d, plans: [{name: p, description: d}]}";
    fs::write(folder.path().join("apb.yml"), old).expect("a manifest");
    let said = refused(&PackOptions::default());
    assert!(said.contains("--base"), "{said}");
}

#[test]
fn a_base_whose_blobs_do_not_match_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    bundle(folder.path());
    let (below, _) = packed(folder.path(), &PackOptions::default());
    let layout = tempfile::tempdir().expect("a folder");
    tar::Archive::new(&below[..])
        .unpack(layout.path())
        .expect("a layout");
    let blobs = fs::read_dir(layout.path().join("blobs/sha256")).expect("blobs");
    let largest = blobs
        .map(|blob| blob.expect("a blob").path())
        .max_by_key(|path| fs::metadata(path).map_or(0, |it| it.len()))
        .expect("a layer");
    let mut bytes = fs::read(&largest).expect("its bytes");
    bytes[0] ^= 1;
    fs::write(&largest, bytes).expect("written");
    let options = PackOptions {
        base: Some(layout.path().to_owned()),
        ..PackOptions::default()
    };
    let fault = pack(folder.path(), &options, &mut Vec::new()).expect_err("damaged");
    assert!(matches!(&fault, PackError::Base { .. }), "{fault}");
    assert!(fault.to_string().contains("damaged"), "{fault}");
}

#[test]
fn others_read_the_image() {
    let skopeo = Command::new("skopeo").arg("--version").output();
    if skopeo.is_err() {
        let must = std::env::var_os("CI").is_some_and(|value| value == "true");
        assert!(!must, "skopeo is not installed: the test needs it");
        eprintln!("skipped: skopeo is not installed");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    bundle(folder.path());
    let (out, packed_image) = packed(folder.path(), &PackOptions::default());
    let tar = tempfile::tempdir().expect("a folder");
    let image = tar.path().join("image.tar");
    fs::write(&image, out).expect("a file");
    let output = Command::new("skopeo")
        .arg("inspect")
        .arg(format!("oci-archive:{}", image.display()))
        .output()
        .expect("skopeo runs");
    assert!(output.status.success(), "{output:?}");
    let inspected = parsed(&output.stdout);
    assert_eq!(inspected["Digest"], json!(packed_image.digest));
    assert_eq!(
        inspected["Labels"]["com.redhat.apb.spec"],
        json!(STANDARD.encode(MANIFEST))
    );
}
