//! Provisions during a refresh: they wait for its result, within limits, and then run in containers or fail
//! with the reason.

use super::fixture::{BrokerClient, Fixture, OfferingIds};
use super::image_registry::engine;
use super::token_registry::TokenRegistry;
use serde_json::{Value, json};
use std::thread;
use sutler_servers::podman::{self, Podman};

const LATER: &str = "?accepts_incomplete=true";

fn podman_and_registry() -> Option<(&'static Podman, TokenRegistry)> {
    let podman = podman::shared().filter(|it| it.is_own());
    let registry = TokenRegistry::open();
    podman.zip(registry)
}

/// A broker that waits for its registry for as long as a test holds it.
fn fixture(podman: &Podman, registry: &TokenRegistry) -> Fixture {
    let mut block = registry.block("own");
    block["answer_within"] = json!("60s");
    Fixture::new(&[block]).set("/bundles/container", engine(podman))
}

/// Ids of the bundles of a registry. They are derived from names, so every broker computes the same ones.
fn ids_of<const COUNT: usize>(
    registry: &TokenRegistry,
    names: [&str; COUNT],
) -> [OfferingIds; COUNT] {
    let broker = Fixture::new(&[registry.block("own")]).broker();
    broker.refreshed();
    names.map(|name| broker.ids(name))
}

#[track_caller]
fn in_progress(broker: &BrokerClient, instance: &str, ids: &OfferingIds) {
    let path = format!("{instance}/last_operation");
    let polled = broker.expect_status(200, "GET", &path, ids);
    assert_eq!(polled["state"], "in progress", "{polled}");
}

#[track_caller]
fn description(answer: &Value) -> &str {
    answer["description"].as_str().unwrap_or_default()
}

#[test]
fn a_provision_before_the_registry_has_answered_waits_and_then_runs_in_a_container() {
    let Some((podman, registry)) = podman_and_registry() else {
        return;
    };
    registry.build(podman, "late-apb", "1.0.0");
    let [ids] = ids_of(&registry, ["late-apb"]);
    let nowhere = OfferingIds {
        service: "no-such-service".to_owned(),
        plan: "no-such-plan".to_owned(),
    };
    registry.hold_lists();
    let fixture = fixture(podman, &registry);
    let broker = fixture.broker();
    registry.until_held();
    assert_eq!(broker.offers(), Vec::<String>::new());
    broker.expect_status(202, "PUT", &format!("async{LATER}"), &ids);
    broker.expect_status(202, "PUT", &format!("never{LATER}"), &nowhere);
    let client: &BrokerClient = &broker;
    thread::scope(|scope| {
        let waits = scope.spawn(|| client.request("PUT", "sync", &ids));
        let vain = scope.spawn(|| client.request("PUT", "vain", &nowhere));
        in_progress(&broker, "async", &ids);
        in_progress(&broker, "never", &nowhere);
        assert!(!waits.is_finished() && !vain.is_finished());
        registry.front.reset();
        let (status, answer) = waits.join().expect("no panic");
        assert_eq!(status, 201, "{answer}");
        let (status, answer) = vain.join().expect("no panic");
        assert_eq!(status, 400, "{answer}");
    });
    let ended = broker.until_ended("async", &ids);
    assert_eq!(ended["state"], "succeeded", "{ended}");
    for instance in ["async", "sync"] {
        assert_eq!(broker.log_of("provision", instance), "provision by 1.0.0\n");
        broker.expect_status(200, "DELETE", instance, &ids);
    }
    let ended = broker.until_ended("never", &nowhere);
    assert_eq!(ended["state"], "failed", "{ended}");
    assert!(description(&ended).contains("no-such-plan"), "{ended}");
}

#[test]
fn waiting_provisions_are_limited_in_time_and_number() {
    let Some(registry) = TokenRegistry::open() else {
        return;
    };
    registry.push("late-apb", "1.0.0");
    let [ids] = ids_of(&registry, ["late-apb"]);
    registry.hold_lists();
    let mut block = registry.block("own");
    block["answer_within"] = json!("60s");
    let fixture = Fixture::new(&[block]).set("/refresh/synchronous_wait", json!("1s"));
    let fixture = fixture.set("/refresh/waiting", json!(1));
    let broker = fixture.set("/refresh/wait", json!("2s")).broker();
    registry.until_held();
    broker.expect_status(202, "PUT", &format!("first{LATER}"), &ids);
    let crowded = broker.expect_status(422, "PUT", &format!("second{LATER}"), &ids);
    assert_eq!(crowded["error"], "ConcurrencyError", "{crowded}");
    let busy = broker.expect_status(422, "PUT", "sync", &ids);
    assert_eq!(busy["error"], "ConcurrencyError", "{busy}");
    assert!(description(&busy).contains("repeat"), "{busy}");
    let ended = broker.until_ended("first", &ids);
    assert_eq!(ended["state"], "failed", "{ended}");
    // The refused requests created nothing.
    broker.expect_status(404, "GET", "second", &ids);
    broker.expect_status(404, "GET", "sync", &ids);
    registry.front.reset();
}

#[test]
fn a_provision_of_a_withdrawn_service_waits_for_a_refresh_that_may_bring_it_back() {
    let Some((podman, registry)) = podman_and_registry() else {
        return;
    };
    let names = ["gone-apb", "back-apb"];
    let pushed = names.map(|name| registry.build(podman, name, "1.0.0"));
    let fixture = fixture(podman, &registry);
    let broker = fixture.broker();
    broker.refreshed();
    let [gone, back] = names.map(|name| broker.ids(name));
    for (name, pushed) in names.iter().zip(&pushed) {
        registry.delete(name, pushed);
    }
    broker.refreshed();
    let refused = broker.expect_status(400, "PUT", "early", &back);
    let expected = "The service back-apb was withdrawn at 20";
    assert!(description(&refused).starts_with(expected), "{refused}");

    registry.hold_lists();
    broker.run_ok(&["registry", "refresh"]);
    registry.until_held();
    registry.build(podman, "back-apb", "1.0.1");
    broker.expect_status(202, "PUT", &format!("gone{LATER}"), &gone);
    let client: &BrokerClient = &broker;
    thread::scope(|scope| {
        let comes = scope.spawn(|| client.request("PUT", "back", &back));
        let stays = scope.spawn(|| client.request("PUT", "stays", &gone));
        in_progress(&broker, "gone", &gone);
        assert!(!comes.is_finished() && !stays.is_finished());
        registry.front.reset();
        let (status, answer) = comes.join().expect("no panic");
        assert_eq!(status, 201, "{answer}");
        let (status, answer) = stays.join().expect("no panic");
        assert_eq!(status, 400, "{answer}");
        let expected = "The service gone-apb was withdrawn at 20";
        assert!(description(&answer).starts_with(expected), "{answer}");
    });
    assert_eq!(broker.log_of("provision", "back"), "provision by 1.0.1\n");
    broker.expect_status(200, "DELETE", "back", &back);
    let ended = broker.until_ended("gone", &gone);
    assert_eq!(ended["state"], "failed", "{ended}");
    assert!(description(&ended).contains("was withdrawn at"), "{ended}");
}
