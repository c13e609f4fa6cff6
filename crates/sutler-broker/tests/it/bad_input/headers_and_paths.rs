//! Bad headers, paths, ids and queries at all ten endpoints.

use super::{BINDING, INSTANCE, on_each_store, request, set, ten};
use crate::fixture::VERSION;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::HeaderValue;
use hyper::{Method, StatusCode};

const ORIGIN: &str = "x-broker-api-originating-identity";
const IDENTITY: &str = "x-broker-api-request-identity";

/// A header's value of 64 kB.
fn long() -> String {
    "x".repeat(64 * 1024)
}

/// Invalid headers, and the status of the response.
fn bad_headers() -> Vec<(&'static str, Vec<u8>, u16)> {
    let identity = |json: &str| format!("cf {}", STANDARD.encode(json)).into_bytes();
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(110), "]".repeat(110));
    let mut bad = Vec::new();
    for version in [
        "",
        "abc",
        "3.0",
        "2",
        "2.",
        ".17",
        "2.x",
        "-2.17",
        "2.17.1",
        "2.17, 2.17",
        "2.99999999999",
    ] {
        bad.push((VERSION, version.as_bytes().to_vec(), 412));
    }
    bad.push((VERSION, long().into_bytes(), 412));
    bad.push((VERSION, b"2.17\xff".to_vec(), 412));
    for authorization in [
        "",
        "Basic",
        "Basic ",
        "Basic ***",
        "Bearer x",
        "Basic dXNlcjpodXNo",
    ] {
        bad.push(("authorization", authorization.as_bytes().to_vec(), 401));
    }
    bad.push((
        "authorization",
        format!("Basic {}", long()).into_bytes(),
        401,
    ));
    bad.push(("authorization", b"Basic \xff\xfe".to_vec(), 401));
    for origin in ["", " ", "cf", "cf ***", "cf W10=", "cf bnVsbA==", " e30="] {
        bad.push((ORIGIN, origin.as_bytes().to_vec(), 400));
    }
    bad.push((ORIGIN, format!("cf {}", long()).into_bytes(), 400));
    bad.push((ORIGIN, b"cf \xff".to_vec(), 400));
    bad.push((ORIGIN, identity("{\"a\":\"hush\""), 400));
    bad.push((ORIGIN, identity(&deep), 400));
    bad.push((IDENTITY, b"  ".to_vec(), 400));
    bad.push((IDENTITY, b"\xc3\xa4".to_vec(), 400));
    bad.push((IDENTITY, long().into_bytes(), 400));
    bad
}

#[tokio::test]
async fn every_endpoint_refuses_bad_headers_and_changes_nothing() {
    on_each_store(async |target| {
        for (name, value, status) in bad_headers() {
            for mut request in ten(b"{}") {
                let value = HeaderValue::from_bytes(&value).expect("a header value");
                request.headers_mut().insert(name, value);
                let what = format!("{name}: {:?}", value_of(&request, name));
                assert_eq!(target.refuses(&what, request).await, status, "{what}");
            }
        }
        for mut request in ten(b"{}") {
            request.headers_mut().remove(VERSION);
            assert_eq!(target.refuses("no version", request).await, 400);
        }
        for mut request in ten(b"{}") {
            request.headers_mut().remove("authorization");
            assert_eq!(target.refuses("nobody", request).await, 401);
        }
    })
    .await;
}

fn value_of<B>(request: &hyper::Request<B>, name: &str) -> String {
    let value = request.headers().get(name).map(HeaderValue::as_bytes);
    String::from_utf8_lossy(value.unwrap_or_default())
        .chars()
        .take(40)
        .collect()
}

#[tokio::test]
async fn a_body_of_another_type_is_refused() {
    on_each_store(async |target| {
        for content_type in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "",
            "json",
            "application/jsonx",
            "a,application/json",
        ] {
            for mut request in super::writers(b"{}") {
                set(&mut request, "content-type", content_type);
                assert_eq!(target.refuses(content_type, request).await, 400);
            }
        }
    })
    .await;
}

/// Every path with an id, with this id unencoded.
fn paths_around(id: &str) -> [String; 6] {
    [
        format!("/v2/service_instances/{id}"),
        format!("/v2/service_instances/{id}/last_operation"),
        format!("/v2/service_instances/{id}/service_bindings/b"),
        format!("/v2/service_instances/there/service_bindings/{id}"),
        format!("/v2/service_instances/there/service_bindings/{id}/last_operation"),
        format!("/v2/service_instances/{id}/service_bindings/{id}/last_operation"),
    ]
}

const METHODS: [Method; 7] = [
    Method::GET,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::POST,
    Method::OPTIONS,
    Method::TRACE,
];

#[tokio::test]
async fn an_invalid_id_is_refused_with_a_description() {
    let (overlong, huge) = ("x".repeat(513), "x".repeat(30_000));
    let encoded = "%C3%A4".repeat(257);
    let bad = [
        "",
        "%",
        "%2",
        "%zz",
        "%00",
        "a%00b",
        "%ff",
        "%c0%af",
        "%ed%a0%80",
        &overlong,
        &huge,
        &encoded,
    ];
    on_each_store(async |target| {
        for id in bad {
            for path in paths_around(id) {
                for method in METHODS {
                    let status = target.refuses("bad id", request(method, &path)).await;
                    assert!([400, 404].contains(&status), "{status} {path:.90}");
                }
            }
        }
    })
    .await;
}

/// B-020: dots and encoded slashes are ordinary ids, and never address another path.
#[tokio::test]
async fn dots_and_encoded_slashes_never_lead_to_another_resource() {
    let tricky = [
        "..",
        ".",
        "%2e%2e",
        "..%2Fthere",
        "%2e%2e%2Fthere",
        "there%2F",
        "%2Fthere",
        "there%20",
        "There",
        "there%2Fservice_bindings%2Fbound",
        "..%5cthere",
        "there%3Fa",
        "there%23a",
        "%25",
        "*",
        "~",
        ";a=b",
        "there;x",
    ];
    on_each_store(async |target| {
        for id in tricky {
            for path in paths_around(id) {
                let gone = format!("{path}?service_id=db-id&plan_id=small-id");
                for subject in [
                    request(Method::GET, &path),
                    request(Method::DELETE, &gone),
                    request(Method::PUT, &path),
                    request(Method::PATCH, &path),
                ] {
                    target.refuses(id, subject).await;
                }
            }
        }
    })
    .await;
}

#[tokio::test]
async fn unknown_paths_are_refused_with_a_description() {
    on_each_store(async |target| {
        for path in [
            "/v2",
            "/v2/",
            "/v2/nothing",
            "/v2/catalog/",
            "/v2/catalog/x",
            "/v2//catalog",
            "/v2/Catalog",
            "/v2/service_instances",
            "/v2/service_instances/",
            "/v2/service_instances//last_operation",
            "/v2/service_instances/there/",
            "/v2/service_instances/there/other",
            "/v2/service_instances/there/service_bindings",
            "/v2/service_instances/there/service_bindings/",
            "/v2/service_instances/there/service_bindings/bound/",
            "/v2/service_instances/there/service_bindings/bound/x",
            "/v2/service_instances/there/service_bindings/bound/last_operation/x",
            "/v2/../v2/catalog",
            "/v2/%63atalog",
        ] {
            for method in METHODS {
                target.refuses("nowhere", request(method, path)).await;
            }
        }
        for path in ["/v2/catalog", INSTANCE, BINDING] {
            for method in [Method::POST, Method::OPTIONS, Method::TRACE] {
                assert_eq!(target.refuses("method", request(method, path)).await, 405);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn every_endpoint_refuses_a_bad_query_and_ignores_unknown_parameters() {
    let many = "a=1&".repeat(10_000);
    let operation = format!("operation={}", "x".repeat(10_001));
    let service = format!("service_id={}", "x".repeat(513));
    let flooded = format!("{many}accepts_incomplete=maybe");
    let bad = [
        "accepts_incomplete=maybe",
        "accepts_incomplete",
        "accepts_incomplete=",
        "accepts_incomplete=%zz",
        "accepts_incomplete=TRUE",
        "service_id=",
        "plan_id=%00",
        "plan_id=%ff",
        "operation=",
        "operation=%",
        "service_id",
        &operation,
        &service,
        &flooded,
    ];
    on_each_store(async |target| {
        for query in bad {
            for request in ten(b"{}") {
                let path = request.uri().path().to_owned();
                let subject =
                    super::with_body(request.method().clone(), &format!("{path}?{query}"), "{}");
                let what = format!("{query:.60}");
                // An empty id of a delete counts as absent (D-06): nothing is left to delete.
                let absent = ["service_id", "service_id="].contains(&query);
                let unbind =
                    path.contains("service_bindings") && request.method() == Method::DELETE;
                let status = match absent && unbind {
                    true => 410,
                    false => 400,
                };
                assert_eq!(target.refuses(&what, subject).await, status, "{what}");
            }
        }
        for query in [many.as_str(), "&&&=&=&%zz=%zz&", "service_ID=&x=%ff"] {
            let catalog = request(Method::GET, &format!("/v2/catalog?{query}"));
            assert_eq!(target.send(catalog).await.status(), StatusCode::OK);
            let fetch = request(Method::GET, &format!("{INSTANCE}?{query}"));
            assert_eq!(target.send(fetch).await.status(), StatusCode::OK);
        }
    })
    .await;
}
