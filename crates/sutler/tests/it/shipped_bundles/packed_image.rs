//! A bundle as an image: packed without an engine, loaded by Podman, and run by the container runner.

use super::fixture::repository_bundle;
use crate::process::{folder, sutler};
use serde_json::Value;
use std::fs;
use std::path::Path;
use sutler_servers::podman::{Podman, SHELL_IMAGE, shared};

/// Runs a command of the program; returns its output.
#[track_caller]
fn done(folder: &Path, words: &[&str]) -> String {
    let output = sutler(folder).args(words).output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{words:?}: {stdout}{stderr}");
    stdout
}

/// Packs the bundle `hello` onto an image with a shell, and loads it; returns the printed digest.
fn load(podman: &Podman, folder: &Path) -> String {
    let at = |name: &str| folder.join(name).display().to_string();
    let (base, packed) = (at("base.tar"), at("hello.tar"));
    let _ = podman.podman(&["save", "--format", "oci-archive", "-o", &base, SHELL_IMAGE]);
    let hello = repository_bundle("hello").display().to_string();
    let words = ["bundle", "pack", &hello, "--base", &base, "-o", &packed];
    let stdout = done(folder, &words);
    let digest = stdout.lines().last().expect("a digest").to_owned();
    let loaded = podman.podman(&["load", "-i", &packed]);
    assert!(loaded.contains("hello:1.0.0"), "{loaded}");
    digest
}

#[test]
fn a_packed_bundle_is_loaded_by_podman_and_runs_in_containers() {
    let Some(podman) = shared().filter(|it| it.is_own()) else {
        return;
    };
    let folder = folder();
    let digest = load(podman, folder.path());
    let image = "localhost/hello:1.0.0";
    let inspected = podman.podman(&["image", "inspect", image]);
    let inspected: Value = serde_json::from_str(&inspected).expect("JSON");
    let inspected = &inspected[0];
    assert_eq!(inspected["Digest"], digest.as_str());
    let manifest = fs::read(repository_bundle("hello").join("bundle.yml")).expect("a manifest");
    let spec = inspected["Labels"]["com.redhat.apb.spec"].as_str();
    let encoded = crate::http_request::base64(&String::from_utf8(manifest).expect("text"));
    assert_eq!(spec, Some(encoded.as_str()), "the manifest, in Base64");
    let noted = &inspected["Annotations"]["org.opencontainers.image.title"];
    assert_eq!(noted, "hello", "{inspected:#}");

    // As a registry would offer it: the same manifest, with an image instead of scripts.
    let bundle = folder.path().join("hello");
    fs::create_dir(&bundle).expect("a folder");
    let manifest =
        fs::read_to_string(repository_bundle("hello").join("bundle.yml")).expect("a manifest");
    let manifest = manifest.replace("entrypoint: scripts", &format!("image: {image}"));
    fs::write(bundle.join("bundle.yml"), manifest).expect("a manifest");
    let engine = podman.socket.display().to_string();
    let engine = ["--engine", &engine, "--network", "none"];
    let run = |words: &[&str]| done(folder.path(), &[&["bundle"], words, &engine].concat());
    assert_eq!(run(&["run", "provision", "hello"]), "provision done\n");
    let bound = run(&["run", "bind", "hello", "--show-credentials"]);
    assert!(bound.contains("\"greeting\": \"Hello\""), "{bound}");
    assert_eq!(run(&["run", "deprovision", "hello"]), "deprovision done\n");
    let tested = run(&["test", "hello", "--example", "changed later"]);
    assert!(tested.ends_with("16 steps, all done\n"), "{tested}");
    let left = podman.podman(&["ps", "-aq", "--filter", "label=sutler.bundle=hello"]);
    assert_eq!(left, "", "containers are left");
}
