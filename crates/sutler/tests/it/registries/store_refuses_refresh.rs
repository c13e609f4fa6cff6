//! A store that refuses what a refresh found: it is told, nothing that was offered goes, and it is made up for.

use super::fixture::Fixture;
use super::token_registry::TokenRegistry;
use serde_json::{Value, json};
use std::thread;
use sutler_servers::{postgres, until};

/// As a server whose disk is full refuses: whatever is read is answered.
const REFUSE: &str = "
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$;
CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON sutler_doc EXECUTE FUNCTION refuse();";
const TAKE: &str = "DROP TRIGGER refuse ON sutler_doc";

/// Regression: R24.
#[test]
fn a_refresh_that_the_store_refuses_is_reported_as_failed_and_offered_bundles_stay() {
    let (Some(harbour), Some(server)) = (TokenRegistry::open(), postgres::shared()) else {
        return;
    };
    harbour.push("hello-apb", "1.0.0");
    harbour.push("parting-apb", "1.0.0");
    let store = server.fresh_database();
    let mut block = harbour.block("own");
    block["answer_within"] = json!("60s");
    let house = Fixture::new(&[block]).over(&store).broker();
    house.refreshed();
    let offered = ["hello-apb 1.0.0", "parting-apb 1.0.0"];
    assert_eq!(house.offers(), offered);
    let unwritten = "sutler_registry_unwritten_refreshes_total";
    assert_eq!(house.metric(unwritten).as_deref(), Some("0"));

    harbour.push("hello-apb", "2.0.0");
    harbour.push("new-apb", "1.0.0");
    harbour.hold_lists();
    let client = house.client();
    // Not in a scope: where the test fails, nobody waits for it.
    let waits = thread::spawn(move || client.run(&["registry", "refresh", "--wait"]));
    harbour.until_held();
    postgres::execute(&store, REFUSE);
    harbour.front.reset();
    let failure = until("the failure is told", || {
        let refresh = house.listed()["refresh"].clone();
        let failure = refresh["failure"].as_str()?;
        Some(failure.to_owned())
    });
    assert!(failure.contains("the store takes no write"), "{failure}");
    house.broker.until_logged("a periodic task failed");
    assert_eq!(house.metric(unwritten).as_deref(), Some("1"));
    assert_eq!(house.offers(), offered);
    let table = house.done(&["registry", "list"]);
    let told = "refresh: failed, the store takes no write";
    assert!(table.contains(told), "{table}");

    postgres::execute(&store, TAKE);
    let (well, said, told) = waits.join().expect("no panic");
    assert!(!well, "{said}{told}");
    let sentence = "the refresh failed: the store takes no write";
    assert!(told.contains(sentence), "{told}");
    assert_eq!(house.offers(), offered);
    let after = house.refreshed();
    assert_eq!(after["refresh"]["failure"], Value::Null, "{after}");
    let offered = ["hello-apb 2.0.0", "new-apb 1.0.0", "parting-apb 1.0.0"];
    assert_eq!(house.offers(), offered);
}
