//! Who may do what: permissions that the configuration grants by name, and people for whom front ends act.

use super::{TestApi, basic};
use serde_json::json;

const ABANDON: &str = "/namespaces/app/instances/db:abandon";

#[tokio::test]
async fn giving_up_is_for_those_who_are_named() {
    let api = TestApi::with_instance().await;
    let reason = || Some(json!({"reason": "the broker is gone"}));
    let ada = api.ask(("POST", ABANDON), &[], reason()).await;
    assert_eq!((ada.status, ada.word()), (403, "not_allowed"));
    let bob = [("authorization", basic("bob"))];
    let bob = [(bob[0].0, bob[0].1.as_str())];
    let silent = api.ask(("POST", ABANDON), &bob, None).await;
    assert_eq!((silent.status, silent.word()), (400, "invalid"));
    let done = api.ask(("POST", ABANDON), &bob, reason()).await;
    assert_eq!(done.status, 200, "{done:?}");
    assert_eq!(done.body["phase"], "gone");
}

#[tokio::test]
async fn credentials_are_for_those_who_are_named() {
    let api = TestApi::with_broker().await;
    let path = "/namespaces/app/bindings/none/credentials";
    let ada = api.get(path).await;
    assert_eq!((ada.status, ada.word()), (403, "not_allowed"));
    assert!(
        ada.body["detail"]
            .as_str()
            .expect("a sentence")
            .contains("`credentials`")
    );
    let bob = basic("bob");
    let bob = api
        .ask(("GET", path), &[("authorization", &bob)], None)
        .await;
    assert_eq!((bob.status, bob.word()), (404, "not_found"));
}

#[tokio::test]
async fn a_front_end_acts_for_a_person_and_both_are_recorded() {
    let api = TestApi::with_broker().await;
    let kube = basic("kube");
    let person = r#"{"username": "carol", "uid": "u-1", "groups": ["dev"]}"#;
    let headers = [
        ("authorization", kube.as_str()),
        ("sutler-on-behalf-of", person),
    ];
    let body = Some(super::instance("db"));
    let created = api
        .ask(("POST", "/namespaces/app/instances"), &headers, body)
        .await;
    assert_eq!(created.status, 202, "{created:?}");
    let author = &created.body["author"];
    assert_eq!(author["username"], "carol");
    assert_eq!(author["uid"], "behalf:user:kube#u-1");
    assert_eq!(author["impersonatedBy"], "user:kube");
}

#[tokio::test]
async fn others_may_not_act_for_anybody() {
    let api = TestApi::start().await;
    let person = r#"{"username": "kube", "uid": "u-1"}"#;
    let headers = [("sutler-on-behalf-of", person)];
    let reply = api.ask(("GET", "/namespaces"), &headers, None).await;
    assert_eq!((reply.status, reply.word()), (403, "not_allowed"));
}

#[tokio::test]
async fn changes_are_not_taken_from_pages_of_other_sites() {
    let api = TestApi::with_instance().await;
    for (site, expected) in [
        ("cross-site", 403),
        ("same-site", 403),
        ("same-origin", 202),
    ] {
        let headers = [("sec-fetch-site", site)];
        let path = ("DELETE", "/namespaces/app/instances/db");
        let reply = api.ask(path, &headers, None).await;
        assert_eq!(reply.status, expected, "{site}");
    }
    let headers = [("sec-fetch-site", "cross-site")];
    let read = api.ask(("GET", "/namespaces"), &headers, None).await;
    assert_eq!(read.status, 200);
}

#[tokio::test]
async fn brokers_namespaces_and_orphans_are_for_operators() {
    let api = TestApi::with_instance().await;
    let bob = basic("bob");
    let bob = [("authorization", bob.as_str())];
    let broker = json!({"url": "https://broker.example"});
    let mut adopted = super::instance("other");
    adopted["externalId"] = json!("x");
    for (method, path, body) in [
        ("PUT", "/brokers/mine", Some(broker)),
        ("DELETE", "/brokers/databases", None),
        ("POST", "/brokers/databases:pause", None),
        ("PUT", "/namespaces/mine", Some(json!({}))),
        ("DELETE", "/namespaces/app", None),
        ("GET", "/orphans", None),
        ("POST", "/namespaces/app/instances:adopt", Some(adopted)),
        (
            "POST",
            "/namespaces/app/instances/db/intents/1:cancel",
            None,
        ),
    ] {
        let reply = api.ask((method, path), &bob, body).await;
        let found = (reply.status, reply.word());
        assert_eq!(found, (403, "not_allowed"), "{method} {path}");
    }
    assert_eq!(api.get("/orphans").await.status, 200);
}

#[tokio::test]
async fn changes_are_taken_from_pages_of_the_own_host_only() {
    let api = TestApi::with_instance().await;
    let path = ("DELETE", "/namespaces/app/instances/db");
    for (origin, expected) in [
        ("https://evil.example", 403),
        ("null", 403),
        ("https://sutler.example:8443", 403),
        ("https://sutler.example", 202),
    ] {
        let headers = [("host", "sutler.example"), ("origin", origin)];
        let reply = api.ask(path, &headers, None).await;
        assert_eq!(reply.status, expected, "{origin}");
    }
}

/// A form of another page can send neither JSON nor headers of its own, and old browsers do not say whose page it is.
#[tokio::test]
async fn an_order_without_a_body_has_no_other_media_type() {
    let api = TestApi::with_instance().await;
    let path = ("POST", "/namespaces/app/instances/db:protect");
    for headers in [
        &[("content-type", "text/plain")][..],
        &[("sec-fetch-site", "same-origin")],
        &[("host", "s.example"), ("origin", "https://s.example")],
    ] {
        let reply = api.ask(path, headers, None).await;
        let found = (reply.status, reply.word());
        assert_eq!(found, (415, "unsupported_media_type"), "{headers:?}");
    }
    let json = [
        ("content-type", "application/json"),
        ("sec-fetch-site", "same-origin"),
    ];
    assert_eq!(api.ask(path, &json, None).await.status, 200);
    assert_eq!(api.ask(path, &[], None).await.status, 200);
}
