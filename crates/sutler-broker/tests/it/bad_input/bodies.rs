//! Bad bodies: invalid JSON, wrong types, too deep, too large; and unusual ones that are valid.

use super::{INSTANCE, on_each_store, provision_body, put, request, ten, with_body, writers};
use crate::fixture::test_catalog::{DB, LARGE, SMALL};
use axum::body::Body;
use bytes::Bytes;
use hyper::Method;
use hyper::body::Frame;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The longest body that is read, in bytes.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// Bytes that are not a JSON object.
fn no_objects() -> Vec<(&'static str, Vec<u8>)> {
    let valid = provision_body().to_string().into_bytes();
    let around = |before: &[u8], after: &[u8]| [before, &valid, after].concat();
    let utf16: Vec<u8> = String::from_utf8_lossy(&valid)
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let mut bodies = vec![
        ("nothing", Vec::new()),
        ("white space", b" \r\n\t ".to_vec()),
        ("null", b"null".to_vec()),
        ("a list", around(b"[", b"]")),
        ("a text", b"\"hush\"".to_vec()),
        ("a number", b"12".to_vec()),
        ("a byte order mark", around(b"\xef\xbb\xbf", b"")),
        ("UTF-16", utf16),
        ("a NUL before", around(b"\0", b"")),
        ("a NUL after", around(b"", b"\0")),
        ("rubbish after", around(b"", b"x")),
        ("two objects", around(b"", b"{}")),
        ("a comment", around(b"/* */", b"")),
        ("no UTF-8", b"{\"service_id\":\"\xff\xfe\"}".to_vec()),
        (
            "an overlong slash",
            b"{\"service_id\":\"\xc0\xaf\"}".to_vec(),
        ),
        ("half a surrogate", br#"{"service_id":"\ud800"}"#.to_vec()),
        (
            "a raw control character",
            b"{\"service_id\":\"a\x01b\"}".to_vec(),
        ),
        ("single quotes", b"{'service_id':'a'}".to_vec()),
        ("no number", b"{\"parameters\":{\"a\":NaN}}".to_vec()),
        ("a form", b"service_id=a&plan_id=b".to_vec()),
        ("a million levels of lists", vec![b'['; 1_000_000]),
        ("a million levels of objects", br#"{"a":"#.repeat(200_000)),
    ];
    bodies.extend((1..valid.len()).map(|end| ("half of it", valid[..end].to_vec())));
    bodies
}

#[tokio::test]
async fn a_body_that_is_not_a_json_object_is_refused_and_changes_nothing() {
    on_each_store(async |target| {
        for (what, body) in no_objects() {
            for request in writers(&body) {
                assert_eq!(target.refuses(what, request).await, 400, "{what}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn endpoints_without_a_body_ignore_one() {
    on_each_store(async |target| {
        for (what, body) in no_objects().into_iter().take(24) {
            let before = target.dump().await;
            for request in ten(&body) {
                let is_catalog = request.uri().path() == "/v2/catalog";
                if is_catalog {
                    assert_eq!(target.send(request).await.status(), 200, "{what}");
                } else {
                    target.refuses(what, request).await;
                }
            }
            assert_eq!(target.dump().await, before, "{what}");
        }
    })
    .await;
}

/// Fields with values of a wrong type or invalid values.
fn wrong_fields() -> Vec<Value> {
    let mut bodies = Vec::new();
    let long = "x".repeat(513);
    let no_ids = [
        json!(null),
        json!(1),
        json!(1.5),
        json!(true),
        json!(["hush"]),
        json!({"a": "hush"}),
        json!(""),
        json!("a\u{0}b"),
        json!(long),
    ];
    for value in no_ids {
        for field in ["service_id", "plan_id"] {
            let mut body = provision_body();
            body[field] = value.clone();
            bodies.push(body);
        }
    }
    for value in [json!("hush"), json!(["hush"]), json!(424_242), json!(true)] {
        for field in ["parameters", "context"] {
            let mut body = provision_body();
            body[field] = value.clone();
            bodies.push(body);
        }
    }
    bodies
}

#[tokio::test]
async fn fields_of_the_wrong_type_are_refused_and_change_nothing() {
    on_each_store(async |target| {
        for body in wrong_fields() {
            // An update may omit its plan, and null counts as omitted.
            let no_plan = body["plan_id"].is_null();
            for request in writers(body.to_string().as_bytes()) {
                if !(no_plan && request.method() == Method::PATCH) {
                    target.refuses(&format!("{body:.60}"), request).await;
                }
            }
        }
        let provision = |field: &str, value: Value| {
            let mut body = provision_body();
            body[field] = value;
            put("/v2/service_instances/new", body)
        };
        for (field, value) in [
            ("organization_guid", json!("")),
            ("space_guid", json!(7)),
            ("maintenance_info", json!(["hush"])),
            ("maintenance_info", json!({ "version": 1 })),
        ] {
            target.refuses(field, provision(field, value)).await;
        }
        for body in [
            json!({ "service_id": DB, "previous_values": "hush" }),
            json!({ "service_id": DB, "previous_values": { "plan_id": {} } }),
        ] {
            let update = with_body(Method::PATCH, INSTANCE, body.to_string());
            target.refuses("previous_values", update).await;
        }
        for resource in [json!("hush"), json!([]), json!({ "app_guid": [] })] {
            let body = json!({ "service_id": DB, "plan_id": SMALL, "bind_resource": resource });
            let path = "/v2/service_instances/there/service_bindings/new";
            target.refuses("bind_resource", put(path, body)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn fields_that_appear_twice_are_refused() {
    on_each_store(async |target| {
        for twice in ["service_id", "plan_id", "parameters", "context"] {
            let valid = provision_body().to_string();
            let value = if twice.ends_with("_id") {
                r#""a""#
            } else {
                "{}"
            };
            let field = format!(r#""{twice}":{value}"#);
            let body = format!("{{{field},{field},{}", &valid[1..]);
            for request in writers(body.as_bytes()) {
                assert_eq!(target.refuses(twice, request).await, 400);
            }
        }
    })
    .await;
}

/// A body with these parameters unchanged.
fn with_parameters(plan: &str, parameters: &str) -> String {
    let head = format!(r#""service_id":"{DB}","plan_id":"{plan}""#);
    format!(r#"{{{head},"organization_guid":"o","space_guid":"s","parameters":{parameters}}}"#)
}

#[tokio::test]
async fn parameters_that_break_the_schema_or_are_too_large_are_refused() {
    let (list, object) = (
        |n| ("[".repeat(n), "]".repeat(n)),
        |n| (r#"{"a":"#.repeat(n), "}".repeat(n)),
    );
    let nested = |(open, close): (String, String)| format!(r#"{{"size":{open}1{close}}}"#);
    on_each_store(async |target| {
        let mut bodies = vec![
            with_parameters(LARGE, r#"{"size":1e999}"#),
            with_parameters(LARGE, r#"{"size":-1e999}"#),
            with_parameters(LARGE, r#"{"size":-0}"#),
            with_parameters(LARGE, r#"{"size":-99999999999999999999999999}"#),
            with_parameters(LARGE, r#"{"size":0.5}"#),
            with_parameters(LARGE, r#"{"size":"hush"}"#),
            with_parameters(LARGE, r#"{"size":[1]}"#),
            with_parameters(LARGE, r#"{"password":"hush"}"#),
            with_parameters(LARGE, &format!(r#"{{"{}":"hush"}}"#, "k".repeat(100_000))),
            with_parameters(LARGE, &nested(list(100))),
            with_parameters(LARGE, &nested(object(100))),
            with_parameters(SMALL, r#"{"size":1e999}"#),
        ];
        for levels in [100, 10_000, 150_000] {
            bodies.push(with_parameters(SMALL, &nested(list(levels))));
            bodies.push(with_parameters(SMALL, &nested(object(levels))));
        }
        for body in bodies {
            let new = "/v2/service_instances/new";
            let what = format!("{body:.150}");
            assert_eq!(
                target
                    .refuses(&what, with_body(Method::PUT, new, body))
                    .await,
                400
            );
        }
    })
    .await;
}

#[tokio::test]
async fn odd_but_valid_bodies_make_instances_that_can_be_managed() {
    let many: Vec<String> = (0..10_000).map(|n| format!(r#""k{n}":{n}"#)).collect();
    let list = |levels: usize| format!(r#"{{"a":{}{}}}"#, "[".repeat(levels), "]".repeat(levels));
    let odd = [
        r#"{"a":-0}"#.to_owned(),
        r#"{"a":-0.0,"b":1e-320,"c":0.1,"d":1e308,"e":5e-324}"#.to_owned(),
        r#"{"a":18446744073709551616,"b":123456789012345678901234567890,"c":1.7976931348623157e308}"#.to_owned(),
        r#"{"":"","\u0000":"\u0000","a":"a","a":"b"}"#.to_owned(),
        format!("{{{}}}", many.join(",")),
        list(97),
        format!(r#"{{"a":"{}"}}"#, "x".repeat(400_000)),
    ];
    on_each_store(async |target| {
        for (nth, parameters) in odd.iter().enumerate() {
            let path = format!("/v2/service_instances/odd-{nth}");
            let body = with_parameters(SMALL, parameters);
            let subject = |method| with_body(method, &path, body.clone());
            let what = format!("{parameters:.80}");
            assert_eq!(
                target.send(subject(Method::PUT)).await.status(),
                201,
                "{what}"
            );
            // The stored values equal the sent ones: the same request changes nothing.
            assert_eq!(
                target.send(subject(Method::PUT)).await.status(),
                200,
                "{what}"
            );
            assert_eq!(
                target.send(request(Method::GET, &path)).await.status(),
                200,
                "{what}"
            );
            let gone = format!("{path}?service_id={DB}&plan_id={SMALL}");
            assert_eq!(
                target.send(request(Method::DELETE, &gone)).await.status(),
                200,
                "{what}"
            );
        }
    })
    .await;
}

/// An endless body without a length, as of a chunked request.
struct Endless(usize);

impl hyper::body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0 += 1;
        assert!(self.0 < 40, "the body is read far beyond its limit");
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![b' '; 64 * 1024])))))
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_with_and_without_a_length() {
    on_each_store(async |target| {
        for sized in writers(&vec![b' '; BODY_BYTES_MAX + 1]) {
            assert_eq!(target.refuses("too large", sized).await, 413);
        }
        for mut unsized_ in writers(b"") {
            *unsized_.body_mut() = Body::new(Endless(0));
            assert_eq!(target.refuses("endless", unsized_).await, 413);
        }
        let near = format!(r#"{{"a":"{}"}}"#, "x".repeat(BODY_BYTES_MAX - 200));
        let near = with_body(
            Method::PUT,
            "/v2/service_instances/near",
            with_parameters(SMALL, &near),
        );
        // Small enough to be read, too large to be stored.
        target.refuses("as large as can be", near).await;
    })
    .await;
}
