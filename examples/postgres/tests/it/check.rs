//! The broker under `sutler check`: every rule of the protocol, on a real server.

use crate::broker_process::PLATFORM_PASSWORD;
use crate::fixture::Fixture;
use secrecy::SecretString;
use sutler_check::{Check, Finding, Level, Verdict};
use sutler_client::wire::Connection;

#[tokio::test]
async fn it_keeps_every_rule_of_the_protocol_and_leaves_no_database_behind() {
    let Some(estate) = Fixture::shared("check") else {
        return;
    };
    let connection = Connection::to(&estate.broker.url())
        .basic("platform", SecretString::from(PLATFORM_PASSWORD))
        .build()
        .expect("a broker to ask");
    let checked = Check::of(connection).run().await;
    let report = checked.expect("there is a catalog");
    let failures = report.failures(Level::Should);
    let failures: Vec<String> = failures.map(ToString::to_string).collect();
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(report.left_behind.is_empty(), "{:?}", report.left_behind);
    let seen = |it: &&Finding| matches!(it.verdict, Verdict::Pass);
    let seen = report.findings.iter().filter(seen).count();
    assert!(seen > report.findings.len() / 2, "only {seen} were seen");
    assert_eq!(estate.left().await, (0, 0));
}
