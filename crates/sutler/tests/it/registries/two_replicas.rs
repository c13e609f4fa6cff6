//! Two brokers over one PostgreSQL and one registry: one refresh at a time, and no instance without its
//! service.

use super::fixture::{BrokerClient, Fixture, OfferingIds};
use super::image_registry::engine;
use super::token_registry::TokenRegistry;
use serde_json::json;
use std::thread;
use sutler_servers::podman::{self, Podman};
use sutler_servers::{Server, postgres, until};

/// How many provisions are asked of each broker while their service goes.
const PROVISIONS: usize = 3;

#[track_caller]
fn until_offered(house: &BrokerClient, offers: &[&str]) {
    until("both offer the same", || {
        (house.offers() == offers).then_some(())
    });
}

/// Regression: R23.
#[test]
fn refreshes_requested_at_two_brokers_run_one_after_the_other() {
    let (Some(harbour), Some(store)) = (TokenRegistry::open_to_all(), postgres::shared()) else {
        return;
    };
    harbour.push("hello-apb", "1.0.0");
    let mut block = harbour.block("own");
    block["answer_within"] = json!("60s");
    let site = Fixture::new(&[block]).over(&store.fresh_database());
    let (one, two) = (site.replica("one"), site.replica("two"));
    one.refreshed();
    two.refreshed();
    let asked = |house: &BrokerClient| house.listed()["refresh"]["asked"].as_u64();
    let before = asked(&one).expect("a number");

    harbour.push("hello-apb", "2.0.0");
    harbour.hold_lists();
    one.done(&["registry", "refresh"]);
    until("a list is asked for", || {
        (harbour.listed() == 1).then_some(())
    });
    let (first, second): (&BrokerClient, &BrokerClient) = (&one, &two);
    thread::scope(|scope| {
        for house in [first, second, first, second] {
            scope.spawn(|| house.refreshed());
        }
        until("all have asked", || {
            (asked(second) == Some(before + 5)).then_some(())
        });
        assert_eq!(harbour.listed(), 0, "nobody begins while one is under way");
        harbour.front.reset();
    });
    let asked = harbour.front.requests();
    let count = |part: &str| asked.iter().filter(|it| it.contains(part)).count();
    assert_eq!(
        count("_catalog"),
        1,
        "one more for the four that came meanwhile"
    );
    assert_eq!(count("GET /v2/org/hello-apb/manifests/"), 1, "read once");
    until_offered(first, &["hello-apb 2.0.0"]);
    until_offered(second, &["hello-apb 2.0.0"]);
}

/// Asks for instances until one is refused; those that were accepted.
fn provision(house: &BrokerClient, name: &str, ids: &OfferingIds) -> Vec<String> {
    let mut accepted = Vec::new();
    for nth in 0..PROVISIONS {
        let instance = format!("{name}-{nth}");
        let path = format!("{instance}?accepts_incomplete=true");
        let (status, answer) = house.ask("PUT", &path, ids);
        match status {
            202 => accepted.push(instance),
            _ => {
                assert_eq!(status, 400, "{answer}");
                let told = answer["description"].as_str().unwrap_or_default();
                assert!(told.contains("was withdrawn at"), "{told}");
                // Nothing was made of it.
                house.asked(404, "GET", &instance, ids);
                break;
            }
        }
    }
    accepted
}

/// What was accepted was made, or refused when it was looked at again; either way it can be removed, by
/// either broker, and by what made it.
fn is_removed_wherever(
    house: &BrokerClient,
    other: &BrokerClient,
    instance: &str,
    ids: &OfferingIds,
) {
    let ended = house.until_ended(instance, ids);
    if ended["state"] == "succeeded" {
        let known = other.items("own");
        assert_eq!(
            known,
            ["org/racing-apb:latest"],
            "{instance} has no service"
        );
        other.asked(200, "DELETE", instance, ids);
        let said = other.log_of("deprovision", instance);
        assert_eq!(said, "deprovision by 1.0.0\n");
    } else {
        let told = ended["description"].as_str().unwrap_or_default();
        assert!(told.contains("was withdrawn at"), "{ended}");
    }
}

/// Two brokers that have containers made of what a registry has, and delete soon what it has not any more.
fn site(podman: &Podman, harbour: &TokenRegistry, store: &Server) -> Fixture {
    let mut block = harbour.block("own");
    block["answer_within"] = json!("60s");
    let site = Fixture::new(&[block]).over(&store.fresh_database());
    let site = site.set("/bundles/container", engine(podman));
    let site = site.set("/refresh/grace", json!("1ms"));
    site.set("/refresh/delete_every", json!("1s"))
}

/// Regression: R20.
#[test]
fn provisions_during_the_deletion_of_their_service_are_served_or_refused_on_two_brokers() {
    let podman = podman::shared().filter(|it| it.is_own());
    let (Some(podman), Some(harbour)) = (podman, TokenRegistry::open()) else {
        return;
    };
    let Some(store) = postgres::shared() else {
        return;
    };
    let pushed = harbour.build(podman, "racing-apb", "1.0.0");
    // The engine has it already, so that what is accepted can be run.
    let image = format!("{}/org/racing-apb:latest", harbour.server.address());
    let _ = podman.podman(&["pull", "--tls-verify=false", &image]);
    let site = site(podman, &harbour, store);
    let (one, two) = (site.replica("one"), site.replica("two"));
    let (first, second): (&BrokerClient, &BrokerClient) = (&one, &two);
    one.refreshed();
    until_offered(second, &["racing-apb 1.0.0"]);
    let ids = one.ids("racing-apb");

    harbour.hold_lists();
    one.done(&["registry", "refresh"]);
    harbour.until_held();
    harbour.delete("racing-apb", &pushed);
    let (of_first, of_second) = thread::scope(|scope| {
        let of_first = scope.spawn(|| provision(first, "a", &ids));
        let of_second = scope.spawn(|| provision(second, "b", &ids));
        harbour.front.reset();
        (
            of_first.join().expect("no panic"),
            of_second.join().expect("no panic"),
        )
    });
    for instance in of_first {
        is_removed_wherever(first, second, &instance, &ids);
    }
    for instance in of_second {
        is_removed_wherever(second, first, &instance, &ids);
    }
    until("nothing is left of it", || {
        one.items("own").is_empty().then_some(())
    });
    first.asked(400, "PUT", "late", &ids);
    second.asked(400, "PUT", "late", &ids);
}

/// It sleeps through the end of a service, and wakes up with the catalog of before.
///
/// Regression: R20.
#[test]
fn a_paused_broker_creates_nothing_from_a_service_that_was_deleted_meanwhile() {
    let (Some(harbour), Some(store)) = (TokenRegistry::open(), postgres::shared()) else {
        return;
    };
    let pushed = harbour.push("parting-apb", "1.0.0");
    let site = Fixture::new(&[harbour.block("own")]).over(&store.fresh_database());
    let site = site.set("/refresh/grace", json!("1ms"));
    let site = site.set("/refresh/delete_every", json!("1s"));
    let (awake, stopped) = (site.replica("awake"), site.replica("stopped"));
    awake.refreshed();
    until_offered(&stopped, &["parting-apb 1.0.0"]);
    let ids = awake.ids("parting-apb");

    stopped.broker.signal("STOP");
    harbour.delete("parting-apb", &pushed);
    awake.refreshed();
    until("it is deleted", || {
        awake.items("own").is_empty().then_some(())
    });
    let client: &BrokerClient = &stopped;
    thread::scope(|scope| {
        let asks = scope.spawn(|| client.ask("PUT", "late?accepts_incomplete=true", &ids));
        stopped.broker.signal("CONT");
        let (status, answer) = asks.join().expect("no panic");
        assert_eq!(status, 400, "{answer}");
    });
    stopped.asked(404, "GET", "late", &ids);
}
