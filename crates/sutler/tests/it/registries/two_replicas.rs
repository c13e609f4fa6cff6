//! Two brokers over one PostgreSQL and one registry: one refresh at a time, and no instance without its
//! service.

use super::fixture::{BrokerClient, Fixture, OfferingIds};
use super::image_registry::engine;
use super::token_registry::TokenRegistry;
use serde_json::json;
use std::thread;
use sutler_servers::podman::{self, Podman};
use sutler_servers::{Server, postgres, until};

/// Number of provisions at each broker while their service is deleted.
const PROVISIONS: usize = 3;

#[track_caller]
fn until_offered(broker: &BrokerClient, offers: &[&str]) {
    until("both offer the same", || {
        (broker.offers() == offers).then_some(())
    });
}

/// Regression: R23.
#[test]
fn refreshes_requested_at_two_brokers_run_one_after_the_other() {
    let (Some(registry), Some(store)) = (TokenRegistry::open_to_all(), postgres::shared()) else {
        return;
    };
    registry.push("hello-apb", "1.0.0");
    let mut block = registry.block("own");
    block["answer_within"] = json!("60s");
    let fixture = Fixture::new(&[block]).over(&store.fresh_database());
    let (one, two) = (fixture.replica("one"), fixture.replica("two"));
    one.refreshed();
    two.refreshed();
    let refreshes_requested =
        |broker: &BrokerClient| broker.list_registries()["refresh"]["asked"].as_u64();
    let before = refreshes_requested(&one).expect("a number");

    registry.push("hello-apb", "2.0.0");
    registry.hold_lists();
    one.run_ok(&["registry", "refresh"]);
    until("a list is asked for", || {
        (registry.list_requests() == 1).then_some(())
    });
    let (first, second): (&BrokerClient, &BrokerClient) = (&one, &two);
    thread::scope(|scope| {
        for broker in [first, second, first, second] {
            scope.spawn(|| broker.refreshed());
        }
        until("all have asked", || {
            (refreshes_requested(second) == Some(before + 5)).then_some(())
        });
        assert_eq!(
            registry.list_requests(),
            0,
            "nobody begins while one is under way"
        );
        registry.front.reset();
    });
    let requests = registry.front.requests();
    let count = |part: &str| requests.iter().filter(|it| it.contains(part)).count();
    assert_eq!(
        count("_catalog"),
        1,
        "one more for the four that came meanwhile"
    );
    assert_eq!(count("GET /v2/org/hello-apb/manifests/"), 1, "read once");
    until_offered(first, &["hello-apb 2.0.0"]);
    until_offered(second, &["hello-apb 2.0.0"]);
}

/// Requests instances until one is refused; returns the accepted ones.
fn provision(broker: &BrokerClient, name: &str, ids: &OfferingIds) -> Vec<String> {
    let mut accepted = Vec::new();
    for nth in 0..PROVISIONS {
        let instance = format!("{name}-{nth}");
        let path = format!("{instance}?accepts_incomplete=true");
        let (status, answer) = broker.request("PUT", &path, ids);
        match status {
            202 => accepted.push(instance),
            _ => {
                assert_eq!(status, 400, "{answer}");
                let description = answer["description"].as_str().unwrap_or_default();
                assert!(description.contains("was withdrawn at"), "{description}");
                // It created nothing.
                broker.expect_status(404, "GET", &instance, ids);
                break;
            }
        }
    }
    accepted
}

/// An accepted instance was created, or refused when its plan was checked again; in either case both brokers
/// can remove it, with the version that created it.
fn is_removed_wherever(
    broker: &BrokerClient,
    other: &BrokerClient,
    instance: &str,
    ids: &OfferingIds,
) {
    let ended = broker.until_ended(instance, ids);
    if ended["state"] == "succeeded" {
        let known = other.items("own");
        assert_eq!(
            known,
            ["org/racing-apb:latest"],
            "{instance} has no service"
        );
        other.expect_status(200, "DELETE", instance, ids);
        let log = other.log_of("deprovision", instance);
        assert_eq!(log, "deprovision by 1.0.0\n");
    } else {
        let description = ended["description"].as_str().unwrap_or_default();
        assert!(description.contains("was withdrawn at"), "{ended}");
    }
}

/// A fixture whose brokers run containers of the bundles of a registry, and delete withdrawn bundles soon.
fn fixture(podman: &Podman, registry: &TokenRegistry, store: &Server) -> Fixture {
    let mut block = registry.block("own");
    block["answer_within"] = json!("60s");
    let fixture = Fixture::new(&[block]).over(&store.fresh_database());
    let fixture = fixture.set("/bundles/container", engine(podman));
    let fixture = fixture.set("/refresh/grace", json!("1ms"));
    fixture.set("/refresh/delete_every", json!("1s"))
}

/// Regression: R20.
#[test]
fn provisions_during_the_deletion_of_their_service_are_served_or_refused_on_two_brokers() {
    let podman = podman::shared().filter(|it| it.is_own());
    let (Some(podman), Some(registry)) = (podman, TokenRegistry::open()) else {
        return;
    };
    let Some(store) = postgres::shared() else {
        return;
    };
    let pushed = registry.build(podman, "racing-apb", "1.0.0");
    // The engine already has the image, so that accepted instances can run.
    let image = format!("{}/org/racing-apb:latest", registry.server.address());
    let _ = podman.podman(&["pull", "--tls-verify=false", &image]);
    let fixture = fixture(podman, &registry, store);
    let (one, two) = (fixture.replica("one"), fixture.replica("two"));
    let (first, second): (&BrokerClient, &BrokerClient) = (&one, &two);
    one.refreshed();
    until_offered(second, &["racing-apb 1.0.0"]);
    let ids = one.ids("racing-apb");

    registry.hold_lists();
    one.run_ok(&["registry", "refresh"]);
    registry.until_held();
    registry.delete("racing-apb", &pushed);
    let (of_first, of_second) = thread::scope(|scope| {
        let of_first = scope.spawn(|| provision(first, "a", &ids));
        let of_second = scope.spawn(|| provision(second, "b", &ids));
        registry.front.reset();
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
    first.expect_status(400, "PUT", "late", &ids);
    second.expect_status(400, "PUT", "late", &ids);
}

/// It is paused during the deletion of a service, and continues with the old catalog.
///
/// Regression: R20.
#[test]
fn a_paused_broker_creates_nothing_from_a_service_that_was_deleted_meanwhile() {
    let (Some(registry), Some(store)) = (TokenRegistry::open(), postgres::shared()) else {
        return;
    };
    let pushed = registry.push("parting-apb", "1.0.0");
    let fixture = Fixture::new(&[registry.block("own")]).over(&store.fresh_database());
    let fixture = fixture.set("/refresh/grace", json!("1ms"));
    let fixture = fixture.set("/refresh/delete_every", json!("1s"));
    let (awake, stopped) = (fixture.replica("awake"), fixture.replica("stopped"));
    awake.refreshed();
    until_offered(&stopped, &["parting-apb 1.0.0"]);
    let ids = awake.ids("parting-apb");

    stopped.broker.signal("STOP");
    registry.delete("parting-apb", &pushed);
    awake.refreshed();
    until("it is deleted", || {
        awake.items("own").is_empty().then_some(())
    });
    let client: &BrokerClient = &stopped;
    thread::scope(|scope| {
        let request_thread =
            scope.spawn(|| client.request("PUT", "late?accepts_incomplete=true", &ids));
        stopped.broker.signal("CONT");
        let (status, answer) = request_thread.join().expect("no panic");
        assert_eq!(status, 400, "{answer}");
    });
    stopped.expect_status(404, "GET", "late", &ids);
}
