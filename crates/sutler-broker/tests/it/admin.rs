//! Administration under its own prefix: authentication, and helpers for the tests below.
//!
//! Every command in every state is in `admin/action_matrix.rs`, effects of commands in
//! `admin/action_effects.rs`, lists in `admin/lists.rs`, keys in `admin/rekey.rs`.

mod action_effects;
mod action_matrix;
mod export_import;
mod lists;
mod rekey;

use crate::fixture::request::{Reply, RequestBuilder};
use crate::fixture::{Fixture, on_each_store_with};
use serde_json::json;
use sutler_broker::{Admin, Broker};

/// The operator, as `user:password` in base64; not the platform's user.
const OPERATOR: &str = "Basic cm9vdDp0MHBzM2NyZXQ=";

fn administered(broker: Broker) -> Broker {
    broker.admin(Admin::at("/admin").basic_auth("root", "t0ps3cret"))
}

async fn on_each(test: impl AsyncFn(&Fixture)) {
    on_each_store_with(administered, test).await;
}

/// A read of the administration API.
fn get(kit: &Fixture, path: &str) -> RequestBuilder {
    kit.request("GET", format!("/admin/v1/{path}"))
        .header("Authorization", OPERATOR)
}

/// A command, with a reason.
fn command(kit: &Fixture, path: &str) -> RequestBuilder {
    kit.request("POST", format!("/admin/v1/{path}"))
        .header("Authorization", OPERATOR)
        .fields(json!({ "reason": "because" }))
}

async fn audit_of(kit: &Fixture, instance: &str) -> Vec<serde_json::Value> {
    let reply: Reply = get(kit, "audit").query("instance", instance).send().await;
    let reply = reply.is(200);
    reply.json["items"].as_array().cloned().unwrap_or_default()
}

#[tokio::test]
async fn operators_and_platforms_have_separate_credentials() {
    on_each(async |kit| {
        let refused = kit
            .request("GET", "/admin/v1/instances")
            .send()
            .await
            .is(401);
        assert!(refused.header("WWW-Authenticate").starts_with("Basic"));
        get(kit, "instances").send().await.is(200);
        let platform = kit.catalog().header("Authorization", OPERATOR);
        platform.send().await.is(401);
        get(kit, "instances")
            .without_header("Authorization")
            .send()
            .await
            .is(401);
    })
    .await;
}

#[tokio::test]
async fn a_broker_without_administration_has_no_such_path() {
    crate::fixture::on_each_store(async |kit| {
        get(kit, "instances").send().await.is(404);
    })
    .await;
}

#[tokio::test]
async fn a_misspelt_request_gets_the_valid_names() {
    on_each(async |kit| {
        let reply = get(kit, "instances")
            .query("plam", "x")
            .send()
            .await
            .is(400);
        assert!(
            reply.description().contains("plan"),
            "{}",
            reply.description()
        );
        get(kit, "things").send().await.is(404);
        let reply = command(kit, "instances/i/explode").send().await.is(404);
        assert!(reply.description().contains("abandon"));
        let reply = get(kit, "instances/i/purge").send().await.is(405);
        assert_eq!(reply.header("Allow"), "POST");
        let reason = json!({ "reason": "x".repeat(501) });
        let long = command(kit, "instances/i/purge").fields(reason);
        long.send().await.is(400);
        let reply = get(kit, "instances")
            .query("realm", "x")
            .send()
            .await
            .is(400);
        assert!(reply.description().contains("broker"));
    })
    .await;
}

#[tokio::test]
async fn while_draining_changes_are_refused_and_reads_are_answered() {
    on_each(async |kit| {
        kit.has_instance("i").await;
        let drained = command(kit, "drain").send().await.is(200);
        assert_eq!(drained.json["draining"], true);
        for change in [
            kit.provision("j"),
            kit.update("i"),
            kit.deprovision("i"),
            kit.bind("i", "b"),
        ] {
            let reply = change.send().await.is(503);
            assert!(!reply.header("Retry-After").is_empty());
        }
        kit.catalog().send().await.is(200);
        kit.fetch("i").send().await.is(200);
        kit.poll("i").send().await.is(200);
        command(kit, "resume").send().await.is(200);
        kit.has_instance("j").await;
        let verbs: Vec<_> = get(kit, "audit").send().await.json["items"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|it| it["verb"].clone())
            .collect();
        assert_eq!(verbs, ["resume", "drain"]);
    })
    .await;
}

#[tokio::test]
async fn extensions_add_their_own_pages() {
    let paged = |broker: Broker| {
        let admin = Admin::at("/admin").basic_auth("root", "t0ps3cret");
        let admin = admin.page("bundles", || json!({ "items": ["one"] }));
        broker.admin(admin.page("stats", || json!("never seen")))
    };
    on_each_store_with(paged, async |kit| {
        let shown = get(kit, "bundles").send().await.is(200);
        assert_eq!(shown.json, json!({ "items": ["one"] }));
        let stats = get(kit, "stats").send().await.is(200);
        assert!(stats.json.is_object(), "the API's own names win");
        get(kit, "nothing").send().await.is(404);
        command(kit, "bundles").send().await.is(404);
        let stranger = get(kit, "bundles").without_header("Authorization");
        stranger.send().await.is(401);
    })
    .await;
}
