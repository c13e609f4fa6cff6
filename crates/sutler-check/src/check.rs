//! A whole check: catalog, plans in parallel, clean-up, report.

use crate::cases;
use crate::catalog::{self, Offering};
use crate::clean_up::{self, LeftoverResource};
use crate::client::{CheckClient, StopReason, with_headers};
use crate::dry_run::{self, Outline};
use crate::exchange::Exchange;
use crate::options::{Options, PlanParameters};
use crate::plan_run::PlanRun;
use crate::plan_runs::{self, PlanRunsEnd};
use crate::progress::{Event, ProgressListener};
use crate::report::{Redaction, Report};
use crate::select::{self, UnknownChoiceError};
use crate::verdicts::Subject;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use sutler_client::wire::{Connection, Method, Request};
use tokio_util::sync::CancellationToken;

/// Maximum plans in one check: a larger catalog is malicious, or the caller must select.
const PLANS_MAX: usize = 1000;

/// A check, ready to run.
pub struct Check {
    connection: Connection,
    options: Options,
    progress: ProgressListener,
    stop: CancellationToken,
    leave: CancellationToken,
}

/// Why nothing was checked.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The caller's choice is not in the catalog.
    #[error(transparent)]
    Unknown(#[from] UnknownChoiceError),
    /// There is no catalog to choose from.
    #[error("{0}")]
    NoCatalog(String),
}

impl Check {
    /// A check of the broker behind a connection.
    pub fn of(connection: Connection) -> Self {
        Self {
            connection,
            options: Options::default(),
            progress: ProgressListener::default(),
            stop: CancellationToken::new(),
            leave: CancellationToken::new(),
        }
    }

    /// With these options.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Emits events to this listener, which must not block.
    #[must_use]
    pub fn progress(mut self, listener: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.progress = ProgressListener::to(listener);
        self
    }

    /// Stops, and cleans up, when this token is cancelled.
    #[must_use]
    pub fn stop(mut self, stop: CancellationToken) -> Self {
        self.stop = stop;
        self
    }

    /// Ends at once, without cleaning up, when this token is cancelled; the report lists the
    /// leftover resources.
    #[must_use]
    pub fn leave(mut self, leave: CancellationToken) -> Self {
        self.leave = leave;
        self
    }

    /// Computes what a check would do. Only fetches the catalog.
    ///
    /// # Errors
    /// There is no catalog, or it lacks something that the caller chose.
    pub async fn outline(self) -> Result<Outline, CheckError> {
        let client = Arc::new(CheckClient::new(self.connection, self.options, self.stop));
        let question = Request::new(Method::Get, &["v2", "catalog"]);
        let exchange = client.exchange(with_headers(question)).await;
        match unreadable(&exchange) {
            Some(why) => Err(CheckError::NoCatalog(why)),
            None => Ok(dry_run::of(&runs(&client, read(&exchange))?)),
        }
    }

    /// Tests the broker and deletes the created resources.
    ///
    /// # Errors
    /// The catalog lacks something that the caller chose. Everything wrong with the broker
    /// is in the report.
    pub async fn run(self) -> Result<Report, CheckError> {
        let started = Instant::now();
        let given = self.options.parameters.values();
        let redaction = Redaction::of(given.flat_map(PlanParameters::all));
        let leave = self.leave;
        let client = Arc::new(
            CheckClient::new(self.connection, self.options, self.stop).with_progress(self.progress),
        );
        let catalog = unless(&leave, cases::catalog::walk(&client)).await;
        let (offerings, mut not_walked) = match &catalog {
            Some(Ok(exchange)) => (read(exchange), unreadable(exchange)),
            Some(Err(_)) | None => (Vec::new(), None),
        };
        let mut runs = runs(&client, offerings)?;
        if let Some(why) = too_many(runs.len()) {
            not_walked = Some(why);
            runs.clear();
        }
        let subjects: Vec<Subject> = runs.iter().map(|it| it.subject.clone()).collect();
        let plans = runs.len();
        client.progress.emit(|| Event::Planned { plans });
        let walked = unless(&leave, walk(runs, client.options.jobs)).await;
        let walked = walked.unwrap_or_default();
        not_walked = not_walked.or(walked.faults.into_iter().next());
        let left_behind = match unless(&leave, clean_up::run(&client)).await {
            Some(left) => left,
            None => not_cleaned(&client),
        };
        let stopped = client.stop.is_cancelled() || leave.is_cancelled();
        let unseen = match walked.stop {
            _ if stopped => "the check was stopped",
            Some(StopReason::Silent) => "the broker stopped answering",
            Some(StopReason::Cancelled) | None if plans == 0 => "there was no plan to walk",
            Some(StopReason::Cancelled) | None => "nothing that it is about came up in the walk",
        };
        Ok(Report {
            broker: client.connection.base().to_owned(),
            profile: client.options.profile,
            findings: client
                .verdicts
                .findings(cases::all_cases(), &subjects, unseen),
            left_behind,
            not_walked,
            stopped,
            took: started.elapsed(),
            requests: client.requests(),
            made: client.created.tally(),
            redaction,
        })
    }
}

/// Runs a future unless the token is cancelled first.
async fn unless<T>(leave: &CancellationToken, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = leave.cancelled() => None,
        done = work => Some(done),
    }
}

fn not_cleaned(client: &CheckClient) -> Vec<LeftoverResource> {
    clean_up::left(
        client,
        &BTreeMap::new(),
        "the check was told to leave at once",
    )
}

fn read(exchange: &Exchange) -> Vec<Offering> {
    exchange.json().map(catalog::read).unwrap_or_default()
}

/// Reason why this answer is not a usable catalog.
fn unreadable(exchange: &Exchange) -> Option<String> {
    match (exchange.status(), exchange.field("services")) {
        (None, _) => Some(format!(
            "the broker did not answer: {}; see that it runs, and that the URL is right",
            exchange.got()
        )),
        (Some(401 | 403), _) => Some(format!(
            "the broker refused the credentials with {}; see that user and password, or the token, are right",
            exchange.got()
        )),
        (Some(200), Some(services)) if services.is_array() => None,
        (Some(200), _) => Some(
            "the broker's catalog is not an object with `services`; see that the URL is the broker's, up to /v2"
                .to_owned(),
        ),
        (Some(status), _) => Some(format!(
            "the broker answered the question for its catalog with {status} in place of 200; see that the URL is the broker's, up to /v2"
        )),
    }
}

fn runs(
    client: &Arc<CheckClient>,
    offerings: Vec<Offering>,
) -> Result<Vec<PlanRun>, UnknownChoiceError> {
    let offerings = Arc::new(offerings);
    // Without a catalog there is nothing to choose from; that is reported elsewhere.
    if offerings.is_empty() {
        return Ok(Vec::new());
    }
    let chosen = select::select(&offerings, &client.options)?;
    let run = |(offering, plan): (usize, usize)| PlanRun {
        client: client.clone(),
        offerings: offerings.clone(),
        offering,
        plan,
        subject: Subject::Plan {
            service: offerings[offering].name.clone(),
            plan: offerings[offering].plans[plan].name.clone(),
        },
        samples: OnceLock::new(),
        overdue: AtomicBool::new(false),
    };
    Ok(chosen.into_iter().map(run).collect())
}

/// Runs the plans, at most `jobs` at a time.
async fn walk(runs: Vec<PlanRun>, jobs: usize) -> PlanRunsEnd {
    let walks = runs.into_iter().map(|run| {
        let subject = run.subject.clone();
        let walk = async move {
            let progress = run.client.progress.clone();
            let subject = || run.subject.clone();
            progress.emit(|| Event::Began { subject: subject() });
            let walked = cases::walk_plan(&run).await;
            progress.emit(|| Event::Ended { subject: subject() });
            walked
        };
        (subject, walk)
    });
    plan_runs::side_by_side(walks.collect(), jobs).await
}

/// Reason if there are too many plans.
fn too_many(plans: usize) -> Option<String> {
    (plans > PLANS_MAX).then(|| {
        format!("the catalog has {plans} plans to walk, and at most {PLANS_MAX} are walked in one check; choose with --service or --plan")
    })
}
