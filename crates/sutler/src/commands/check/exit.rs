//! Outcome of a check: exit codes, and errors without a report.

use std::error::Error;
use std::fmt;
use std::path::Path;
use std::process::ExitCode;
use sutler_check::{Level, Report};

pub(super) const EXIT_CODES: &str = "Exit codes; of several the highest: 0 no failure of the level, 1 failures, 2 wrong usage, 3 could not be checked (no answer, or no catalog), 4 something is left behind, 130 stopped by Ctrl-C or SIGTERM.";

/// Outcome of a check. Of several, the last in this order counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CheckOutcome {
    /// No failure of the level.
    Fine,
    /// Failures of the level.
    Failures,
    /// Wrong usage.
    Usage,
    /// The broker could not be checked.
    NotChecked,
    /// Some resources could not be removed.
    LeftBehind,
    /// Stopped by a signal.
    Stopped,
}

impl CheckOutcome {
    /// The outcome of a report; failures below `level` do not count.
    pub(super) fn of(report: &Report, level: Level) -> Self {
        let ends = [
            (report.failures(level).next().is_some(), Self::Failures),
            (report.not_walked.is_some(), Self::NotChecked),
            (!report.left_behind.is_empty(), Self::LeftBehind),
            (report.stopped, Self::Stopped),
        ];
        let so = ends.into_iter().filter(|(is_so, _)| *is_so);
        so.map(|(_, end)| end).max().unwrap_or(Self::Fine)
    }

    fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Failures => 1,
            Self::Usage => 2,
            Self::NotChecked => 3,
            Self::LeftBehind => 4,
            Self::Stopped => 130,
        }
    }
}

impl From<CheckOutcome> for ExitCode {
    fn from(end: CheckOutcome) -> Self {
        Self::from(end.code())
    }
}

/// Error of the command; there is no report.
#[derive(Debug)]
pub(super) enum CheckCommandError {
    /// Wrong usage.
    Usage(String),
    /// A failure outside of the broker.
    Failed(String, Option<Box<dyn Error + Send + Sync>>),
    /// The broker could not be checked.
    NotChecked(String),
}

impl CheckCommandError {
    pub(super) fn file(doing: &str, path: &Path, error: std::io::Error) -> Self {
        let sentence = format!("cannot {doing} {}", path.display());
        Self::Failed(sentence, Some(error.into()))
    }

    pub(super) fn end(&self) -> CheckOutcome {
        match self {
            Self::Usage(_) | Self::Failed(..) => CheckOutcome::Usage,
            Self::NotChecked(_) => CheckOutcome::NotChecked,
        }
    }
}

impl fmt::Display for CheckCommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(sentence) | Self::Failed(sentence, _) | Self::NotChecked(sentence) => {
                f.write_str(sentence)
            }
        }
    }
}

impl Error for CheckCommandError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed(_, Some(cause)) => Some(cause.as_ref()),
            Self::Failed(_, None) | Self::Usage(_) | Self::NotChecked(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CheckOutcome;
    use sutler_check::{
        Finding, LeftoverResource, Level, Profile, Redaction, Report, Subject, Tally, Verdict,
        all_cases,
    };

    fn report(failed: Option<Level>) -> Report {
        let case = |level| all_cases().find(|it| it.level == level).expect("a case");
        let finding = |level| Finding {
            case: case(level),
            subject: Subject::Broker,
            verdict: Verdict::Fail {
                said: "no".to_owned(),
                exchange: None,
            },
        };
        Report {
            broker: "http://127.0.0.1".to_owned(),
            profile: Profile::V2_17,
            findings: failed.map(finding).into_iter().collect(),
            left_behind: Vec::new(),
            not_walked: None,
            stopped: false,
            took: Default::default(),
            requests: 0,
            made: Tally::default(),
            redaction: Redaction::default(),
        }
    }

    #[test]
    fn failures_count_from_the_requested_level_on() {
        let end = |failed, level| CheckOutcome::of(&report(failed), level).code();
        assert_eq!(end(None, Level::Should), 0);
        assert_eq!(end(Some(Level::Must), Level::Must), 1);
        assert_eq!(end(Some(Level::Should), Level::Must), 0);
        assert_eq!(end(Some(Level::Should), Level::Should), 1);
        assert_eq!(end(Some(Level::May), Level::Should), 0);
    }

    #[test]
    fn the_highest_applicable_exit_code_is_used() {
        let mut report = report(Some(Level::Must));
        report.not_walked = Some("no catalog".to_owned());
        assert_eq!(CheckOutcome::of(&report, Level::Must).code(), 3);
        report.left_behind.push(LeftoverResource {
            what: "instance i".to_owned(),
            why: "it would not go".to_owned(),
            target: "/v2".to_owned(),
        });
        assert_eq!(CheckOutcome::of(&report, Level::Must).code(), 4);
        report.stopped = true;
        assert_eq!(CheckOutcome::of(&report, Level::Must).code(), 130);
    }
}
