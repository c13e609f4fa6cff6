//! One report in all formats, compared exactly with the files in `tests/`.

use super::{Redaction, Report};
use crate::case::{Case, Level, Scope};
use crate::clean_up::LeftoverResource;
use crate::created::Tally;
use crate::exchange::Exchange;
use crate::options::{PlanParameters, Profile};
use crate::verdicts::{Finding, Subject, Verdict};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use sutler_client::wire::{Answer, Method, Request};

static BROKER_WIDE: Case = Case {
    name: "broker-wide",
    line: "B-001",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "Something that is so of every broker.",
};
static CREATED: Case = Case {
    name: "created",
    line: "B-002",
    level: Level::Must,
    scope: Scope::Plan,
    rule: "What is made is answered with 201.",
};
static POLITE: Case = Case {
    name: "polite",
    line: "B-003",
    level: Level::Should,
    scope: Scope::Plan,
    rule: "A broker says `please`.",
};
static TOLD: Case = Case {
    name: "told",
    line: "B-004",
    level: Level::May,
    scope: Scope::Plan,
    rule: "A broker may tell why.",
};

fn exchange() -> Arc<Exchange> {
    let path = ["v2", "service_instances", "i", "service_bindings", "b"];
    let body = json!({ "service_id": "s", "parameters": { "pin": "1234-5678" } });
    let request = Request::new(Method::Put, &path)
        .query("accepts_incomplete", "true")
        .header("X-Broker-API-Version", "2.17")
        .body(body.to_string());
    let body = json!({
        "credentials": { "password": "hush-hush" },
        "syslog_drain_url": "syslog://me:hush@logs.example:514/x",
        "description": "<b>1234-5678</b> | is fine",
    });
    let answer = Answer {
        status: 200,
        headers: [(
            "content-type".parse().expect("a name"),
            "application/json".parse().expect("a value"),
        )]
        .into_iter()
        .collect(),
        body: body.to_string().into(),
        took: Duration::from_millis(3),
    };
    Arc::new(Exchange::new(request, Ok(answer)))
}

fn report() -> Report {
    let plan = |plan: &str| Subject::Plan {
        service: "data".into(),
        plan: plan.into(),
    };
    let find = |case: &'static Case, subject: Subject, verdict| Finding {
        case,
        subject,
        verdict,
    };
    let fail = |said: &str| Verdict::Fail {
        said: said.to_owned(),
        exchange: Some(exchange()),
    };
    let not_applicable = |why: &str| Verdict::NotApplicable(why.to_owned());
    let given = json!({ "pin": "1234-5678" });
    Report {
        broker: "https://broker.example".to_owned(),
        profile: Profile::V2_17,
        findings: vec![
            find(&BROKER_WIDE, Subject::Broker, Verdict::Pass),
            find(
                &CREATED,
                plan("small"),
                fail("expected 201, got 200 and hush-hush"),
            ),
            find(&CREATED, plan("large"), Verdict::Pass),
            find(
                &POLITE,
                plan("small"),
                fail("it did not say \"please\"\u{1b}"),
            ),
            find(
                &POLITE,
                plan("large"),
                not_applicable("the plan has <no> words"),
            ),
            find(&TOLD, plan("small"), fail("it did not tell")),
            find(&TOLD, plan("large"), Verdict::Pass),
        ],
        left_behind: vec![LeftoverResource {
            what: "instance i".to_owned(),
            why: "its delete was answered with 500".to_owned(),
            target: "/v2/service_instances/i?service_id=s&plan_id=p".to_owned(),
        }],
        not_walked: None,
        stopped: true,
        took: Duration::from_millis(1234),
        requests: 42,
        made: Tally {
            instances: 3,
            bindings: 4,
        },
        redaction: Redaction::of(given.as_object().into_iter()),
    }
}

#[track_caller]
fn same(made: &str, kept: &str) {
    assert!(made == kept, "the report is now:\n{made}");
}

#[test]
fn a_report_as_json_has_the_members_that_are_promised() {
    let made = report().to_json();
    assert!(serde_json::from_str::<Value>(&made).is_ok());
    same(&made, include_str!("tests/report.json"));
}

#[test]
fn a_report_as_junit_has_a_suite_for_each_subject() {
    same(&report().to_junit(), include_str!("tests/report.xml"));
}

#[test]
fn a_report_as_markdown_is_a_table_and_the_failures() {
    same(&report().to_markdown(), include_str!("tests/report.md"));
}

#[test]
fn no_form_shows_a_secret() {
    let report = report();
    for text in [report.to_json(), report.to_junit(), report.to_markdown()] {
        for secret in ["hush-hush", "me:hush", "1234-5678", "\u{1b}"] {
            assert!(!text.contains(secret), "{secret:?} is in:\n{text}");
        }
    }
}

#[test]
fn debug_output_of_a_report_contains_no_secret() {
    let given = json!({ "pin": "1234-5678" });
    let parameters = PlanParameters {
        bind: given.as_object().cloned(),
        ..PlanParameters::default()
    };
    let text = format!("{:?} {parameters:?}", report().redaction);
    let text = format!("{text} {:?}", exchange());
    for secret in ["hush-hush", "me:hush", "1234-5678"] {
        assert!(!text.contains(secret), "{secret:?} is in:\n{text}");
    }
}

#[test]
fn every_format_reports_a_broker_that_could_not_be_tested() {
    let mut report = report();
    report.not_walked = Some("there is no catalog".to_owned());
    for text in [report.to_json(), report.to_junit(), report.to_markdown()] {
        assert!(text.contains("there is no catalog"), "{text}");
    }
}
