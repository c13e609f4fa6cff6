//! Content types and bodies that cannot be processed (checklist 1.5).

use crate::fixture::{on_each_store, on_each_store_with};
use serde_json::json;

/// Holds: B-040.
#[tokio::test]
async fn every_answer_with_a_body_has_the_content_type_of_json() {
    on_each_store(async |kit| {
        for round in 0..2 {
            for request in kit.ten_endpoints("i", "b") {
                for request in [
                    request.clone(),
                    request.clone().without_header("Authorization"),
                    request.bytes("{"),
                ] {
                    let reply = request.send().await;
                    assert_eq!(reply.header("Content-Type"), "application/json", "{round}");
                    assert!(reply.json.is_object(), "{}", reply.text);
                }
            }
            kit.provision("i").send().await;
            kit.bind("i", "b").send().await;
        }
    })
    .await;
}

/// Holds: B-041, B-042.
#[tokio::test]
async fn json_is_accepted_with_parameters_in_any_case_or_without_a_content_type() {
    on_each_store(async |kit| {
        let types = [
            "application/json",
            "application/json; charset=UTF-8",
            "application/json;charset=utf-8",
            "Application/JSON ; x=y",
        ];
        for (nth, content_type) in types.iter().enumerate() {
            let id = format!("i{nth}");
            kit.provision(&id)
                .header("Content-Type", content_type)
                .send()
                .await
                .is(201);
        }
        kit.provision("none")
            .without_header("Content-Type")
            .send()
            .await
            .is(201);
        kit.update("none")
            .without_header("Content-Type")
            .send()
            .await
            .is(200);
        kit.bind("none", "b")
            .without_header("Content-Type")
            .send()
            .await
            .is(201);
    })
    .await;
}

/// Holds: B-042.
#[tokio::test]
async fn another_content_type_is_a_400() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let types = [
            "text/plain",
            "application/x-www-form-urlencoded",
            "application/jsonx",
            "x",
        ];
        for content_type in types {
            let requests = [kit.provision("j"), kit.update("i"), kit.bind("i", "b")];
            for request in requests {
                let reply = request
                    .header("Content-Type", content_type)
                    .send()
                    .await
                    .is(400);
                assert!(reply.description().contains("application/json"));
            }
        }
        // The type of a request without a body is not checked.
        kit.fetch("i")
            .header("Content-Type", "text/plain")
            .send()
            .await
            .is(200);
        kit.deprovision("i")
            .header("Content-Type", "text/plain")
            .send()
            .await
            .is(200);
    })
    .await;
}

/// Holds: B-042, B-124, B-164, B-185.
#[tokio::test]
async fn a_body_that_cannot_be_processed_is_a_400() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let deep = format!("{{\"service_id\":{}1{}}}", "[".repeat(500), "]".repeat(500));
        let twice = r#"{"service_id":"db-id","service_id":"db-id","plan_id":"small-id",
            "organization_guid":"o","space_guid":"s"}"#;
        let bodies: [&[u8]; 12] = [
            b"",
            b"   ",
            b"null",
            b"[]",
            b"7",
            b"\"x\"",
            b"{",
            b"{}{}",
            b"{\"service_id\": \"\xFF\"}",
            b"service_id=x",
            deep.as_bytes(),
            twice.as_bytes(),
        ];
        for body in bodies {
            for request in [kit.provision("j"), kit.update("i"), kit.bind("i", "b")] {
                let reply = request.bytes(body).send().await;
                let text = String::from_utf8_lossy(&body[..body.len().min(40)]).into_owned();
                assert_eq!(reply.status, 400, "{text}: {}", reply.text);
                assert!(!reply.description().is_empty());
            }
        }
    })
    .await;
}

/// Holds: B-030.
#[tokio::test]
async fn a_body_that_is_too_long_is_refused_with_its_limit() {
    let small = |broker: sutler_broker::Broker| broker.settings(|it| it.body_bytes_max = 1000);
    on_each_store_with(small, async |kit| {
        let long = kit
            .provision("i")
            .parameters(json!({ "x": "y".repeat(2000) }));
        let reply = long.send().await.is(413);
        assert!(reply.description().contains("1000"), "{}", reply.text);
        kit.provision("i").send().await.is(201);
    })
    .await;
}
