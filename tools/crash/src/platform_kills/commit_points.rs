//! Kills a platform at every commit of every scenario, before and after it, and again while it recovers.

use super::broker_process::BrokerProcess;
use super::kill_run::{
    CommitMoment, PlannedDeaths, PreparedScenario, RunReport, RunSettings, prepare, run,
};
use super::scenario::Scenario;
use super::scenarios::all_scenarios;
use crate::victim::{Moment, PlatformFlaw};
use crate::violation::{CheckResult, Violation};
use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;

/// Moments of a commit at which a platform dies.
const MOMENTS: [Moment; 2] = [Moment::Before, Moment::After];
/// More commits mean that a scenario does not end.
const COMMITS_MAX: u64 = 400;

/// What is run.
#[derive(Clone, Debug)]
pub struct CommitPoints {
    /// This package's executable.
    pub program: PathBuf,
    /// Directory of the runs.
    pub dir: PathBuf,
    /// Only scenarios whose names begin like this.
    pub only: String,
    /// Every n-th commit; another first one for each scenario.
    pub every: u64,
    /// After each death, another one at each of the first n commits of the recovery; with `every`, one of them.
    pub second: u64,
    /// Scenarios at a time.
    pub workers: usize,
    /// A deliberate flaw.
    pub flaw: Option<PlatformFlaw>,
}

/// Report of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScenarioReport {
    /// Name.
    pub name: String,
    /// Commits of an undisturbed run.
    pub commits: u64,
    /// Runs.
    pub runs: u64,
    /// Deaths.
    pub deaths: u64,
    /// Runs that ended before their death.
    pub undisturbed: u64,
    /// Most commits from a start after a death to the end.
    pub recovery_commits: u64,
    /// Longest time from a start after a death to the end.
    pub recovery: Duration,
    /// Requests that the broker received.
    pub requests: u64,
}

/// Report of all scenarios.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitPointsReport {
    /// By scenario, in their order.
    pub scenarios: Vec<ScenarioReport>,
}

impl fmt::Display for ScenarioReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} commits, {} deaths in {} runs ({} without), {} requests, recovered within {} ms and {} commits",
            self.name,
            self.commits,
            self.deaths,
            self.runs,
            self.undisturbed,
            self.requests,
            self.recovery.as_millis(),
            self.recovery_commits,
        )
    }
}

impl CommitPointsReport {
    /// Deaths of all scenarios.
    pub fn deaths(&self) -> u64 {
        self.scenarios.iter().map(|it| it.deaths).sum()
    }

    /// Runs of all scenarios.
    pub fn runs(&self) -> u64 {
        self.scenarios.iter().map(|it| it.runs).sum()
    }
}

impl fmt::Display for CommitPointsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let commits: u64 = self.scenarios.iter().map(|it| it.commits).sum();
        let requests: u64 = self.scenarios.iter().map(|it| it.requests).sum();
        let recovery = self.scenarios.iter().map(|it| it.recovery).max();
        write!(
            f,
            "{} scenarios with {commits} commits, {} deaths in {} runs, {requests} requests, recovered within {} ms",
            self.scenarios.len(),
            self.deaths(),
            self.runs(),
            recovery.unwrap_or_default().as_millis(),
        )
    }
}

impl ScenarioReport {
    fn add(&mut self, run: &RunReport) {
        self.runs += 1;
        self.deaths += run.deaths;
        self.requests += run.requests;
        if run.deaths == 0 {
            self.undisturbed += 1;
            return;
        }
        self.recovery = self.recovery.max(run.recovery);
        self.recovery_commits = self.recovery_commits.max(run.commits);
    }
}

/// Runs the scenarios; `progress` gets the report of each.
///
/// # Errors
/// The first violation, with its scenario and its deaths. The data of its run is kept.
pub async fn kill_at_commits(
    points: &CommitPoints,
    progress: impl Fn(&ScenarioReport),
) -> CheckResult<CommitPointsReport> {
    let all = all_scenarios().into_iter().enumerate();
    let chosen: VecDeque<(usize, Scenario)> = all
        .filter(|(_, it)| it.name.starts_with(&points.only))
        .collect();
    let queue = Arc::new(Mutex::new(chosen));
    let mut workers = JoinSet::new();
    let (reports, mut received) = tokio::sync::mpsc::unbounded_channel();
    for _ in 0..points.workers.max(1) {
        let (points, queue, reports) = (points.clone(), Arc::clone(&queue), reports.clone());
        workers.spawn(async move {
            let next = || {
                let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
                queue.pop_front()
            };
            while let Some((number, scenario)) = next() {
                let name = scenario.name;
                let report = all_deaths(&points, number, scenario).await;
                let report = report.map_err(|it| it.at(name))?;
                let _ = reports.send((number, report));
            }
            CheckResult::Ok(())
        });
    }
    drop(reports);
    let mut ended = Vec::new();
    loop {
        tokio::select! {
            Some(report) = received.recv() => {
                progress(&report.1);
                ended.push(report);
            }
            Some(worker) = workers.join_next() => {
                worker.map_err(|error| Violation::new(error.to_string()))??;
            }
            else => break,
        }
    }
    ended.sort_by_key(|(number, _)| *number);
    let scenarios = ended.into_iter().map(|(_, report)| report).collect();
    Ok(CommitPointsReport { scenarios })
}

/// Runs a scenario with all its deaths, one after the other.
async fn all_deaths(
    points: &CommitPoints,
    number: usize,
    scenario: Scenario,
) -> CheckResult<ScenarioReport> {
    let settings = RunSettings {
        program: points.program.clone(),
        dir: points.dir.join(scenario.name),
        flaw: points.flaw,
    };
    let mut report = ScenarioReport {
        name: scenario.name.to_owned(),
        ..ScenarioReport::default()
    };
    let broker = BrokerProcess::start(&points.program, 0).await?;
    let prepared = prepare(&settings, &broker, scenario).await?;
    let undisturbed = PlannedDeaths::default();
    let counted = one_run(&settings, &prepared, &broker, undisturbed).await?;
    report.commits = counted.commits;
    if counted.commits > COMMITS_MAX {
        return Err(Violation::new("the scenario does not end"));
    }
    let first = number as u64;
    for planned in planned_deaths(points, first, counted.commits) {
        let run = one_run(&settings, &prepared, &broker, planned).await?;
        report.add(&run);
    }
    broker.kill().await;
    let _ = std::fs::remove_dir_all(&settings.dir);
    Ok(report)
}

/// All deaths of a scenario with so many commits; at least one.
fn planned_deaths(points: &CommitPoints, number: u64, commits: u64) -> Vec<PlannedDeaths> {
    let every = points.every.max(1);
    let all = (1..=commits).flat_map(|commit| MOMENTS.map(|moment| (commit, moment)));
    let all: Vec<CommitMoment> = all.collect();
    let count = all.len() as u64;
    let first = match every > count {
        true => number % count.max(1),
        false => number % every,
    };
    let seconds = (1..=points.second).flat_map(|commit| MOMENTS.map(|moment| (commit, moment)));
    let seconds: Vec<CommitMoment> = seconds.collect();
    let mut planned = Vec::new();
    for (index, moment) in (0..).zip(all) {
        if index % every != first % every {
            continue;
        }
        let first = Some(moment);
        planned.push(PlannedDeaths {
            first,
            second: None,
        });
        // Of a short run, one of the second deaths.
        let chosen = (number + index / every) % (seconds.len() as u64).max(1);
        for (index, second) in (0_u64..).zip(&seconds) {
            if every == 1 || index == chosen {
                let second = Some(*second);
                planned.push(PlannedDeaths { first, second });
            }
        }
    }
    planned
}

async fn one_run(
    settings: &RunSettings,
    prepared: &PreparedScenario,
    broker: &BrokerProcess,
    planned: PlannedDeaths,
) -> CheckResult<RunReport> {
    let dir = settings.dir.join(name_of(planned));
    let report = run(prepared, broker, planned, &dir).await;
    let report =
        report.map_err(|it| it.at(&format!("{} in {}", name_of(planned), dir.display())))?;
    // The data of a run without a violation is removed.
    let _ = std::fs::remove_dir_all(dir);
    Ok(report)
}

fn name_of(planned: PlannedDeaths) -> String {
    let mut name = String::from("killed");
    for (commit, moment) in [planned.first, planned.second].into_iter().flatten() {
        name.push_str(&format!("-{}-{commit}", moment.word()));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::{CommitPoints, planned_deaths};

    fn points(every: u64, second: u64) -> CommitPoints {
        CommitPoints {
            program: "crash".into(),
            dir: "crash".into(),
            only: String::new(),
            every,
            second,
            workers: 1,
            flaw: None,
        }
    }

    #[test]
    fn a_long_run_has_every_commit_and_every_second_death() {
        assert_eq!(planned_deaths(&points(1, 0), 5, 7).len(), 14);
        assert_eq!(planned_deaths(&points(1, 4), 5, 7).len(), 14 * 9);
    }

    #[test]
    fn a_short_run_has_some_deaths_of_every_scenario() {
        for number in 0..40 {
            for commits in 1..20 {
                let planned = planned_deaths(&points(16, 8), number, commits);
                assert!(!planned.is_empty(), "{number}, {commits}");
                assert!(planned.len() as u64 <= 2 * (commits / 8 + 1));
            }
        }
    }
}
