//! The broker under `sutler check`: every rule of the protocol, on a real server.

use crate::broker_process::PLATFORM_PASSWORD;
use crate::fixture::Fixture;
use secrecy::SecretString;
use sutler_check::{Check, Finding, Level, Verdict};
use sutler_client::wire::Connection;

#[tokio::test]
async fn it_keeps_every_rule_of_the_protocol_and_leaves_no_database_behind() {
    let Some(fixture) = Fixture::shared("check") else {
        return;
    };
    let connection = Connection::to(&fixture.broker.url())
        .basic("platform", SecretString::from(PLATFORM_PASSWORD))
        .build()
        .expect("a broker to ask");
    let checked = Check::of(connection).run().await;
    let report = checked.expect("there is a catalog");
    let failures = report.failures(Level::Should);
    let failures: Vec<String> = failures.map(ToString::to_string).collect();
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(report.left_behind.is_empty(), "{:?}", report.left_behind);
    let passed = |it: &&Finding| matches!(it.verdict, Verdict::Pass);
    let passed = report.findings.iter().filter(passed).count();
    assert!(
        passed > report.findings.len() / 2,
        "only {passed} were seen"
    );
    assert_eq!(fixture.left().await, (0, 0));
}
