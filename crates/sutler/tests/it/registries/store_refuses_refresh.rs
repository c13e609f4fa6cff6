//! A store that refuses the result of a refresh: this is reported, offered bundles stay, and the refresh is
//! repeated.

use super::fixture::Fixture;
use super::token_registry::TokenRegistry;
use serde_json::{Value, json};
use std::thread;
use sutler_servers::{postgres, until};

/// Refuses writes like a server with a full disk; reads work.
const REFUSE: &str = "
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$;
CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON sutler_doc EXECUTE FUNCTION refuse();";
const TAKE: &str = "DROP TRIGGER refuse ON sutler_doc";

/// Regression: R24.
#[test]
fn a_refresh_that_the_store_refuses_is_reported_as_failed_and_offered_bundles_stay() {
    let (Some(registry), Some(server)) = (TokenRegistry::open(), postgres::shared()) else {
        return;
    };
    registry.push("hello-apb", "1.0.0");
    registry.push("parting-apb", "1.0.0");
    let store = server.fresh_database();
    let mut block = registry.block("own");
    block["answer_within"] = json!("60s");
    let broker = Fixture::new(&[block]).over(&store).broker();
    broker.refreshed();
    let offered = ["hello-apb 1.0.0", "parting-apb 1.0.0"];
    assert_eq!(broker.offers(), offered);
    let unwritten = "sutler_registry_unwritten_refreshes_total";
    assert_eq!(broker.metric(unwritten).as_deref(), Some("0"));

    registry.push("hello-apb", "2.0.0");
    registry.push("new-apb", "1.0.0");
    registry.hold_lists();
    let client = broker.client();
    // Not in a scope, so that a failed test does not wait for it.
    let waiting_refresh = thread::spawn(move || client.run(&["registry", "refresh", "--wait"]));
    registry.until_held();
    postgres::execute(&store, REFUSE);
    registry.front.reset();
    let failure = until("the failure is told", || {
        let refresh = broker.list_registries()["refresh"].clone();
        let failure = refresh["failure"].as_str()?;
        Some(failure.to_owned())
    });
    assert!(failure.contains("the store takes no write"), "{failure}");
    broker.broker.until_logged("a periodic task failed");
    assert_eq!(broker.metric(unwritten).as_deref(), Some("1"));
    assert_eq!(broker.offers(), offered);
    let table = broker.run_ok(&["registry", "list"]);
    let expected = "refresh: failed, the store takes no write";
    assert!(table.contains(expected), "{table}");

    postgres::execute(&store, TAKE);
    let (success, stdout, stderr) = waiting_refresh.join().expect("no panic");
    assert!(!success, "{stdout}{stderr}");
    let sentence = "the refresh failed: the store takes no write";
    assert!(stderr.contains(sentence), "{stderr}");
    assert_eq!(broker.offers(), offered);
    let after = broker.refreshed();
    assert_eq!(after["refresh"]["failure"], Value::Null, "{after}");
    let offered = ["hello-apb 2.0.0", "new-apb 1.0.0", "parting-apb 1.0.0"];
    assert_eq!(broker.offers(), offered);
}
