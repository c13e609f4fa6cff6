//! Values of secrets that a broker repeats in its words.

use crate::scripted_broker::Reply;
use crate::test_platform::{TestPlatform, accepted, name, namespace, person, plan_patch, small};
use serde_json::json;
use std::collections::BTreeMap;
use sutler_platform::commands::WantedSecret;
use sutler_platform::lifecycle::intent::{BrokerStatement, IntentEnd};
use sutler_platform::spec::ParameterSource;

const CANARY: &str = "CANARY-hunter2";

async fn put_secret(platform: &TestPlatform, value: &str) {
    let values = BTreeMap::from([("password".to_owned(), value.as_bytes().to_vec())]);
    let (secret, by) = (WantedSecret(values), person("carla"));
    let (namespace, init) = (namespace(), name("init"));
    let put = platform
        .platform
        .put_secret(&namespace, &init, &secret, &by);
    put.await.expect("it is written");
}

fn source() -> ParameterSource {
    ParameterSource {
        secret: "init".to_owned(),
        key: None,
        watch: false,
    }
}

fn statement(end: IntentEnd) -> BrokerStatement {
    match end {
        IntentEnd::Rejected(statement) | IntentEnd::Failed(statement) => statement,
        other => panic!("{other:?}"),
    }
}

/// Everything that is stored of an instance and shown to people.
async fn assert_no_canary(platform: &TestPlatform, instance: &str) {
    let instance = platform.instance(instance).await;
    let shown = format!("{instance:?}");
    assert!(!shown.contains(CANARY), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn the_words_of_a_rejection_are_kept_without_values_of_secrets() {
    let platform = TestPlatform::start().await;
    put_secret(&platform, CANARY).await;
    let words = r#"{"error":"CANARY-hunter2","description":"tier gold, password CANARY-hunter2!"}"#;
    platform.broker.answers([Reply::Now(400, words)]);
    let mut wanted = small("db", json!({"tier": "gold"}));
    wanted.parameter_sources = vec![source()];
    let created = platform.create(&wanted, "carla").await;
    let end = platform.end_of(&created.instance, accepted(&created)).await;
    let statement = statement(end);
    let description = statement.description.clone().expect("words");
    assert_eq!(description, "tier gold, password (secret)!");
    assert!(!format!("{statement:?}").contains(CANARY), "{statement:?}");
}

/// A platform with an instance `db` that has parameters from a secret.
async fn with_live_instance() -> TestPlatform {
    let platform = TestPlatform::start().await;
    put_secret(&platform, CANARY).await;
    let mut wanted = small("db", json!({}));
    wanted.parameter_sources = vec![source()];
    let created = platform.create(&wanted, "carla").await;
    platform.end_of(&created.instance, accepted(&created)).await;
    platform
}

#[tokio::test(start_paused = true)]
async fn later_answers_are_kept_without_them_too() {
    let platform = with_live_instance().await;
    let words = r#"{"state":"failed","description":"CANARY-hunter2 is wrong"}"#;
    let (accepting, failing) = (Reply::Now(202, "{}"), Reply::Now(200, words));
    platform.broker.answers([accepting, failing]);
    let deleted = platform.delete("db", "bert").await;
    let end = platform.end_of(&deleted.instance, accepted(&deleted)).await;
    let description = statement(end).description.expect("words");
    assert_eq!(description, "(secret) is wrong");
    assert_no_canary(&platform, "db").await;
}

#[tokio::test(start_paused = true)]
async fn a_value_that_was_sent_is_left_out_though_the_secret_has_changed_since() {
    let platform = TestPlatform::start().await;
    put_secret(&platform, CANARY).await;
    platform.broker.answers([Reply::Held]);
    let mut wanted = small("db", json!({}));
    wanted.parameter_sources = vec![source()];
    let created = platform.create(&wanted, "carla").await;
    platform.broker.until_requests(1).await;
    put_secret(&platform, "another").await;
    let words = r#"{"description":"neither CANARY-hunter2 nor another"}"#;
    platform.broker.release(400, words);
    let end = platform.end_of(&created.instance, accepted(&created)).await;
    let description = statement(end).description.expect("words");
    assert_eq!(description, "neither (secret) nor (secret)");
}

#[tokio::test(start_paused = true)]
async fn inline_parameters_are_left_in_the_words() {
    let platform = TestPlatform::start().await;
    platform.live_instance("db", json!({"tier": "gold"})).await;
    let words = r#"{"description":"tier gold is sold out"}"#;
    platform.broker.answers([Reply::Now(400, words)]);
    let patched = platform.patch("db", &plan_patch("large"), "bert").await;
    let end = platform.end_of(&patched.instance, accepted(&patched)).await;
    let description = statement(end).description.expect("words");
    assert_eq!(description, "tier gold is sold out");
}

/// What was tried for the only row of the ledger, as it is stored and shown, once the broker was asked so often.
async fn attempts(platform: &TestPlatform, requests: usize) -> String {
    platform.broker.until_requests(requests).await;
    loop {
        let orphans = platform.platform.orphans(None, 10).await;
        let rows = orphans.expect("they are read").items;
        let row = rows.first().expect("a row");
        if row.orphan.attempts.total > 0 {
            return format!("{:?}", row.orphan.attempts);
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn no_words_are_kept_with_an_orphan_that_may_have_values_of_secrets() {
    let platform = TestPlatform::start().await;
    put_secret(&platform, CANARY).await;
    let words = r#"{"error":"Denied","description":"CANARY-hunter2 is locked"}"#;
    let answers = [Reply::Now(500, "{}"), Reply::Now(400, words)];
    platform.broker.answers(answers);
    let mut wanted = small("db", json!({}));
    wanted.parameter_sources = vec![source()];
    platform.create(&wanted, "carla").await;
    let attempts = attempts(&platform, 2).await;
    assert!(attempts.contains("not shown"), "{attempts}");
    assert!(!attempts.contains(CANARY), "{attempts}");
}

#[tokio::test(start_paused = true)]
async fn no_words_are_kept_with_an_orphan_whose_secret_was_deleted() {
    let platform = with_live_instance().await;
    platform.broker.answers([Reply::Held]);
    let (namespace, db, init) = (namespace(), name("db"), name("init"));
    let given_up = person("olga").into();
    let abandoned = platform
        .platform
        .abandon_instance(&namespace, &db, &given_up);
    abandoned.await.expect("it is given up");
    platform.broker.until_requests(2).await;
    let deleted = platform.platform.delete_secret(&namespace, &init);
    deleted.await.expect("nothing uses it");
    platform
        .broker
        .release(400, r#"{"description":"CANARY-hunter2 is locked"}"#);
    let attempts = attempts(&platform, 2).await;
    assert!(attempts.contains("not shown"), "{attempts}");
    assert!(!attempts.contains(CANARY), "{attempts}");
}
