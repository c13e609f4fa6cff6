//! The same with real processes: nothing between the platform's request and the script is faked.

use super::fixture::{Fixture, until};
use super::instances::text_of;
use serde_json::json;
use std::fs;

const PROVISION: &str = r#"
echo "making it for $SUTLER_ACTION with hunter22"
grep -q '"size":2' "${3#@}" || { echo "size is missing" > "$SUTLER_RESULT_DIR/error"; exit 3; }
printf '{"db":"d1"}' > "$SUTLER_RESULT_DIR/state.json"
printf '{"root":"toor-toor"}' > "$SUTLER_RESULT_DIR/credentials.json"
"#;
const BIND: &str = r#"
grep -q '"state_db":"d1"' "${3#@}"
test "$(cat "$BUNDLE_STATE_LOCATION/db")" = d1
printf '{"user":"u1"}' > "$SUTLER_RESULT_DIR/credentials.json"
printf '{"login":"l1"}' > "$SUTLER_RESULT_DIR/binding_state.json"
"#;
const UNBIND: &str = r#"grep -q '"binding_state_login":"l1"' "${3#@}""#;
const DEPROVISION: &str = r#"grep -q '"state_db":"d1"' "${3#@}""#;

fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.real = true;
    for (action, text) in [
        ("provision", PROVISION),
        ("bind", BIND),
        ("unbind", UNBIND),
        ("deprovision", DEPROVISION),
    ] {
        fixture.script_that("db", action, text);
    }
    fixture
}

#[tokio::test]
async fn scripts_make_an_instance_and_a_binding_and_remove_both() {
    let fixture = fixture();
    let broker = fixture.open().await;
    let parameters = json!({ "size": 2, "password": "hunter22" });
    let ask = broker
        .provision("i")
        .with("parameters", parameters)
        .asynchronous();
    let operation = broker.send(ask).await.is(202)["operation"].clone();
    let operation = operation.as_str().expect("an operation");
    let ended = broker.until_done("i", operation).await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
    let log = broker.send(broker.log(operation)).await.is(200);
    assert_eq!(text_of(&log), "making it for provision with ***\n");
    let given = broker.send(broker.bind("i", "b")).await.is(201);
    assert_eq!(given["credentials"], json!({ "user": "u1" }));
    broker.send(broker.unbind("i", "b")).await.is(200);
    broker.send(broker.deprovision("i")).await.is(200);
    until("no run is left", async || fixture.runs() == 0).await;
}

#[tokio::test]
async fn an_error_of_a_script_is_shown_to_the_user() {
    let fixture = fixture();
    let broker = fixture.open().await;
    let refused = broker.send(broker.provision("i")).await.is(500);
    assert_eq!(refused["description"], "size is missing");
}

/// Regression: R6.
#[tokio::test]
async fn a_process_that_outlives_its_broker_is_adopted() {
    let fixture = fixture();
    let (count, go) = (fixture.shared_file("count"), fixture.shared_file("go"));
    fs::write(&count, "").expect("a file");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    fs::set_permissions(&count, open).expect("permissions");
    let text = format!(
        "echo run >> {}\nwhile ! test -e {}; do sleep 0.02; done\n{PROVISION}",
        count.display(),
        go.display()
    );
    fixture.script_that("db", "provision", &text);
    let broker = fixture.open().await;
    let parameters = json!({ "size": 2 });
    let ask = broker
        .provision("i")
        .with("parameters", parameters)
        .asynchronous();
    let operation = broker.send(ask).await.is(202)["operation"].clone();
    let operation = operation.as_str().expect("an operation");
    let runs = || {
        fs::read_to_string(&count)
            .unwrap_or_default()
            .lines()
            .count()
    };
    until("it runs", async || runs() == 1).await;
    broker.crash();
    let broker = fixture.open().await;
    fs::write(&go, "").expect("a file");
    let ended = broker.until_done("i", operation).await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
    assert_eq!(runs(), 1, "one run");
    broker.send(broker.deprovision("i")).await.is(200);
}
