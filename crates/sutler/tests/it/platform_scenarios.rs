//! Two authors and a broker that forbids two things, over HTTP from end to end: `sutler platform`, and a broker built with
//! this project or with `openbrokerapi`.
//!
//! Each scenario runs at both brokers, and is judged by what the platform shows and by the users that the broker saw.
//! `platform_scenarios/forbidding_broker.rs` are the brokers, `platform_scenarios/platform_process.rs` is the platform.

mod forbidding_broker;
mod platform_process;

use forbidding_broker::{ForbiddingBroker, ReceivedRequest};
use platform_process::PlatformProcess;
use serde_json::{Value, json};

/// Path of the instance.
const DB: &str = "/namespaces/app/instances/db";

/// Users, in the order of the requests that the broker saw about instances.
fn users(requests: &[ReceivedRequest]) -> Vec<(String, String)> {
    let seen = requests.iter();
    seen.map(|it| (it.verb.clone(), it.user.clone())).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let pairs = expected.iter();
    pairs
        .map(|(verb, user)| ((*verb).to_owned(), (*user).to_owned()))
        .collect()
}

/// A platform with the broker registered and an instance `db` of carla, on the plan small with a disk of 10.
fn with_instance(broker: &ForbiddingBroker) -> PlatformProcess {
    let platform = PlatformProcess::start();
    platform.register(broker);
    let body = json!({
        "name": "db", "class": "postgresql", "plan": "small", "parameters": {"disk": 10},
    });
    let created = platform.send("carla", "POST", "/namespaces/app/instances?wait=30s", &body);
    assert_eq!(created.status, 201, "{created:?}");
    platform
}

fn instance(platform: &PlatformProcess) -> Value {
    let shown = platform.get("carla", DB);
    assert_eq!(shown.status, 200, "{shown:?}");
    shown.json
}

/// Waits until the instance is as expected.
fn until_instance(
    platform: &PlatformProcess,
    expected: &str,
    is: impl Fn(&Value) -> bool,
) -> Value {
    sutler_servers::until(expected, || Some(instance(platform)).filter(|it| is(it)))
}

/// The state of a pending or ended intent.
fn state_of(instance: &Value, number: u64) -> String {
    let lists = ["pending", "ended"].map(|it| instance[it].as_array().cloned());
    let mut intents = lists.into_iter().flatten().flatten();
    let found = intents.find(|it| it["number"] == number);
    found.map_or_else(String::new, |it| {
        it["state"].as_str().unwrap_or("").to_owned()
    })
}

fn patch(platform: &PlatformProcess, user: &str, body: &Value, tag: Option<&str>) -> String {
    let accepted = platform.send_if_match(user, "PATCH", DB, body, tag);
    assert_eq!(accepted.status, 202, "{accepted:?}");
    accepted.location.expect("an accepted change has an intent")
}

/// The broker forbids boris the large plan. While it thinks about it, carla sets a label, and anna, who was shown the large
/// plan, changes the disk. Only anna's change waits for her; nobody's request goes out in another name.
fn a_forbidden_change_beside_others(broker: &ForbiddingBroker) {
    let platform = with_instance(broker);
    broker.hold("boris");
    patch(&platform, "boris", &json!({"plan": "large"}), None);
    broker.until_received("update", "boris");
    let shown = platform.get("anna", DB);
    assert_eq!(shown.json["spec"]["plan"], "large");
    assert_eq!(shown.json["confirmed"]["spec"]["plan"], "small");
    assert_eq!(shown.json["conditions"]["ready"]["status"], "true");
    let disk = json!({"parameters": {"disk": 50}});
    let disk = patch(&platform, "anna", &disk, shown.tag.as_deref());
    patch(&platform, "carla", &json!({"labels": {"team": "x"}}), None);
    broker.release("boris");

    let after = until_instance(&platform, "the plan is refused", |it| {
        state_of(it, 2) == "rejected" && state_of(it, 4) == "succeeded"
    });
    assert_eq!(after["spec"]["plan"], "small");
    assert_eq!(after["spec"]["parameters"]["disk"], 10);
    assert_eq!(after["spec"]["labels"]["team"], "x");
    assert_eq!(after["conditions"]["ready"]["status"], "true");
    assert_eq!(state_of(&after, 3), "on_hold");
    let refused = platform.get("boris", &format!("{DB}/intents/2"));
    assert!(refused.text().contains("owner"), "{refused:?}");

    let resume = format!("{disk}:resume?wait=30s");
    let resumed = platform.send("anna", "POST", &resume, &json!({}));
    assert_eq!(resumed.status, 200, "{resumed:?}");
    assert_eq!(resumed.json["confirmed"]["spec"]["parameters"]["disk"], 50);
    assert_eq!(resumed.json["confirmed"]["spec"]["plan"], "small");
    assert_eq!(state_of(&resumed.json, 3), "superseded");
    let expected = [
        ("provision", "carla"),
        ("update", "boris"),
        ("update", "anna"),
    ];
    assert_eq!(users(&broker.requests()), pairs(&expected));
}

/// The broker forbids boris the delete. A change that anna had asked for before waits meanwhile, and is then carried out by
/// itself; the name, what is confirmed and who may change it are as before.
fn a_forbidden_delete_beside_a_change(broker: &ForbiddingBroker) {
    let platform = with_instance(broker);
    broker.hold("olga");
    broker.hold("boris");
    patch(
        &platform,
        "olga",
        &json!({"parameters": {"disk": 20}}),
        None,
    );
    broker.until_received("update", "olga");
    patch(
        &platform,
        "anna",
        &json!({"parameters": {"disk": 50}}),
        None,
    );
    let deleted = platform.send("boris", "DELETE", DB, &Value::Null);
    assert_eq!(deleted.status, 202, "{deleted:?}");
    let change = json!({"parameters": {"disk": 70}});
    let refused = platform.send("anna", "PATCH", DB, &change);
    assert_eq!(refused.status, 409, "{refused:?}");
    broker.release("olga");
    broker.until_received("delete", "boris");
    let during = instance(&platform);
    assert_eq!(during["phase"], "deleting");
    assert_eq!(state_of(&during, 3), "suspended");
    broker.release("boris");

    // A broker refuses at once, or by a failed operation.
    let after = until_instance(&platform, "the delete is refused", |it| {
        let is_refused = ["rejected", "failed"].contains(&state_of(it, 4).as_str());
        is_refused && state_of(it, 3) == "succeeded"
    });
    assert_eq!(after["phase"], "live");
    assert_eq!(after["conditions"]["ready"]["status"], "true");
    assert_eq!(after["confirmed"]["spec"]["parameters"]["disk"], 50);
    let deleted = platform.send("carla", "DELETE", &format!("{DB}?wait=30s"), &Value::Null);
    assert_eq!(deleted.status, 200, "{deleted:?}");
    assert_eq!(platform.get("carla", DB).status, 404);
    let expected = [
        ("provision", "carla"),
        ("update", "olga"),
        ("delete", "boris"),
        ("update", "anna"),
        ("delete", "carla"),
    ];
    assert_eq!(users(&broker.requests()), pairs(&expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forbidden_change_harms_no_other_change_at_our_broker() {
    let broker = ForbiddingBroker::own().await;
    tokio::task::block_in_place(|| a_forbidden_change_beside_others(&broker));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forbidden_delete_leaves_everything_as_it_was_at_our_broker() {
    let broker = ForbiddingBroker::own().await;
    tokio::task::block_in_place(|| a_forbidden_delete_beside_a_change(&broker));
}

#[test]
fn a_forbidden_change_harms_no_other_change_at_a_broker_on_openbrokerapi() {
    if let Some(broker) = ForbiddingBroker::on_openbrokerapi() {
        a_forbidden_change_beside_others(&broker);
    }
}

#[test]
fn a_forbidden_delete_leaves_everything_as_it_was_at_a_broker_on_openbrokerapi() {
    if let Some(broker) = ForbiddingBroker::on_openbrokerapi() {
        a_forbidden_delete_beside_a_change(&broker);
    }
}
