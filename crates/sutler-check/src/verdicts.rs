//! Collects verdicts. A case may be checked many times: one failure fails it, and only a case that was never
//! observed is not applicable.

use crate::case::{Case, Scope};
use crate::exchange::Exchange;
use crate::progress::{Event, ProgressListener};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Subject of a verdict.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// The broker as a whole.
    Broker,
    /// One plan.
    Plan {
        /// The offering's name.
        service: Arc<str>,
        /// The plan's name.
        plan: Arc<str>,
    },
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broker => f.pad("the broker"),
            Self::Plan { service, plan } => f.pad(&format!("{service}/{plan}")),
        }
    }
}

/// Result of a case.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Observed and correct.
    Pass,
    /// Observed and wrong.
    Fail {
        /// Expected and actual behaviour, in one sentence.
        said: String,
        /// The request and its answer.
        exchange: Option<Arc<Exchange>>,
    },
    /// Not observed; the reason.
    NotApplicable(String),
}

/// One case of one subject with its verdict.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Case.
    pub case: &'static Case,
    /// Subject.
    pub subject: Subject,
    /// Verdict.
    pub verdict: Verdict,
}

/// One line: case, subject and verdict, with the request that led to it.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { case, subject, .. } = self;
        write!(f, "{} ({}) of {subject}: ", case.name, case.line)?;
        match &self.verdict {
            Verdict::Pass => f.write_str("passed"),
            Verdict::NotApplicable(why) => write!(f, "not applicable, {why}"),
            Verdict::Fail { said, exchange } => {
                f.write_str(said)?;
                match exchange {
                    Some(it) => write!(f, "; {} {}", it.request.method, it.request.target()),
                    None => Ok(()),
                }
            }
        }
    }
}

/// Collects verdicts of parallel plan runs.
#[derive(Default)]
pub(crate) struct Verdicts {
    entries: Mutex<BTreeMap<(Subject, &'static str), Finding>>,
    progress: ProgressListener,
}

impl Verdicts {
    /// Creates a collection that emits an event per verdict.
    pub(crate) fn with_progress(progress: ProgressListener) -> Self {
        Self {
            entries: Mutex::default(),
            progress,
        }
    }

    /// Records a verdict. A failure is final.
    pub(crate) fn record(&self, case: &'static Case, subject: &Subject, verdict: Verdict) {
        let weight = |it: &Verdict| match it {
            Verdict::NotApplicable(_) => 0,
            Verdict::Pass => 1,
            Verdict::Fail { .. } => 2,
        };
        let mut fails = matches!(verdict, Verdict::Fail { .. });
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        match entries.entry((subject.clone(), case.name)) {
            std::collections::btree_map::Entry::Vacant(vacant) => {
                vacant.insert(Finding {
                    case,
                    subject: subject.clone(),
                    verdict,
                });
            }
            std::collections::btree_map::Entry::Occupied(mut known) => {
                if weight(&verdict) > weight(&known.get().verdict) {
                    known.get_mut().verdict = verdict;
                } else {
                    fails = false;
                }
            }
        }
        drop(entries);
        self.progress.emit(|| {
            let subject = subject.clone();
            match fails {
                true => Event::Failed { subject, case },
                false => Event::Judged { subject, case },
            }
        });
    }

    /// Findings of these cases for every subject, in the order of the cases. A case without a verdict is not
    /// applicable, for the reason `unseen`.
    pub(crate) fn findings(
        &self,
        cases: impl Iterator<Item = &'static Case>,
        plans: &[Subject],
        unseen: &str,
    ) -> Vec<Finding> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let mut findings = Vec::new();
        let broker = [Subject::Broker];
        for case in cases {
            let subjects: &[Subject] = match case.scope {
                Scope::Broker => &broker,
                Scope::Plan => plans,
            };
            for subject in subjects {
                let known = entries.get(&(subject.clone(), case.name)).cloned();
                findings.push(known.unwrap_or_else(|| Finding {
                    case,
                    subject: subject.clone(),
                    verdict: Verdict::NotApplicable(unseen.to_owned()),
                }));
            }
        }
        findings
    }
}
