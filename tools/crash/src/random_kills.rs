//! Kills a victim under load at random, repeatedly, and checks it after every restart.
//!
//! Kills come in rounds of a few dozen on one file; between kills the platforms verify and continue.
//! After each round the platforms finish, the victim drains, and effect log and store are checked.

use crate::audit::audit;
use crate::effects::check_effects;
use crate::platform::{Platform, RequestMode, SCRIPT, Target, TargetReceiver};
use crate::process::{Launch, VictimProcess};
use crate::victim::Moment;
use crate::violation::{CheckResult, Violation};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use sutler_servers::SeededRng;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Kills on one file.
const KILLS_PER_ROUND: u64 = 25;
/// Maximum lifetime of a victim before it is killed from outside, in milliseconds.
const LIFE_MAX_MS: u64 = 60;
/// Maximum number of the store call at which a victim kills itself.
const CALLS_MAX: u64 = 80;
/// Maximum time to wait for a victim that should kill itself.
const PATIENCE: Duration = Duration::from_secs(5);
/// Number of kills after which the victim may work until every platform made progress: an operation that
/// is interrupted more than five times without progress is correctly given up.
const REST_EVERY: u64 = 4;
/// Time limit of such a rest; a platform without progress reports the reason itself.
const REST_MAX: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Configuration of a run.
#[derive(Clone, Debug)]
pub struct RandomKills {
    /// This package's executable.
    pub program: PathBuf,
    /// Directory of victims.
    pub dir: PathBuf,
    /// Number of kills.
    pub kills: u64,
    /// Number of concurrent platforms.
    pub clients: usize,
    /// The same seed gives the same random choices.
    pub seed: u64,
}

/// Report of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RandomKillsReport {
    /// Deaths.
    pub kills: u64,
    /// Lives that platforms completed.
    pub lives: u64,
    /// Operations in the stores.
    pub operations: u64,
    /// Operations named by a 202.
    pub acknowledged: u64,
    /// Steps done.
    pub effects: u64,
    /// Steps repeated because the crash happened before their memo.
    pub repeats: u64,
    /// Longest start until ready.
    pub ready: Duration,
    /// Longest time from a restart to the end of an interrupted operation.
    pub recovery: Duration,
}

impl fmt::Display for RandomKillsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} kills, {} lives, {} operations ({} acknowledged by 202), {} effects, {} repeated \
             before their memo, ready within {} ms, recovered within {} ms",
            self.kills,
            self.lives,
            self.operations,
            self.acknowledged,
            self.effects,
            self.repeats,
            self.ready.as_millis(),
            self.recovery.as_millis(),
        )
    }
}

/// Kills until the number is reached; `progress` gets a line after each round.
///
/// # Errors
/// The first violation, with its round.
pub async fn kill_at_random(
    rounds: &RandomKills,
    mut progress: impl FnMut(String),
) -> CheckResult<RandomKillsReport> {
    let mut report = RandomKillsReport::default();
    let mut rng = SeededRng::new(rounds.seed);
    let begun = Instant::now();
    let mut number = 0;
    while report.kills < rounds.kills {
        number += 1;
        let dir = rounds.dir.join(number.to_string());
        let kills = KILLS_PER_ROUND.min(rounds.kills - report.kills);
        let place = format!(
            "round {number} of seed {} in {}",
            rounds.seed,
            dir.display()
        );
        let changes = (0..rounds.clients).map(|_| AtomicU64::new(0)).collect();
        let round = Round {
            rounds,
            dir,
            kills,
            rng: rng.split(),
            changes,
        };
        round.run(&mut report).await.map_err(|it| it.at(&place))?;
        progress(format!("{} s: {report}", begun.elapsed().as_secs()));
    }
    Ok(report)
}

struct Round<'r> {
    rounds: &'r RandomKills,
    dir: PathBuf,
    kills: u64,
    rng: SeededRng,
    /// Number of changes that each platform has completed.
    changes: Arc<[AtomicU64]>,
}

impl Round<'_> {
    async fn run(mut self, report: &mut RandomKillsReport) -> CheckResult<()> {
        std::fs::create_dir_all(&self.dir).map_err(|error| Violation::new(error.to_string()))?;
        let mut launch = Launch::new(&self.rounds.program, &self.dir);
        let (homes, home) = watch::channel(None);
        let ending = Arc::new(AtomicBool::new(false));
        let mut clients = JoinSet::new();
        for client in 0..self.rounds.clients {
            let (home, ending, rng) = (home.clone(), Arc::clone(&ending), self.rng.split());
            let changes = Arc::clone(&self.changes);
            clients.spawn(async move {
                let got_on = || {
                    changes[client].fetch_add(1, Ordering::Relaxed);
                };
                live(home, client, &ending, rng, got_on).await
            });
        }
        for kill in 1..=self.kills {
            self.one_death(&mut launch, &homes, kill, report).await?;
            report.kills += 1;
            if let Some(early) = clients.try_join_next() {
                early.map_err(|error| Violation::new(error.to_string()))??;
            }
        }
        launch.kill_at = None;
        let victim = launch.start_ready().await?;
        announce(&homes, &launch, &victim);
        ending.store(true, Ordering::Relaxed);
        let mut platforms = Vec::new();
        while let Some(joined) = clients.join_next().await {
            platforms.extend(joined.map_err(|error| Violation::new(error.to_string()))??);
        }
        victim.stop().await?;
        let effects = check_effects(&launch.ledger, self.rounds.clients as u64)?;
        let audited = audit(&launch.db, &platforms, &effects).await?;
        report.lives += platforms.len() as u64;
        report.operations += audited.operations;
        report.acknowledged += audited.acknowledged;
        report.effects += effects.effects;
        report.repeats += effects.repeats;
        let recovery = platforms
            .iter()
            .map(|it| it.recovery)
            .max()
            .unwrap_or_default();
        report.recovery = report.recovery.max(recovery);
        // The data of a successful round is removed.
        let _ = std::fs::remove_dir_all(&self.dir);
        Ok(())
    }

    /// Starts a victim that is killed, from outside or by itself.
    async fn one_death(
        &mut self,
        launch: &mut Launch,
        homes: &watch::Sender<Option<Target>>,
        kill: u64,
        report: &mut RandomKillsReport,
    ) -> CheckResult<()> {
        let by_itself = self.rng.one_in(2);
        launch.kill_at = by_itself.then(|| {
            let moment = Moment::ALL[self.rng.below(Moment::ALL.len() as u64) as usize];
            (1 + self.rng.below(CALLS_MAX), moment)
        });
        if kill.is_multiple_of(REST_EVERY) {
            launch.kill_at = None;
        }
        let Some(victim) = launch.start().await? else {
            return Ok(());
        };
        report.ready = report.ready.max(victim.ready);
        announce(homes, launch, &victim);
        if launch.kill_at.is_some() {
            return victim.await_death(PATIENCE).await;
        }
        if kill.is_multiple_of(REST_EVERY) {
            self.rest().await;
        }
        let more = Duration::from_micros(self.rng.below(LIFE_MAX_MS * 1000));
        tokio::time::sleep(more).await;
        victim.kill().await
    }

    /// Waits until every platform has completed a change.
    async fn rest(&self) {
        let now = || self.changes.iter().map(|it| it.load(Ordering::Relaxed));
        let before: Vec<u64> = now().collect();
        let begun = Instant::now();
        while now().zip(&before).any(|(now, before)| now == *before) && begun.elapsed() < REST_MAX {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

fn announce(homes: &watch::Sender<Option<Target>>, launch: &Launch, victim: &VictimProcess) {
    homes.send_replace(Some(Target {
        generation: launch.boot,
        address: victim.address,
    }));
}

/// Runs one life after another, in any mode, until the round ends.
async fn live(
    home: TargetReceiver,
    client: usize,
    ending: &AtomicBool,
    mut rng: SeededRng,
    got_on: impl Fn(),
) -> CheckResult<Vec<Platform>> {
    let mut platforms = Vec::new();
    while !ending.load(Ordering::Relaxed) {
        let name = format!("client-{client}-{}", platforms.len());
        let mut platform = Platform::new(home.clone(), name).await?;
        for (act, _) in SCRIPT {
            let pace = if rng.one_in(2) {
                RequestMode::Sync
            } else {
                RequestMode::Async
            };
            platform.perform(act, pace).await?;
            got_on();
        }
        platforms.push(platform);
    }
    Ok(platforms)
}
