//! Tokens and key sets: only the one signed token is accepted, whatever the mutation.
//!
//! An input of one line is a token as sent. One of several lines is a header, claims and the
//! rest: they are encoded here, so that mutations reach the decoded content.

use super::requests::{AcceptingService, CATALOG};
use super::{Check, Verdict};
use crate::properties::refused;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Request, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http_body_util::BodyExt as _;
use serde_json::Value;
use std::sync::Arc;
use sutler_broker::{Auth, AuthMethods, Broker, Issuer, KeySet};
use sutler_osb::{Catalog, from_json};
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

pub(super) const WORDS: &[&str] = &[
    "{\"alg\":\"none\"}",
    "\"alg\":\"HS256\"",
    "\"alg\":\"ES256\"",
    "\"alg\":\"RS256\"",
    "\"kid\":\"k\"",
    "\"crit\":[\"exp\"]",
    "eyJhbGciOiJub25lIn0",
    "eyJhbGciOiJFUzI1NiIsImtpZCI6ImsifQ",
    ".",
    "..",
    "\n",
    "\"iss\":\"https://i\"",
    "\"aud\":[\"a\"]",
    "\"exp\":4102444800",
    "\"sub\":\"hush\"",
];

pub(super) const KEY_WORDS: &[&str] = &[
    "\"kty\":\"EC\"",
    "\"kty\":\"RSA\"",
    "\"kty\":\"OKP\"",
    "\"kty\":\"oct\"",
    "\"crv\":\"P-256\"",
    "\"crv\":\"P-384\"",
    "\"crv\":\"Ed25519\"",
    "\"use\":\"sig\"",
    "\"use\":\"enc\"",
    "\"key_ops\":[\"verify\"]",
    "\"alg\":\"ES256\"",
    "\"kid\":\"k\"",
    "\"keys\":[",
    "AQAB",
];

/// A public key; the private one was deleted after signing.
const KEYS: &str = r#"{"keys":[{"kty":"EC","crv":"P-256","kid":"k","use":"sig","alg":"ES256",
    "x":"bjbhZPWLLK2M_yCHsjvWaMZRBzO75xp0v2wftTs5AlE",
    "y":"CayCNmo7974AO2ub1tLoigEM0o1jPiQjAu0b18-r424"}]}"#;

/// Signed content, and its signature.
const MESSAGE: &str = "eyJhbGciOiJFUzI1NiIsImtpZCI6ImsifQ.eyJzY29wZSI6InVzZSIsImlzcyI6Imh0dHBzOi8vaSIsImF1ZCI6ImEiLCJzdWIiOiJzIiwiZXhwIjo0MTAyNDQ0ODAwfQ";
const SIGNATURE: &str =
    "zOKCtn85WFeJg2IK5H9CUSugiR6W0wt7-QP6r7RwSq4H0_pUW6GLtxHEdYuwXt4z1bwrNynOFNQnqQrYVlpCqA";

struct Tokens {
    runtime: Runtime,
    router: Router,
}

pub(super) fn tokens() -> Box<dyn Check> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime can be made");
    let keys = KeySet::parse(KEYS.as_bytes()).expect("a key set");
    let issuer = Issuer::new("https://i", "a").scope("use").keys(keys);
    let auth = Auth::any_of(AuthMethods {
        issuers: vec![issuer],
        ..AuthMethods::default()
    });
    let catalog: Catalog = from_json(CATALOG.as_bytes()).expect("the catalog is valid");
    let broker = Broker::new(catalog)
        .untyped_service("s", Arc::new(AcceptingService))
        .in_memory()
        .auth(auth.expect("the issuer can be trusted"));
    let router = runtime.block_on(broker.into_router());
    let router = router.expect("the broker starts");
    Box::new(Tokens { runtime, router })
}

impl Check for Tokens {
    fn check(&mut self, input: &[u8]) -> Verdict {
        let (token, shape) = written(input);
        let header = [b"Bearer ", token.as_slice()].concat();
        let Ok(value) = HeaderValue::from_bytes(&header) else {
            return Ok("no header".to_owned());
        };
        let request = Request::get("/v2/catalog")
            .header("x-broker-api-version", "2.17")
            .header("authorization", value);
        let request = request.body(Body::empty()).expect("a valid request");
        let router = self.router.clone();
        let (status, body) = self.runtime.block_on(async {
            let answer = router.oneshot(request).await;
            let (parts, body) = answer.unwrap_or_else(|never| match never {}).into_parts();
            let body = body.collect().await.map_err(|error| error.to_string())?;
            Ok::<_, String>((parts.status, body.to_bytes()))
        })?;
        let right = token.trim_ascii() == format!("{MESSAGE}.{SIGNATURE}").as_bytes();
        if right != (status == StatusCode::OK) {
            return Err(format!("answers {status} to {}", token.escape_ascii()));
        }
        if right {
            return Ok(format!("comes in, {shape}"));
        }
        let body: Value = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        refused(body["description"].as_str().unwrap_or_default(), b"")?;
        if status != StatusCode::UNAUTHORIZED {
            return Err(format!("answers {status}"));
        }
        Ok(format!("stays outside, {shape}"))
    }
}

/// The token of an input, and the kind of input.
fn written(input: &[u8]) -> (Vec<u8>, String) {
    let lines: Vec<&[u8]> = input.splitn(3, |byte| *byte == b'\n').collect();
    if let [header, claims, ..] = lines[..] {
        let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let token = format!("{}.{}.{SIGNATURE}", part(header), part(claims));
        let read = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).is_ok();
        let shape = format!("in parts {} {}", read(header), read(claims));
        return (token.into_bytes(), shape);
    }
    let dots = input.iter().filter(|byte| **byte == b'.').count();
    (input.to_vec(), format!("{} dots", dots.min(4)))
}

/// A key set is read, or refused with a sentence that repeats none of it.
pub(super) fn key_set(input: &[u8]) -> Verdict {
    match KeySet::parse(input) {
        Ok(keys) => Ok(format!("{} keys", keys.len())),
        Err(fault) => refused(&fault.to_string(), input),
    }
}
