//! The stored form of requests: what is read is what was written, and nonsense is refused.

use proptest::prelude::*;
use serde_json::{Value, json};
use sutler_client::wire::{Method, Proof, Request, STORED_REQUEST_BYTES_MAX, StoredRequestError};

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        any::<String>(),
        "[a-z/?&=%+. \\\\\"\u{0}-\u{1f}äß\u{1F600}]{0,20}",
    ]
}

/// Any request that can be sent.
fn requests() -> impl Strategy<Value = Request> {
    let method = prop::sample::select(vec![
        Method::Get,
        Method::Put,
        Method::Patch,
        Method::Delete,
        Method::Post,
    ]);
    let segments = texts().prop_filter("a step between folders", |it| it != "." && it != "..");
    let header = ("[xX]-[A-Za-z0-9!#~-]{0,12}", "[ -~]{0,40}");
    let body = prop_oneof![
        Just(None),
        texts().prop_map(|it| Some(it.into_bytes())),
        prop::collection::vec(any::<u8>(), 0..200).prop_map(Some),
    ];
    (
        method,
        prop::collection::vec(segments, 0..6),
        prop::collection::vec((texts(), texts()), 0..5),
        prop::collection::vec(header, 0..6),
        body,
    )
        .prop_map(|(method, path, query, headers, body)| Request {
            method,
            path,
            query,
            headers,
            body: body.map(Into::into),
            proof: Proof::Right,
        })
}

proptest! {
    /// I-6 of the platform: two sends of one request are byte-equal.
    #[test]
    fn a_request_that_was_written_down_is_the_same_request(request in requests()) {
        let stored = request.to_stored().expect("it can be stored");
        let again = Request::from_stored(&stored).expect("it can be read");
        prop_assert_eq!(again.method, request.method);
        prop_assert_eq!(again.target(), request.target());
        prop_assert_eq!(&again.headers, &request.headers);
        prop_assert_eq!(&again.body, &request.body);
        prop_assert_eq!(again.to_stored().expect("it can be stored"), stored);
    }

    #[test]
    fn bytes_of_any_kind_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(Request::from_stored(&bytes).is_err());
    }

    /// A damaged byte either is refused or leaves a request that can be stored.
    #[test]
    fn a_damaged_form_is_refused_or_a_whole_request(
        request in requests(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut stored = request.to_stored().expect("it can be stored");
        let at = at.index(stored.len());
        stored[at] = byte;
        if let Ok(read) = Request::from_stored(&stored) {
            prop_assert!(read.to_stored().is_ok());
        }
    }
}

fn form() -> Value {
    json!({
        "version": 1, "method": "PUT", "path": ["v2", "hush"], "query": [["a", "hush"]],
        "headers": [["X-Note", "hush"]], "body": { "text": "hush" },
    })
}

fn read(form: &Value) -> Result<Request, StoredRequestError> {
    Request::from_stored(form.to_string().as_bytes())
}

/// The format is a promise to other builds.
#[test]
fn the_stored_form_is_as_it_is_written_down() {
    let request = Request::new(Method::Put, &["v2", "service_instances", "i 1"])
        .query("accepts_incomplete", "true")
        .header("X-Broker-API-Version", "2.17")
        .body(r#"{"plan_id":"p"}"#);
    let stored = request.to_stored().expect("it can be stored");
    assert_eq!(
        String::from_utf8(stored).expect("text"),
        r#"{"version":1,"method":"PUT","path":["v2","service_instances","i 1"],"query":[["accepts_incomplete","true"]],"headers":[["X-Broker-API-Version","2.17"]],"body":{"text":"{\"plan_id\":\"p\"}"}}"#
    );
    let binary = Request::new(Method::Patch, &[]).body(vec![0, 0xff, 0x7f]);
    let stored = binary.to_stored().expect("it can be stored");
    assert_eq!(
        String::from_utf8(stored).expect("text"),
        r#"{"version":1,"method":"PATCH","path":[],"query":[],"headers":[],"body":{"hex":"00ff7f"}}"#
    );
}

#[test]
fn a_changed_form_is_refused_without_its_values() {
    assert!(read(&form()).is_ok());
    for (field, value) in [
        ("method", json!("put")),
        ("method", json!("hush")),
        ("path", json!("hush")),
        ("path", json!(["v2", 7])),
        ("path", json!(["v2", ".."])),
        ("path", json!(vec!["hush"; 65])),
        ("path", json!(["hush".repeat(4096)])),
        ("query", json!([["a"]])),
        ("query", json!([["a", "hush", "c"]])),
        ("query", json!(vec![("a", "hush"); 65])),
        ("headers", json!([["no name", "hush"]])),
        ("headers", json!([["X-Note", "hush\r\nX-Forged: hush"]])),
        ("headers", json!([["AUTHORIZATION", "hush"]])),
        ("headers", json!([["Content-Length", "7"]])),
        ("headers", json!([["Host", "hush"]])),
        ("headers", json!(vec![("X-Note", "hush"); 65])),
        ("body", json!("hush")),
        ("body", json!({ "text": "hush", "hex": "00" })),
        ("body", json!({ "hex": "0" })),
        ("body", json!({ "hex": "hush" })),
        ("body", json!({ "hex": "+1" })),
        ("body", json!({ "base64": "hush" })),
        ("hush", json!("hush")),
        ("version", json!("1")),
    ] {
        let mut form = form();
        form[field] = value.clone();
        let error = read(&form).expect_err(field);
        assert!(
            matches!(error, StoredRequestError::Malformed(_)),
            "{field}: {error}"
        );
        assert!(
            !error.to_string().contains("hush"),
            "{field} {value}: {error}"
        );
    }
    for field in ["version", "method", "path", "query", "headers"] {
        let mut form = form();
        form.as_object_mut().expect("an object").remove(field);
        assert!(
            matches!(read(&form), Err(StoredRequestError::Malformed(_))),
            "{field}"
        );
    }
    for text in [
        "",
        "[]",
        "null",
        "[1,\"PUT\",[],[],[]]",
        " {}",
        "{\"version\":1",
    ] {
        let error = Request::from_stored(text.as_bytes());
        assert!(
            matches!(error, Err(StoredRequestError::Malformed(_))),
            "{text}"
        );
    }
}

#[test]
fn a_form_of_another_build_is_named_with_its_version() {
    let mut form = form();
    form["version"] = json!(2);
    form["path"] = json!("something else");
    let error = read(&form).expect_err("version 2");
    assert_eq!(error, StoredRequestError::UnknownVersion(2));
    assert!(
        error.to_string().contains("use the build that wrote it"),
        "{error}"
    );
}

#[test]
fn what_cannot_be_read_is_not_written_either() {
    let plain = || Request::new(Method::Put, &["v2"]);
    for (request, words) in [
        (plain().proof(Proof::Wrong), "credentials"),
        (plain().proof(Proof::Missing), "credentials"),
        (
            plain().header("Authorization", "Basic hush"),
            "Authorization",
        ),
        (plain().header("cookie", "hush"), "cookie"),
        (plain().header("X-Note", "hush\n"), "X-Note"),
        (Request::new(Method::Put, &["v2", "."]), "choose another id"),
        (Request::new(Method::Put, &["hush"; 65]), "65 path segments"),
        (plain().query("a", &"hush".repeat(4096)), "use shorter ids"),
    ] {
        let error = request.to_stored().expect_err(words);
        assert!(
            matches!(error, StoredRequestError::Unsuitable(_)),
            "{error}"
        );
        assert!(error.to_string().contains(words), "{error}");
        assert!(!error.to_string().contains("hush"), "{error}");
    }
    let overhead = plain().body("").to_stored().expect("it is short").len();
    let room = STORED_REQUEST_BYTES_MAX - overhead;
    let stored = plain().body("x".repeat(room)).to_stored().expect("it fits");
    assert_eq!(stored.len(), STORED_REQUEST_BYTES_MAX);
    assert!(Request::from_stored(&stored).is_ok());
    let error = plain()
        .body("x".repeat(room + 1))
        .to_stored()
        .expect_err("too long");
    assert_eq!(
        error,
        StoredRequestError::TooLong(STORED_REQUEST_BYTES_MAX + 1)
    );
    let longer = [stored, b" ".to_vec()].concat();
    assert_eq!(Request::from_stored(&longer).expect_err("too long"), error);
}
