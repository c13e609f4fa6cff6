//! Registry blocks in the format of Automation Broker: accepted and refused ones.

use super::{faults, good, of_file};
use crate::config::model::{RegistryConfig, RegistryKind};
use crate::config::registries::open_registry;

/// The block of the proposal for several tags.
const PROPOSED: &str = "
auth: none
registry:
  - type: dockerhub
    name: dh
    url: https://registry.hub.docker.com
    org: ansibleplaybookbundle
    tag:
      default: latest
      named: 
        - hello-apb: 
          - v1.0
          - v2.0
        - postgres-apb: 
          - v3.9
    white_list:
      - '.*-apb$'
";

fn blocks(text: &str) -> Vec<RegistryConfig> {
    good(&of_file(text)).config.registry
}

fn refusal(block: &str) -> String {
    let text = format!("auth: none\nregistry: [{{name: r, {block}}}]\n");
    let blocks = blocks(&text);
    match open_registry(&blocks[0], &|_| None) {
        Ok(_) => panic!("{block} is taken"),
        Err(message) => message,
    }
}

#[test]
fn the_block_of_the_proposal_is_accepted_unchanged() {
    let blocks = blocks(PROPOSED);
    let [block] = blocks.as_slice() else {
        panic!("{blocks:?}");
    };
    assert_eq!(block.kind, RegistryKind::Dockerhub);
    assert_eq!(block.tag.default.as_deref(), Some("latest"));
    assert_eq!(block.tag.named["hello-apb"], ["v1.0", "v2.0"]);
    assert_eq!(block.tag.named["postgres-apb"], ["v3.9"]);
    let registry = open_registry(block, &|_| None).expect("it can be used");
    assert_eq!(registry.name(), "dh");
}

#[test]
fn registries_without_an_engine_for_their_images_are_warned_of() {
    let engine = "bundles: {container: {socket: /run/podman/podman.sock}}";
    for (more, warned) in [("", true), ("bundles: {work: w}", true), (engine, false)] {
        let draft = good(&of_file(&format!("{PROPOSED}{more}\n")));
        let warnings = draft.warnings.join("\n");
        assert_eq!(
            warnings.contains("bundles.container"),
            warned,
            "{more}: {warnings}"
        );
    }
}

#[test]
fn every_type_of_registry_is_built_from_its_block() {
    for block in [
        "type: oci, url: 'https://registry.example'",
        "type: apiv2, url: registry.example, images: [org/a], tag: v1",
        "type: dockerhub, images: [org/a]",
        "type: dockerhub, url: docker.io, org: org, runner: 'docker.io/x:latest', auth_type: ''",
        "type: partner_rhcc, url: 'https://registry.connect.example', user: me, pass: hush",
        "type: registry_proxy, url: 'https://proxy.example', images: [org/a]",
        "type: quay, org: org, token: hush",
        "type: openshift, url: 'https://api.example:6443', namespaces: [a, b]",
        "type: local_openshift, url: 'https://api.example:6443', fail_on_error: true",
        "type: index, url: 'https://example/bundles.yml', user: me, pass: hush",
        "type: oci, url: registry.example, tag: {named: {a: [v1]}}, allow: ['x'], deny: ['y']",
    ] {
        let text = format!("auth: none\nregistry: [{{name: r, {block}}}]\n");
        let blocks = blocks(&text);
        assert!(open_registry(&blocks[0], &|_| None).is_ok(), "{block}");
    }
}

#[test]
fn unusable_blocks_are_reported_without_their_secrets() {
    for (block, word) in [
        ("type: oci", "`url`"),
        ("type: local_openshift", "API server"),
        ("type: openshift, url: x, images: [org/a]", "`type: oci`"),
        ("type: dockerhub", "`org`"),
        ("type: quay", "`org`"),
        ("type: oci, url: x, skip_verify_tls: true", "`ca`"),
        ("type: oci, url: x, white_list: ['(']", "regular expression"),
        ("type: oci, url: x, tag: 'not a tag'", "tag"),
        ("type: oci, url: x, user: me", "a user and a password"),
        ("type: oci, url: x, pass: canary", "a user and a password"),
        ("type: oci, url: x, user: 'a:b', pass: canary", "colon"),
        (
            "type: oci, url: x, pass: '${env:NOWHERE}', user: me",
            "NOWHERE",
        ),
        ("type: oci, url: x, auth_type: file", "`auth_name`"),
        ("type: oci, url: x, auth_name: /nowhere", "auth_type"),
        (
            "type: oci, url: x, auth_type: file, auth_name: /nowhere",
            "/nowhere",
        ),
        ("type: oci, url: x, ca: /nowhere", "/nowhere"),
        ("type: oci, url: x, proxy: 'canary canary'", "proxy"),
        ("type: oci, url: 'https://u:canary@x'", "URL"),
    ] {
        let message = refusal(block);
        assert!(
            message.contains(word) && !message.contains("canary"),
            "{block}: {message}"
        );
    }
}

#[test]
fn unsupported_old_types_are_refused_with_a_replacement() {
    for (block, word) in [
        ("type: rhcc, url: x", "list `images`"),
        ("type: helm, url: x, runner: y", "sutler bundle new"),
        ("type: galaxy, url: x, runner: y", "sutler bundle new"),
        ("type: mock", "`bundles.folder`"),
        ("type: dockerhab", "did you mean `dockerhub`?"),
        (
            "type: oci, url: x, auth_type: secret, auth_name: y",
            "`file`",
        ),
    ] {
        let text = format!("auth: none\nregistry: [{{name: r, {block}}}]\n");
        let message = faults(&of_file(&text)).to_string();
        assert!(message.contains(word), "{block}: {message}");
    }
}

#[test]
fn credentials_are_read_from_a_file_in_the_format_of_automation_broker() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("login.yml");
    let block = format!(
        "type: oci, url: x, auth_type: file, auth_name: '{}'",
        file.display()
    );
    std::fs::write(&file, "username: me\npassword: canary\n").expect("a file");
    let text = format!("auth: none\nregistry: [{{name: r, {block}}}]\n");
    assert!(open_registry(&blocks(&text)[0], &|_| None).is_ok());
    std::fs::write(&file, "user: canary\n").expect("a file");
    let message = refusal(&block);
    assert!(
        message.contains("`username`") && !message.contains("canary"),
        "{message}"
    );
}

#[test]
fn names_of_registries_are_unique() {
    let block = "type: index, url: 'https://example/x'";
    for (text, word) in [
        (
            format!("registry: [{{name: a, {block}}}, {{name: a, {block}}}]"),
            "another name",
        ),
        (
            format!("registry: [{{name: 'A b', {block}}}]"),
            "small letters",
        ),
        (
            format!("registry: [{{name: '', {block}}}]"),
            "small letters",
        ),
        (
            format!("registry: [{{name: apb-push, {block}}}]"),
            "what developers push",
        ),
        ("registry: [{name: a, type: charts}]".to_owned(), "`oci`"),
        (
            "registry: [{name: a, type: oci, tag: {nmed: []}}]".to_owned(),
            "named",
        ),
    ] {
        let message = faults(&of_file(&format!("auth: none\n{text}\n"))).to_string();
        assert!(message.contains(word), "{text}: {message}");
    }
}
