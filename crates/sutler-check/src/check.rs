//! A whole check: catalog, walks side by side, clean-up, report.

use crate::asker::{Asker, Stop};
use crate::book::{Finding, Subject, Verdict};
use crate::case::Level;
use crate::catalog::{self, Offering};
use crate::chapters;
use crate::clean_up;
use crate::options::Options;
use crate::stage::Stage;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use sutler_client::wire::Connection;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// A check that can be run.
pub struct Check {
    connection: Connection,
    options: Options,
    stop: CancellationToken,
}

/// Why nothing was checked.
#[derive(Debug, thiserror::Error)]
pub enum NotChecked {
    /// The caller's choice leaves nothing.
    #[error("no plan of the catalog is called {0:?}; `--dry-run` lists what there is")]
    NoSuchPlan(String),
}

/// What a check found.
#[derive(Debug)]
pub struct Report {
    /// The broker's URL.
    pub broker: String,
    /// Every case of every subject.
    pub findings: Vec<Finding>,
    /// What could not be removed.
    pub left_behind: Vec<String>,
    /// Whether the caller stopped it before its end.
    pub stopped: bool,
    /// How long it took.
    pub took: Duration,
}

impl Report {
    /// The findings that failed, of this level or a stronger one.
    pub fn failures(&self, level: Level) -> impl Iterator<Item = &Finding> {
        self.findings
            .iter()
            .filter(move |it| it.case.level <= level && matches!(it.verdict, Verdict::Fail { .. }))
    }
}

impl Check {
    /// A check of the broker behind a connection.
    pub fn of(connection: Connection) -> Self {
        Self {
            connection,
            options: Options::default(),
            stop: CancellationToken::new(),
        }
    }

    /// With these options.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Stops, and cleans up, when this token is cancelled.
    #[must_use]
    pub fn stop(mut self, stop: CancellationToken) -> Self {
        self.stop = stop;
        self
    }

    /// Walks the broker and removes what was made.
    ///
    /// # Errors
    /// There is nothing to check.
    pub async fn run(self) -> Result<Report, NotChecked> {
        let started = Instant::now();
        let broker = self.connection.base().to_owned();
        let jobs = self.options.jobs.max(1);
        let asker = Arc::new(Asker::new(self.connection, self.options, self.stop));
        let offerings = Arc::new(match chapters::catalog::walk(&asker).await {
            Ok(exchange) => exchange.json().map(catalog::read).unwrap_or_default(),
            Err(_) => Vec::new(),
        });
        let stages = stages(&asker, &offerings);
        let subjects: Vec<Subject> = stages.iter().map(|it| it.subject.clone()).collect();
        let walked = walk(stages, jobs).await;
        let left_behind = clean_up::run(&asker).await;
        let unseen = match walked {
            Ok(()) => "the walk did not come this far",
            Err(Stop::Silent) => "the broker stopped answering",
            Err(Stop::Asked) => "the check was stopped",
        };
        Ok(Report {
            broker,
            findings: asker.book.findings(&subjects, unseen),
            left_behind,
            stopped: walked == Err(Stop::Asked),
            took: started.elapsed(),
        })
    }
}

fn stages(asker: &Arc<Asker>, offerings: &Arc<Vec<Offering>>) -> Vec<Stage> {
    let mut stages = Vec::new();
    for (offering, it) in offerings.iter().enumerate() {
        for (plan, its) in it.plans.iter().enumerate() {
            stages.push(Stage {
                asker: asker.clone(),
                offerings: offerings.clone(),
                offering,
                plan,
                subject: Subject::Plan {
                    service: it.name.clone(),
                    plan: its.name.clone(),
                },
                samples: OnceLock::new(),
            });
        }
    }
    stages
}

/// Walks plans side by side; the first reason to stop is told.
async fn walk(stages: Vec<Stage>, jobs: usize) -> Result<(), Stop> {
    let places = Arc::new(Semaphore::new(jobs));
    let mut walks = JoinSet::new();
    for stage in stages {
        let places = places.clone();
        walks.spawn(async move {
            let _place = places.acquire_owned().await;
            chapters::walk_plan(&stage).await
        });
    }
    let mut outcome = Ok(());
    while let Some(ended) = walks.join_next().await {
        if let Ok(Err(stop)) = ended {
            outcome = Err(stop);
        }
    }
    outcome
}
