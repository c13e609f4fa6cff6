//! Tests of the inputs of requests: each in its form, bounded, and never ignored.

use super::{Input, LIMIT_DEFAULT, LIMIT_MAX, RequestInputs, RevisionCondition, WAIT_MAX};
use crate::api::entity_tag::EntityTag;
use axum::http::{HeaderMap, HeaderValue};
use std::time::Duration;
use uuid::Uuid;

fn parse(query: &str, headers: &[(&'static str, &str)]) -> Option<RequestInputs> {
    parse_listed(&Input::ALL, query, headers)
}

fn parse_listed(
    listed: &[Input],
    query: &str,
    headers: &[(&'static str, &str)],
) -> Option<RequestInputs> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, HeaderValue::from_str(value).expect("a header"));
    }
    RequestInputs::parse(listed, query, &map, false).ok()
}

fn waits(text: &str) -> Option<Duration> {
    parse(&format!("wait={text}"), &[]).and_then(|it| it.wait)
}

fn condition(headers: &[(&'static str, &str)]) -> Option<Option<RevisionCondition>> {
    parse("", headers).map(|it| it.condition)
}

/// The tag of a resource with revision 7.
const TAG: &str = "\"00000000-0000-0000-0000-000000000000.7\"";

#[test]
fn every_input_has_its_form() {
    let inputs = parse("limit=7&dryRun&cascade=true&force=false&state=a%20b+c", &[]);
    let inputs = inputs.expect("a query");
    assert_eq!(inputs.limit, 7);
    assert!(inputs.dry_run && inputs.cascade && !inputs.force);
    assert_eq!(inputs.filter(Input::State), Some("a b c"));
    assert_eq!(inputs.filter(Input::Broker), None);
    assert_eq!(parse("", &[]).map(|it| it.limit), Some(LIMIT_DEFAULT));
}

#[test]
fn a_misspelt_or_doubled_parameter_is_refused() {
    for query in [
        "limmit=1",
        "limit=1&limit=1",
        "limit=0",
        "limit=201",
        "limit=x",
        "dryRun=yes",
        "state=%FF",
        "after=x&after=y",
    ] {
        assert!(parse(query, &[]).is_none(), "{query}");
    }
    assert!(parse(&format!("limit={LIMIT_MAX}"), &[]).is_some());
    assert!(parse_listed(&[Input::Wait], "limit=1", &[]).is_none());
}

#[test]
fn a_wait_is_bounded() {
    assert_eq!(waits("30s"), Some(Duration::from_secs(30)));
    assert_eq!(waits("30"), Some(Duration::from_secs(30)));
    assert_eq!(waits("250ms"), Some(Duration::from_millis(250)));
    assert_eq!(waits("2m"), Some(WAIT_MAX));
    assert_eq!(waits("0s"), Some(Duration::ZERO));
    for text in [
        "121s",
        "3m",
        "",
        "s",
        "-1s",
        "1.5s",
        "1h",
        "+1s",
        "18446744073709551615m",
    ] {
        assert!(
            parse(&format!("wait={}", text.replace('+', "%2B")), &[]).is_none(),
            "{text}"
        );
    }
}

#[test]
fn a_condition_is_one_entity_tag() {
    assert_eq!(condition(&[]), Some(None));
    let exactly = Some(Some(RevisionCondition::Exactly(EntityTag {
        uid: Uuid::nil(),
        revision: 7,
    })));
    assert_eq!(condition(&[("if-match", TAG)]), exactly);
    let any = Some(Some(RevisionCondition::Any));
    assert_eq!(condition(&[("if-match", "*")]), any);
    let absent = Some(Some(RevisionCondition::Absent));
    assert_eq!(condition(&[("if-none-match", "*")]), absent);
    for headers in [
        &[("if-match", TAG.trim_matches('"'))][..],
        &[("if-match", &format!("W/{TAG}"))],
        &[("if-match", &format!("{TAG}, {TAG}"))],
        &[("if-match", "\"7\"")],
        &[("if-match", "\"x\"")],
        &[("if-match", TAG), ("if-match", TAG)],
        &[("if-none-match", "\"7\"")],
        &[("if-match", TAG), ("if-none-match", "*")],
    ] {
        assert_eq!(condition(headers), None, "{headers:?}");
    }
}

#[test]
fn a_condition_that_a_route_would_ignore_is_refused() {
    let condition = [("if-match", TAG)];
    let key = [("idempotency-key", "k")];
    assert!(parse_listed(&[Input::Wait], "", &condition).is_none());
    assert!(parse_listed(&[Input::Wait], "", &key).is_none());
    // Caches send conditions with reads.
    let mut headers = HeaderMap::new();
    headers.insert("if-none-match", HeaderValue::from_static("\"7\""));
    let inputs = RequestInputs::parse(&[], "", &headers, true).expect("a read");
    assert_eq!(inputs.condition, None);
}

#[test]
fn an_idempotency_key_is_short_and_visible() {
    let key = |value: &str| parse("", &[("idempotency-key", value)])?.idempotency_key;
    assert_eq!(key("a-1").as_deref(), Some("a-1"));
    for value in ["", "a b", &"x".repeat(256)] {
        assert_eq!(key(value), None, "{value}");
    }
}

#[test]
fn a_cursor_must_be_one_that_a_list_wrote() {
    let inputs = parse("after=AAAA", &[]).expect("a query");
    assert!(inputs.position().is_err());
    assert_eq!(inputs.after(), Some("AAAA"));
}
