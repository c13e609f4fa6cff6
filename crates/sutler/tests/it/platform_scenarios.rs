//! Two authors and a broker that forbids two things, over HTTP from end to end: `sutler platform`, and a broker built with
//! this project or with `openbrokerapi`.
//!
//! Each scenario is told to both brokers, and judged by what the platform shows and by whom the broker saw.
//! `platform_scenarios/forbidding_broker.rs` are the brokers, `platform_scenarios/platform_process.rs` is the platform.

mod forbidding_broker;
mod platform_process;

use forbidding_broker::{ForbiddingBroker, ReceivedRequest};
use platform_process::PlatformProcess;
use serde_json::{Value, json};

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
    let shown = platform.get("carla", "/namespaces/app/instances/db");
    assert_eq!(shown.status, 200, "{shown:?}");
    shown.json
}

/// A change of the plan is refused. Another author's change beside it, who had not seen it, is carried out.
fn a_forbidden_change_beside_another(broker: &ForbiddingBroker) {
    let platform = with_instance(broker);
    let path = "/namespaces/app/instances/db?wait=30s";
    let plan = platform.send("boris", "PATCH", path, &json!({"plan": "large"}));
    assert_eq!(plan.status, 422, "{plan:?}");
    assert!(plan.text().contains("owner"), "{plan:?}");
    let after = instance(&platform);
    assert_eq!(after["spec"]["plan"], "small");
    assert_eq!(after["conditions"]["ready"]["status"], "true");

    let disk = platform.send("anna", "PATCH", path, &json!({"parameters": {"disk": 50}}));
    assert_eq!(disk.status, 200, "{disk:?}");
    let after = instance(&platform);
    assert_eq!(after["spec"]["parameters"]["disk"], 50);
    assert_eq!(after["confirmed"]["spec"]["plan"], "small");
    let expected = [
        ("provision", "carla"),
        ("update", "boris"),
        ("update", "anna"),
    ];
    assert_eq!(users(&broker.requests()), pairs(&expected));
}

/// A delete is refused. The instance is there as before, and the next person's change is carried out.
fn a_forbidden_delete(broker: &ForbiddingBroker) {
    let platform = with_instance(broker);
    let path = "/namespaces/app/instances/db?wait=30s";
    let deleted = platform.send("boris", "DELETE", path, &Value::Null);
    assert_eq!(deleted.status, 422, "{deleted:?}");
    let after = instance(&platform);
    assert_eq!(after["phase"], "live");
    assert_eq!(after["conditions"]["ready"]["status"], "true");
    let disk = platform.send("anna", "PATCH", path, &json!({"parameters": {"disk": 50}}));
    assert_eq!(disk.status, 200, "{disk:?}");
    let deleted = platform.send("carla", "DELETE", path, &Value::Null);
    assert_eq!(deleted.status, 200, "{deleted:?}");
    let gone = platform.get("carla", "/namespaces/app/instances/db");
    assert_eq!(gone.status, 404, "{gone:?}");
    let expected = [
        ("provision", "carla"),
        ("delete", "boris"),
        ("update", "anna"),
        ("delete", "carla"),
    ];
    assert_eq!(users(&broker.requests()), pairs(&expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forbidden_change_harms_no_other_change_at_our_broker() {
    let broker = ForbiddingBroker::own().await;
    tokio::task::block_in_place(|| a_forbidden_change_beside_another(&broker));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forbidden_delete_leaves_everything_as_it_was_at_our_broker() {
    let broker = ForbiddingBroker::own().await;
    tokio::task::block_in_place(|| a_forbidden_delete(&broker));
}

#[test]
fn a_forbidden_change_harms_no_other_change_at_a_broker_on_openbrokerapi() {
    if let Some(broker) = ForbiddingBroker::on_openbrokerapi() {
        a_forbidden_change_beside_another(&broker);
    }
}

#[test]
fn a_forbidden_delete_leaves_everything_as_it_was_at_a_broker_on_openbrokerapi() {
    if let Some(broker) = ForbiddingBroker::on_openbrokerapi() {
        a_forbidden_delete(&broker);
    }
}
