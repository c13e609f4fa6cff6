//! Changes that a browser sends: only from pages of the own host, and only as JSON.
//!
//! A browser adds the credentials of its user to requests that a page of another site makes. It says whose page that is, by
//! `Sec-Fetch-Site` or, if it is old, by `Origin`; and without asking first such a page cannot send JSON.

use super::problem::Problem;
use super::problem_word::ProblemWord;
use super::request_body::{BodyMedia, check_media};
use axum::http::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};

/// Header by which a browser says whose page sends a request.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Beginning of all headers by which a browser says how a request came about.
const FETCH_HEADERS: &str = "sec-fetch-";

/// Refuses a change that a page of another site makes a browser send.
pub(super) fn refuse_other_sites(parts: &Parts) -> Result<(), Problem> {
    let site = parts.headers.get(FETCH_SITE).map(HeaderValue::as_bytes);
    let is_own_site = matches!(site, None | Some(b"same-origin" | b"none"));
    let mut origins = parts.headers.get_all(ORIGIN).iter();
    if is_own_site && origins.all(|origin| is_own_host(origin, parts)) {
        return Ok(());
    }
    let detail = "Changes are not taken from pages of other sites.";
    Err(Problem::new(ProblemWord::NotAllowed, detail))
}

/// Whether an origin is the host to which the request was sent. A proxy may have removed TLS, so any scheme is right.
fn is_own_host(origin: &HeaderValue, parts: &Parts) -> bool {
    let named = parts.headers.get(HOST).and_then(|it| it.to_str().ok());
    let own = parts.uri.authority().map(|it| it.as_str()).or(named);
    let origin = origin.to_str().ok().and_then(|it| it.split_once("://"));
    match (origin, own) {
        (Some((_, host)), Some(own)) => host.eq_ignore_ascii_case(own),
        (Some(_) | None, _) => false,
    }
}

/// Refuses a POST that is not JSON. Without a body it may be without a media type, if no browser sends it.
pub(super) fn refuse_other_media(parts: &Parts, body: &[u8]) -> Result<(), Problem> {
    if parts.method != Method::POST {
        return Ok(());
    }
    let is_bare = body.is_empty() && !parts.headers.contains_key(CONTENT_TYPE);
    match is_bare && !is_of_browser(&parts.headers) {
        true => Ok(()),
        false => check_media(BodyMedia::Json, &parts.headers),
    }
}

fn is_of_browser(headers: &HeaderMap) -> bool {
    let mut names = headers.keys();
    names.any(|name| *name == ORIGIN || name.as_str().starts_with(FETCH_HEADERS))
}
