//! How a check ends: its exit code, and why there is no report.

use std::error::Error;
use std::fmt;
use std::path::Path;
use std::process::ExitCode;
use sutler_check::{Level, Report};

pub(super) const EXIT_CODES: &str = "Exit codes; of several the highest: 0 no failure of the level, 1 failures, 2 wrong usage, 3 could not be checked (no answer, or no catalog), 4 something is left behind, 130 stopped by Ctrl-C or SIGTERM.";

/// How a check ended. A later one counts before an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    /// Nothing of the level failed.
    Fine,
    /// Something did.
    Failures,
    /// It was called in a way that makes no sense.
    Usage,
    /// There was nobody to check.
    CheckError,
    /// Not everything that was made could be removed.
    LeftoverResource,
    /// Somebody stopped it.
    Stopped,
}

impl End {
    /// How a report ends, by the level whose failures count.
    pub(super) fn of(report: &Report, level: Level) -> Self {
        let ends = [
            (report.failures(level).next().is_some(), Self::Failures),
            (report.not_walked.is_some(), Self::CheckError),
            (!report.left_behind.is_empty(), Self::LeftoverResource),
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
            Self::CheckError => 3,
            Self::LeftoverResource => 4,
            Self::Stopped => 130,
        }
    }
}

impl From<End> for ExitCode {
    fn from(end: End) -> Self {
        Self::from(end.code())
    }
}

/// Why there is no report.
#[derive(Debug)]
pub(super) enum NotDone {
    /// It was called in a way that makes no sense.
    Usage(String),
    /// Something did not work that has nothing to do with the broker.
    Failed(String, Option<Box<dyn Error + Send + Sync>>),
    /// The broker could not be checked.
    CheckError(String),
}

impl NotDone {
    pub(super) fn file(doing: &str, path: &Path, error: std::io::Error) -> Self {
        let sentence = format!("cannot {doing} {}", path.display());
        Self::Failed(sentence, Some(error.into()))
    }

    pub(super) fn end(&self) -> End {
        match self {
            Self::Usage(_) | Self::Failed(..) => End::Usage,
            Self::CheckError(_) => End::CheckError,
        }
    }
}

impl fmt::Display for NotDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(sentence) | Self::Failed(sentence, _) | Self::CheckError(sentence) => {
                f.write_str(sentence)
            }
        }
    }
}

impl Error for NotDone {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed(_, Some(cause)) => Some(cause.as_ref()),
            Self::Failed(_, None) | Self::Usage(_) | Self::CheckError(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::End;
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
    fn failures_count_from_the_level_that_was_asked_for() {
        let end = |failed, level| End::of(&report(failed), level).code();
        assert_eq!(end(None, Level::Should), 0);
        assert_eq!(end(Some(Level::Must), Level::Must), 1);
        assert_eq!(end(Some(Level::Should), Level::Must), 0);
        assert_eq!(end(Some(Level::Should), Level::Should), 1);
        assert_eq!(end(Some(Level::May), Level::Should), 0);
    }

    #[test]
    fn the_highest_code_that_applies_is_the_one() {
        let mut report = report(Some(Level::Must));
        report.not_walked = Some("no catalog".to_owned());
        assert_eq!(End::of(&report, Level::Must).code(), 3);
        report.left_behind.push(LeftoverResource {
            what: "instance i".to_owned(),
            why: "it would not go".to_owned(),
            target: "/v2".to_owned(),
        });
        assert_eq!(End::of(&report, Level::Must).code(), 4);
        report.stopped = true;
        assert_eq!(End::of(&report, Level::Must).code(), 130);
    }
}
