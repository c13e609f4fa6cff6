//! One run of a scenario: the platform dies at a commit, perhaps once more while it recovers, and is judged in the end.

use super::broker_process::BrokerProcess;
use super::known_state::KnownState;
use super::people::{Acknowledged, BROKER_URL, People};
use super::platform_victim::{PlatformLaunch, PlatformVictim};
use super::scenario::{Order, Scenario, Step};
use super::scenarios::catalog;
use super::verdict::{Evidence, check_known};
use crate::recording_broker::{BrokerState, Script, read_requests};
use crate::victim::{FastClock, Moment, PlatformFlaw};
use crate::violation::{CheckResult, Violation};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How many times as fast the clock of a victim runs: a wait of a minute takes a second.
const SPEED: u32 = 60;

/// A moment of a numbered commit.
pub(crate) type CommitMoment = (u64, Moment);

/// What is run.
#[derive(Clone, Debug)]
pub(super) struct RunSettings {
    pub(super) program: PathBuf,
    pub(super) dir: PathBuf,
    pub(super) flaw: Option<PlatformFlaw>,
}

/// A scenario whose preparation is done, to be copied for each run.
pub(super) struct PreparedScenario {
    pub(super) scenario: Scenario,
    launch: PlatformLaunch,
    broker: BrokerState,
    acknowledged: Vec<Acknowledged>,
}

/// When the platform dies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PlannedDeaths {
    /// Counted from the first order.
    pub(super) first: Option<CommitMoment>,
    /// Counted from the start after the first death.
    pub(super) second: Option<CommitMoment>,
}

/// What happened in a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RunReport {
    pub(super) deaths: u64,
    /// Commits of the last process.
    pub(super) commits: u64,
    /// From its start to the end of everything.
    pub(super) recovery: Duration,
    /// Requests at the broker.
    pub(super) requests: u64,
}

/// Creates the namespace, and registers the recording broker.
pub(crate) fn registration() -> Vec<Step> {
    let body = json!({
        "url": BROKER_URL,
        "profile": "kubernetes",
        "limits": {"maxInFlight": 6, "answerWithin": "2s", "relistEvery": "7d"},
        "options": {"rotationOverlap": "30s", "autoRetries": 0},
    });
    let order = |method, path| Order::by("ada", method, path).ends(&[]);
    vec![
        order("PUT", "/namespaces/app").body(json!({})).into(),
        order("PUT", "/brokers/recording").body(body).into(),
        order("POST", "/brokers/recording:sync?wait=15s")
            .body(json!({}))
            .into(),
    ]
}

/// Does everything that comes before the deaths.
pub(super) async fn prepare(
    settings: &RunSettings,
    broker: &BrokerProcess,
    scenario: Scenario,
) -> CheckResult<PreparedScenario> {
    let dir = settings.dir.join("prepared");
    let failed = |error: std::io::Error| Violation::new(format!("no directory: {error}"));
    // What an earlier run left must not affect this one.
    let _ = std::fs::remove_dir_all(&settings.dir);
    std::fs::create_dir_all(&dir).map_err(failed)?;
    let launch = PlatformLaunch {
        program: settings.program.clone(),
        dir,
        clock: FastClock::from_now(SPEED),
        flaw: None,
    };
    let script = Script {
        catalog: catalog(),
        log: settings.dir.join("prepared.jsonl"),
        ..Script::default()
    };
    broker.begin(&script).await?;
    let victim = launch.start_ready().await?;
    let (_homes, home) = watch::channel(Some(victim.address));
    let mut people = People::new(home, broker, "before");
    let mut steps = registration();
    if scenario.registers {
        // The namespace only.
        steps.truncate(1);
    }
    people.take(&steps).await?;
    people.take(&scenario.before).await?;
    people.settle().await?;
    victim.stop().await?;
    let launch = PlatformLaunch {
        flaw: settings.flaw,
        ..launch
    };
    let acknowledged = people.acknowledged;
    let broker = broker.state().await?;
    Ok(PreparedScenario {
        scenario: scenario.registering(&registration()[1..]),
        launch,
        broker,
        acknowledged,
    })
}

/// Runs a scenario and judges it.
///
/// # Errors
/// The first violation.
pub(super) async fn run(
    prepared: &PreparedScenario,
    broker: &BrokerProcess,
    planned: PlannedDeaths,
    dir: &Path,
) -> CheckResult<RunReport> {
    let launch = prepared.launch.copied_to(dir)?;
    let scenario = &prepared.scenario;
    let script = Script {
        catalog: catalog(),
        begins_with: prepared.broker.clone(),
        rules: scenario.rules.clone(),
        log: dir.join("requests.jsonl"),
        delay_ms: 0,
    };
    broker.begin(&script).await?;
    let mut victim = launch.start_ready().await?;
    let mut before = victim.count().await.unwrap_or_default();
    if let Some((commits, moment)) = planned.first {
        victim.arm(commits, moment).await;
    }
    let (homes, home) = watch::channel(Some(victim.address));
    let mut people = People::new(home, broker, "order");
    people.acknowledged.clone_from(&prepared.acknowledged);
    let mut report = RunReport::default();
    let mut began = Instant::now();
    {
        let mut story = pin!(async {
            people.take(&scenario.steps).await?;
            people.settle().await
        });
        loop {
            tokio::select! {
                ended = &mut story => break ended?,
                died = victim.death() => died?,
            }
            homes.send_replace(None);
            report.deaths += 1;
            (victim, began) = recover(&launch, broker, planned.second, &mut report).await?;
            before = 0;
            homes.send_replace(Some(victim.address));
        }
    }
    report.recovery = began.elapsed();
    report.commits = victim
        .count()
        .await
        .unwrap_or_default()
        .saturating_sub(before);
    victim.kill().await;
    let evidence = (people.acknowledged, dir.join("requests.jsonl"));
    judge(prepared, broker, &launch, evidence, &mut report).await?;
    Ok(report)
}

/// Judges what is there at a death, and starts the platform again.
async fn recover(
    launch: &PlatformLaunch,
    broker: &BrokerProcess,
    second: Option<CommitMoment>,
    report: &mut RunReport,
) -> CheckResult<(PlatformVictim, Instant)> {
    let mut planned = second.filter(|_| report.deaths == 1);
    loop {
        let known = KnownState::of_file(&launch.db(), &launch.keys()).await?;
        check_known(&broker.state().await?, &known)?;
        let began = Instant::now();
        if let Some(victim) = launch.start(planned).await? {
            return Ok((victim, began));
        }
        report.deaths += 1;
        planned = None;
    }
}

async fn judge(
    prepared: &PreparedScenario,
    broker: &BrokerProcess,
    launch: &PlatformLaunch,
    (acknowledged, log): (Vec<Acknowledged>, PathBuf),
    report: &mut RunReport,
) -> CheckResult<()> {
    let scenario = &prepared.scenario;
    let known = KnownState::of_file(&launch.db(), &launch.keys()).await?;
    let requests = read_requests(&log);
    let requests = requests.map_err(|error| Violation::new(format!("no log: {error}")))?;
    report.requests = requests.len() as u64;
    let sends = 1 + report.deaths + u64::from(scenario.resends);
    let evidence = Evidence {
        requests: &requests,
        broker: &broker.state().await?,
        plans: plans_of(&scenario.catalog_at_end()),
        known: &known,
        acknowledged: &acknowledged,
        sends_max: usize::try_from(sends).unwrap_or(usize::MAX),
        silences: report.deaths + u64::from(scenario.resends),
        unacknowledged_max: 0,
        mitigates: scenario.mitigates,
    };
    evidence.judge()
}

/// Ids of the plans of a catalog.
pub(crate) fn plans_of(catalog: &Value) -> Vec<String> {
    let services = catalog["services"].as_array().into_iter().flatten();
    let plans = services.flat_map(|it| it["plans"].as_array().into_iter().flatten());
    plans
        .filter_map(|it| it["id"].as_str().map(str::to_owned))
        .collect()
}
