//! Provisions that come while a registry is being asked: they wait for what it says, within bounds, and then
//! run in containers or are told why not.

use super::fixture::{BrokerClient, Fixture, OfferingIds};
use super::image_registry::engine;
use super::token_registry::TokenRegistry;
use serde_json::{Value, json};
use std::thread;
use sutler_servers::podman::{self, Podman};

const LATER: &str = "?accepts_incomplete=true";

fn scene() -> Option<(&'static Podman, TokenRegistry)> {
    let podman = podman::shared().filter(|it| it.is_own());
    let harbour = TokenRegistry::open();
    podman.zip(harbour)
}

/// A site whose broker waits for its registry as long as a test holds it.
fn site(podman: &Podman, harbour: &TokenRegistry) -> Fixture {
    let mut block = harbour.block("own");
    block["answer_within"] = json!("60s");
    Fixture::new(&[block]).set("/bundles/container", engine(podman))
}

/// What the bundles of a harbour are called by platforms. Ids are made of names, whoever makes them.
fn ids_of<const COUNT: usize>(
    harbour: &TokenRegistry,
    names: [&str; COUNT],
) -> [OfferingIds; COUNT] {
    let house = Fixture::new(&[harbour.block("own")]).broker();
    house.refreshed();
    names.map(|name| house.ids(name))
}

#[track_caller]
fn in_progress(house: &BrokerClient, instance: &str, ids: &OfferingIds) {
    let path = format!("{instance}/last_operation");
    let polled = house.asked(200, "GET", &path, ids);
    assert_eq!(polled["state"], "in progress", "{polled}");
}

#[track_caller]
fn description(answer: &Value) -> &str {
    answer["description"].as_str().unwrap_or_default()
}

#[test]
fn a_provision_before_the_registry_has_answered_waits_and_then_runs_in_a_container() {
    let Some((podman, harbour)) = scene() else {
        return;
    };
    harbour.build(podman, "late-apb", "1.0.0");
    let [ids] = ids_of(&harbour, ["late-apb"]);
    let nowhere = OfferingIds {
        service: "no-such-service".to_owned(),
        plan: "no-such-plan".to_owned(),
    };
    harbour.hold_lists();
    let site = site(podman, &harbour);
    let house = site.broker();
    harbour.until_held();
    assert_eq!(house.offers(), Vec::<String>::new());
    house.asked(202, "PUT", &format!("async{LATER}"), &ids);
    house.asked(202, "PUT", &format!("never{LATER}"), &nowhere);
    let client: &BrokerClient = &house;
    thread::scope(|scope| {
        let waits = scope.spawn(|| client.ask("PUT", "sync", &ids));
        let vain = scope.spawn(|| client.ask("PUT", "vain", &nowhere));
        in_progress(&house, "async", &ids);
        in_progress(&house, "never", &nowhere);
        assert!(!waits.is_finished() && !vain.is_finished());
        harbour.front.reset();
        let (status, answer) = waits.join().expect("no panic");
        assert_eq!(status, 201, "{answer}");
        let (status, answer) = vain.join().expect("no panic");
        assert_eq!(status, 400, "{answer}");
    });
    let ended = house.until_ended("async", &ids);
    assert_eq!(ended["state"], "succeeded", "{ended}");
    for instance in ["async", "sync"] {
        assert_eq!(house.log_of("provision", instance), "provision by 1.0.0\n");
        house.asked(200, "DELETE", instance, &ids);
    }
    let ended = house.until_ended("never", &nowhere);
    assert_eq!(ended["state"], "failed", "{ended}");
    assert!(description(&ended).contains("no-such-plan"), "{ended}");
}

#[test]
fn waiting_provisions_are_limited_in_time_and_number() {
    let Some(harbour) = TokenRegistry::open() else {
        return;
    };
    harbour.push("late-apb", "1.0.0");
    let [ids] = ids_of(&harbour, ["late-apb"]);
    harbour.hold_lists();
    let mut block = harbour.block("own");
    block["answer_within"] = json!("60s");
    let site = Fixture::new(&[block]).set("/refresh/synchronous_wait", json!("1s"));
    let site = site.set("/refresh/waiting", json!(1));
    let house = site.set("/refresh/wait", json!("2s")).broker();
    harbour.until_held();
    house.asked(202, "PUT", &format!("first{LATER}"), &ids);
    let crowded = house.asked(422, "PUT", &format!("second{LATER}"), &ids);
    assert_eq!(crowded["error"], "ConcurrencyError", "{crowded}");
    let busy = house.asked(422, "PUT", "sync", &ids);
    assert_eq!(busy["error"], "ConcurrencyError", "{busy}");
    assert!(description(&busy).contains("repeat"), "{busy}");
    let ended = house.until_ended("first", &ids);
    assert_eq!(ended["state"], "failed", "{ended}");
    // Nothing was made of those that were sent away.
    house.asked(404, "GET", "second", &ids);
    house.asked(404, "GET", "sync", &ids);
    harbour.front.reset();
}

#[test]
fn a_provision_of_a_withdrawn_service_waits_for_a_refresh_that_may_bring_it_back() {
    let Some((podman, harbour)) = scene() else {
        return;
    };
    let names = ["gone-apb", "back-apb"];
    let pushed = names.map(|name| harbour.build(podman, name, "1.0.0"));
    let site = site(podman, &harbour);
    let house = site.broker();
    house.refreshed();
    let [gone, back] = names.map(|name| house.ids(name));
    for (name, pushed) in names.iter().zip(&pushed) {
        harbour.delete(name, pushed);
    }
    house.refreshed();
    let refused = house.asked(400, "PUT", "early", &back);
    let told = "The service back-apb was withdrawn at 20";
    assert!(description(&refused).starts_with(told), "{refused}");

    harbour.hold_lists();
    house.done(&["registry", "refresh"]);
    harbour.until_held();
    harbour.build(podman, "back-apb", "1.0.1");
    house.asked(202, "PUT", &format!("gone{LATER}"), &gone);
    let client: &BrokerClient = &house;
    thread::scope(|scope| {
        let comes = scope.spawn(|| client.ask("PUT", "back", &back));
        let stays = scope.spawn(|| client.ask("PUT", "stays", &gone));
        in_progress(&house, "gone", &gone);
        assert!(!comes.is_finished() && !stays.is_finished());
        harbour.front.reset();
        let (status, answer) = comes.join().expect("no panic");
        assert_eq!(status, 201, "{answer}");
        let (status, answer) = stays.join().expect("no panic");
        assert_eq!(status, 400, "{answer}");
        let told = "The service gone-apb was withdrawn at 20";
        assert!(description(&answer).starts_with(told), "{answer}");
    });
    assert_eq!(house.log_of("provision", "back"), "provision by 1.0.1\n");
    house.asked(200, "DELETE", "back", &back);
    let ended = house.until_ended("gone", &gone);
    assert_eq!(ended["state"], "failed", "{ended}");
    assert!(description(&ended).contains("was withdrawn at"), "{ended}");
}
