//! Tests of a platform's configuration: layers, faults with their places, and what follows from it.

use super::PlatformConfig;
use super::load::merged;
use crate::config::ConfigInput;
use std::time::Duration;
use sutler_client::wire::EgressPolicy;

const USERS: &str = "users: [{name: ada, password: hush}, {name: bob, password: hush}]\n";

fn input(text: &str, variables: &[(&str, &str)]) -> ConfigInput {
    let variables = variables.iter();
    ConfigInput {
        file: Some(("platform.yaml".to_owned(), text.to_owned())),
        variables: variables
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        flags: Vec::new(),
    }
}

#[track_caller]
fn good(text: &str) -> PlatformConfig {
    match merged(&input(text, &[])) {
        Ok(resolved) => resolved.config,
        Err(faults) => panic!("{faults}"),
    }
}

fn faults(text: &str) -> String {
    match merged(&input(text, &[])) {
        Ok(_) => String::new(),
        Err(faults) => faults.to_string(),
    }
}

#[test]
fn users_are_enough() {
    let config = good(USERS);
    assert_eq!(config.listen.as_str(), "127.0.0.1:8090");
    assert_eq!(config.egress.policy(), EgressPolicy::public_only());
    assert_eq!(config.server().drain, Duration::from_secs(20));
    assert!(config.auth(&|_| None).is_ok());
}

#[test]
fn somebody_must_be_able_to_come_in() {
    for text in ["", "{}", "# nothing\n"] {
        let faults = faults(text);
        assert!(
            faults.contains("users must name at least one user"),
            "{faults}"
        );
    }
}

#[test]
fn all_values_are_taken_over() {
    let text = format!(
        "{USERS}id: eu-1\nlisten: 127.0.0.1:0\noperators: [ada]\nabandon: [ada]\ncredentials: [bob, 'token:https://i#7']\n\
         egress: {{networks: [10.0.0.0/8, 127.0.0.1]}}\nstore: {{url: 'memory:'}}\ndrain: 5s\n\
         timeouts: {{lease: 10s, idle: 9s}}\nlimits: {{body: 64KiB, changes_at_once: 7}}\n\
         issuers: [{{issuer: 'https://i', jwks_url: 'https://i/keys', audience: [sutler]}}]\n"
    );
    let config = good(&text);
    let EgressPolicy::PublicAnd(networks) = config.egress.policy() else {
        panic!("not everywhere");
    };
    assert_eq!(networks.len(), 2);
    let server = config.server();
    assert_eq!(server.drain, Duration::from_secs(5));
    assert_eq!(server.limits.idle_within, Duration::from_secs(9));
    assert_eq!(server.limits.changes_at_once, 7);
    assert!(config.auth(&|_| None).is_ok());
}

#[test]
fn brokers_may_be_everywhere_if_the_operator_says_so() {
    let config = good(&format!("{USERS}egress: {{anywhere: true}}\n"));
    assert_eq!(config.egress.policy(), EgressPolicy::Anywhere);
    let both = faults(&format!(
        "{USERS}egress: {{anywhere: true, networks: [10.0.0.0/8]}}\n"
    ));
    assert!(
        both.contains("platform.yaml:2:36: egress.networks means nothing"),
        "{both}"
    );
}

#[test]
fn a_fault_names_its_place_and_what_to_do() {
    for (text, expected) in [
        (
            "lisen: x\n",
            "platform.yaml:2:1: lisen is not a key; did you mean `listen`?",
        ),
        (
            "abandon: [eve]\n",
            "platform.yaml:2:11: abandon[0] is no user of this configuration",
        ),
        (
            "egress: {networks: [10.1.0.0/8]}\n",
            "begins with its lowest address",
        ),
        (
            "timeouts: {lease: 10ms}\n",
            "timeouts.lease must be at least 1s",
        ),
        ("auth: none\n", "auth is not a key"),
        ("---\nid: x\n", "must have one document"),
        ("id: ''\n", "id must have 1 to 200 bytes"),
    ] {
        let faults = faults(&format!("{USERS}{text}"));
        assert!(faults.contains(expected), "{text}: {faults}");
    }
}

#[test]
fn an_issuer_is_listed_once() {
    let issuer = "{issuer: 'https://i', jwks_url: 'https://i/keys', audience: [sutler]}";
    let faults = faults(&format!("issuers: [{issuer}, {issuer}]\n"));
    assert!(
        faults.contains("issuers[1].issuer is in the list already"),
        "{faults}"
    );
}

#[test]
fn variables_override_the_file() {
    let variables = [
        ("SUTLER_LISTEN", "127.0.0.1:1"),
        ("SUTLER_EGRESS__NETWORKS", "[10.0.0.0/8]"),
        ("SUTLER_LOG", "debug"),
    ];
    let resolved = merged(&input(&format!("{USERS}listen: 127.0.0.1:2\n"), &variables));
    let config = resolved.expect("a configuration").config;
    assert_eq!(config.listen.as_str(), "127.0.0.1:1");
    assert_eq!(config.egress.networks.len(), 1);
    assert_eq!(config.log.level, "debug");
    let unknown = merged(&input(USERS, &[("SUTLER_CATALOG__FILE", "x")])).err();
    let unknown = unknown.expect("a fault").to_string();
    assert!(unknown.contains("SUTLER_CATALOG__FILE"), "{unknown}");
}
