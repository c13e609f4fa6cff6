//! The report as JSON. Members may be added; `version` grows when one is removed or changes its meaning.
//!
//! `docs/check.md` describes them.

use super::{Counts, Report};
use crate::case::Level;
use crate::verdicts::{Finding, Subject, Verdict};
use serde_json::{Map, Value, json};

/// Version of this format.
const VERSION: u32 = 1;

pub(super) fn render(report: &Report) -> String {
    let value = json!({
        "version": VERSION,
        "broker": report.broker,
        "profile": report.profile.to_string(),
        "stopped": report.stopped,
        "not_walked": report.not_walked,
        "took_ms": u64::try_from(report.took.as_millis()).unwrap_or(u64::MAX),
        "requests": report.requests,
        "made": { "instances": report.made.instances, "bindings": report.made.bindings },
        "counts": {
            "must": counts(report.counts(None, Level::Must)),
            "should": counts(report.counts(None, Level::Should)),
            "may": counts(report.counts(None, Level::May)),
        },
        "findings": report.findings.iter().map(|it| finding(report, it)).collect::<Vec<_>>(),
        "left_behind": report.left_behind.iter().map(|it| json!({
            "what": it.what,
            "why": report.redaction.text(&it.why),
            "command": report.removal(it),
        })).collect::<Vec<_>>(),
    });
    let mut text = serde_json::to_string_pretty(&value).unwrap_or_default();
    text.push('\n');
    text
}

fn counts(counts: Counts) -> Value {
    json!({
        "passed": counts.passed,
        "failed": counts.failed,
        "not_applicable": counts.not_applicable,
    })
}

fn finding(report: &Report, finding: &Finding) -> Value {
    let mut members = Map::new();
    let mut add = |name: &str, value: Value| members.insert(name.to_owned(), value);
    add("case", finding.case.name.into());
    add("line", finding.case.line.into());
    add(
        "level",
        finding.case.level.to_string().to_lowercase().into(),
    );
    add("rule", finding.case.rule.into());
    add(
        "subject",
        match &finding.subject {
            Subject::Broker => json!({ "kind": "broker" }),
            Subject::Plan { service, plan } => {
                json!({ "kind": "plan", "service": **service, "plan": **plan })
            }
        },
    );
    let verdict = match finding.verdict {
        Verdict::Pass => "pass",
        Verdict::Fail { .. } => "fail",
        Verdict::NotApplicable(_) => "not-applicable",
    };
    add("verdict", verdict.into());
    if let Some(said) = report.said(finding) {
        add("said", said.into());
    }
    if let Some(shown) = report.shown(finding) {
        add(
            "exchange",
            json!({ "request": shown.request, "answer": shown.answer }),
        );
    }
    members.into()
}
