//! Lists: pages by keyset, filters, the marketplace.

use super::{TestApi, instance};
use serde_json::json;

const INSTANCES: &str = "/namespaces/app/instances";

/// The names of all items, page by page.
async fn names(api: &TestApi, path: &str, separator: char) -> Vec<String> {
    let mut names = Vec::new();
    let mut next = path.to_owned();
    loop {
        let page = api.get(&next).await;
        assert_eq!(page.status, 200, "{page:?}");
        let items = page.body["items"].as_array().expect("a list");
        let found = items.iter().map(|it| it["name"].as_str().expect("a name"));
        names.extend(found.map(str::to_owned));
        match page.body["next"].as_str() {
            Some(cursor) => next = format!("{path}{separator}after={cursor}"),
            None => return names,
        }
    }
}

#[tokio::test]
async fn instances_are_listed_by_name_page_by_page() {
    let api = TestApi::with_broker().await;
    for name in ["c", "a", "b", "e", "d"] {
        let created = api.post(INSTANCES, instance(name)).await;
        assert_eq!(created.status, 202, "{created:?}");
    }
    let all = ["a", "b", "c", "d", "e"];
    for limit in [1, 2, 5, 50] {
        let path = format!("{INSTANCES}?limit={limit}");
        assert_eq!(names(&api, &path, '&').await, all, "{limit}");
    }
}

#[tokio::test]
async fn a_list_shows_only_its_namespace() {
    let api = TestApi::with_instance().await;
    for namespace in ["ap", "apq", "app-2"] {
        let path = format!("/namespaces/{namespace}");
        assert_eq!(api.put(&path, json!({})).await.status, 201);
        assert!(
            names(&api, &format!("{path}/instances"), '?')
                .await
                .is_empty()
        );
        for filter in ["state=provisioning", "broker=databases"] {
            let path = format!("{path}/instances?{filter}");
            assert!(names(&api, &path, '&').await.is_empty(), "{path}");
        }
    }
    let namespaces = names(&api, "/namespaces?limit=2", '&').await;
    assert_eq!(namespaces, ["ap", "app", "app-2", "apq"]);
}

#[tokio::test]
async fn a_cursor_of_another_list_is_refused() {
    let api = TestApi::with_instance().await;
    assert_eq!(api.post(INSTANCES, instance("other")).await.status, 202);
    assert_eq!(api.put("/namespaces/app-2", json!({})).await.status, 201);
    let page = api.get(&format!("{INSTANCES}?limit=1")).await;
    let cursor = page.body["next"].as_str().expect("a cursor");
    for path in [
        format!("/namespaces/app-2/instances?after={cursor}"),
        format!("/namespaces?after={cursor}"),
        format!("{INSTANCES}?state=live&after={cursor}"),
        format!("{INSTANCES}?after=nonsense"),
    ] {
        let reply = api.get(&path).await;
        assert_eq!((reply.status, reply.word()), (400, "invalid"), "{path}");
    }
}

#[tokio::test]
async fn instances_are_selected_by_phase_and_broker() {
    let api = TestApi::with_instance().await;
    for (filter, expected) in [
        ("state=provisioning", 1),
        ("state=live", 0),
        ("broker=databases", 1),
        ("broker=00000000-0000-0000-0000-000000000b0b", 1),
        ("broker=databases&state=gone", 0),
    ] {
        let path = format!("{INSTANCES}?{filter}");
        assert_eq!(names(&api, &path, '&').await.len(), expected, "{filter}");
    }
    assert_eq!(
        api.get(&format!("{INSTANCES}?broker=none")).await.status,
        404
    );
    assert_eq!(
        api.get(&format!("{INSTANCES}?state=lively")).await.status,
        400
    );
}

#[tokio::test]
async fn intents_are_listed_newest_first() {
    let api = TestApi::with_instance().await;
    let path = "/namespaces/app/instances/db";
    assert_eq!(api.patch(path, json!({"plan": "large"})).await.status, 202);
    let path = format!("{path}/intents?limit=1");
    let first = api.get(&path).await;
    assert_eq!(first.body["items"][0]["number"], 2);
    assert_eq!(first.body["items"][0]["diff"], json!({"plan": "large"}));
    let cursor = first.body["next"].as_str().expect("a cursor");
    let second = api.get(&format!("{path}&after={cursor}")).await;
    assert_eq!(second.body["items"][0]["number"], 1);
    assert_eq!(second.body["items"][0]["verb"], "provision");
    let reply = api.get(&format!("{path}&after=nonsense")).await;
    assert_eq!(reply.status, 400);
}

#[tokio::test]
async fn the_marketplace_shows_what_a_namespace_may_provision() {
    let api = TestApi::with_broker().await;
    let market = api.get("/marketplace?namespace=app").await;
    assert_eq!(market.status, 200, "{market:?}");
    let class = &market.body["items"][0];
    assert_eq!(class["name"], "postgresql");
    assert_eq!(class["broker"], "databases");
    let plans = class["plans"].as_array().expect("a list");
    assert_eq!(plans.len(), 2);
    assert_eq!(plans[1]["name"], "small");
    assert!(plans[1]["schemas"].is_object());
    let reply = api.get("/marketplace").await;
    assert_eq!((reply.status, reply.word()), (400, "invalid"));
}
