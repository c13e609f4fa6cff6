//! The report of a check and its formats: JSON, JUnit and Markdown. Pure: a report in, text out.
//!
//! Exchanges are shown through `report/shown.rs`, which redacts them. The table for terminals is in the
//! executable.

mod json;
mod junit;
mod markdown;
mod redact;
mod shown;
#[cfg(test)]
mod tests;

use crate::case::Level;
use crate::clean_up::LeftoverResource;
use crate::created::Tally;
use crate::options::Profile;
use crate::verdicts::{Finding, Subject, Verdict};
use std::time::Duration;

pub use redact::Redaction;
pub use shown::ShownExchange;

/// Report of a check.
#[derive(Debug)]
pub struct Report {
    /// The broker's URL.
    pub broker: String,
    /// Expectations that were applied.
    pub profile: Profile,
    /// Every case of every subject.
    pub findings: Vec<Finding>,
    /// Resources that were not deleted.
    pub left_behind: Vec<LeftoverResource>,
    /// Why plans could not be tested, if they could not: there was no answer, no catalog, too many
    /// plans, or the check itself failed.
    pub not_walked: Option<String>,
    /// Whether the caller stopped it before its end.
    pub stopped: bool,
    /// Duration.
    pub took: Duration,
    /// Number of requests sent.
    pub requests: usize,
    /// Number of resources that the broker created for it.
    pub made: Tally,
    /// Redaction of secrets.
    pub redaction: Redaction,
}

/// Numbers of cases by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Observed and correct.
    pub passed: usize,
    /// Observed and wrong.
    pub failed: usize,
    /// Not observed.
    pub not_applicable: usize,
}

impl Counts {
    fn add(&mut self, verdict: &Verdict) {
        *match verdict {
            Verdict::Pass => &mut self.passed,
            Verdict::Fail { .. } => &mut self.failed,
            Verdict::NotApplicable(_) => &mut self.not_applicable,
        } += 1;
    }
}

impl Report {
    /// The findings that failed, of this level or a stronger one.
    pub fn failures(&self, level: Level) -> impl Iterator<Item = &Finding> {
        self.findings
            .iter()
            .filter(move |it| it.case.level <= level && matches!(it.verdict, Verdict::Fail { .. }))
    }

    /// The broker and the plans, in the order in which they were found.
    pub fn subjects(&self) -> Vec<&Subject> {
        let mut subjects: Vec<&Subject> = Vec::new();
        for finding in &self.findings {
            if !subjects.contains(&&finding.subject) {
                subjects.push(&finding.subject);
            }
        }
        subjects.sort_by_key(|it| !matches!(it, Subject::Broker));
        subjects
    }

    /// The findings about one subject.
    pub fn about<'a>(&'a self, subject: &'a Subject) -> impl Iterator<Item = &'a Finding> {
        self.findings
            .iter()
            .filter(move |it| it.subject == *subject)
    }

    /// Numbers of cases of a level by verdict, for one subject or for all.
    pub fn counts(&self, subject: Option<&Subject>, level: Level) -> Counts {
        let mut counts = Counts::default();
        for finding in &self.findings {
            let counted = subject.is_none_or(|it| finding.subject == *it);
            if counted && finding.case.level == level {
                counts.add(&finding.verdict);
            }
        }
        counts
    }

    /// Request and answer of a failure, redacted.
    pub fn shown(&self, finding: &Finding) -> Option<ShownExchange> {
        match &finding.verdict {
            Verdict::Fail {
                exchange: Some(exchange),
                ..
            } => Some(ShownExchange::of(exchange, &self.redaction)),
            Verdict::Fail { exchange: None, .. } | Verdict::Pass | Verdict::NotApplicable(_) => {
                None
            }
        }
    }

    /// Text of a finding, redacted; `None` if it passed.
    pub fn said(&self, finding: &Finding) -> Option<String> {
        match &finding.verdict {
            Verdict::Pass => None,
            Verdict::NotApplicable(reason) => Some(self.redaction.text(reason)),
            Verdict::Fail { said, exchange } => Some(match exchange {
                Some(exchange) => self.redaction.with(exchange).text(said),
                None => self.redaction.text(said),
            }),
        }
    }

    /// A command that removes a leftover resource.
    pub fn removal(&self, left: &LeftoverResource) -> String {
        let url = format!("{}{}", self.broker, left.target).replace('\'', "'\\''");
        format!("curl -X DELETE -H 'X-Broker-API-Version: {VERSION}' -u USER '{url}'")
    }

    /// The report as JSON; its members are described in `docs/check.md`.
    pub fn to_json(&self) -> String {
        json::render(self)
    }

    /// The report as JUnit's XML: a suite for each subject, a case for each case.
    pub fn to_junit(&self) -> String {
        junit::render(self)
    }

    /// The report as Markdown, for a pull request.
    pub fn to_markdown(&self) -> String {
        markdown::render(self)
    }
}

/// The version of the protocol that commands in a report speak.
const VERSION: &str = "2.17";
