//! Kills a victim once at every point where it changes its store, and checks each life to its end.
//!
//! One platform runs one instance through a whole life. The first life is killed at the first call
//! to the store, the second at the second, and so on until a life ends before its kill;
//! and all that for every moment of a call. `random_kills.rs` kills under load instead.

use crate::audit::audit;
use crate::effects::check_effects;
use crate::platform::{Platform, SCRIPT, Target};
use crate::process::{Launch, VictimProcess};
use crate::victim::Moment;
use crate::violation::{CheckResult, Violation};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Limit of calls per life; more means an endless loop.
const CALLS_MAX: u64 = 400;
/// Every third life is killed once more during recovery.
const TWICE_EVERY: u64 = 3;
/// Store call of a recovery at which a second kill happens.
const SECOND_KILL_WITHIN: u64 = 9;

/// Report of all lives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KillPointsReport {
    /// Deaths.
    pub kills: u64,
    /// Lives begun.
    pub lives: u64,
    /// Steps done.
    pub effects: u64,
    /// Steps repeated.
    pub repeats: u64,
    /// Longest time from a restart to the end of the interrupted operation.
    pub recovery: Duration,
}

impl fmt::Display for KillPointsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kills,
            lives,
            effects,
            repeats,
            recovery,
        } = self;
        write!(
            f,
            "{kills} kills in {lives} lives, {effects} effects, {repeats} repeated before their \
             memo, recovered within {} ms",
            recovery.as_millis()
        )
    }
}

/// Kills at every point, `workers` lives at a time.
///
/// # Errors
/// The first violation, with the point at which the victim was killed.
pub async fn kill_at_every_point(
    program: &Path,
    dir: &Path,
    workers: usize,
) -> CheckResult<KillPointsReport> {
    let mut report = KillPointsReport::default();
    for moment in Moment::ALL {
        let next = Arc::new(AtomicU64::new(1));
        let over = Arc::new(AtomicBool::new(false));
        let mut tasks = JoinSet::new();
        for _ in 0..workers.max(1) {
            let (next, over) = (Arc::clone(&next), Arc::clone(&over));
            let (program, dir) = (program.to_owned(), dir.join(moment.word()));
            tasks.spawn(async move { worker(&program, &dir, moment, &next, &over).await });
        }
        while let Some(joined) = tasks.join_next().await {
            let lives = joined.map_err(|error| Violation::new(error.to_string()))??;
            lives.iter().for_each(|life| report.add(life));
        }
    }
    Ok(report)
}

impl KillPointsReport {
    fn add(&mut self, life: &Self) {
        self.kills += life.kills;
        self.lives += life.lives;
        self.effects += life.effects;
        self.repeats += life.repeats;
        self.recovery = self.recovery.max(life.recovery);
    }
}

async fn worker(
    program: &Path,
    dir: &Path,
    moment: Moment,
    next: &AtomicU64,
    over: &AtomicBool,
) -> CheckResult<Vec<KillPointsReport>> {
    let mut lives = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let place = format!("killed {} call {number}", moment.word());
        if number > CALLS_MAX {
            return Err(Violation::new("a life has no end").at(&place));
        }
        let dir = dir.join(number.to_string());
        let life = one_life(program, &dir, number, moment)
            .await
            .map_err(|it| it.at(&place))?;
        if life.kills == 0 {
            over.store(true, Ordering::Relaxed);
        }
        lives.push(life);
        // The data of a successful life is removed.
        let _ = std::fs::remove_dir_all(dir);
    }
    Ok(lives)
}

async fn one_life(
    program: &Path,
    dir: &Path,
    number: u64,
    moment: Moment,
) -> CheckResult<KillPointsReport> {
    std::fs::create_dir_all(dir).map_err(|error| Violation::new(error.to_string()))?;
    let mut launch = Launch::new(program, dir);
    launch.kill_at = Some((number, moment));
    live_through(launch, |launch, kills| {
        launch.kill_at = second_kill(number, moment, kills);
    })
    .await
}

/// Runs one whole life through all deaths of its victims, and checks it at the end. `after_death`
/// prepares the next start; its argument is the number of deaths so far.
///
/// # Errors
/// The first violation.
pub async fn live_through(
    mut launch: Launch,
    mut after_death: impl FnMut(&mut Launch, u64),
) -> CheckResult<KillPointsReport> {
    let (homes, home) = watch::channel(None);
    let mut life = tokio::spawn(async move {
        let mut platform = Platform::new(home, "life".to_owned()).await?;
        for (act, pace) in SCRIPT {
            platform.perform(act, pace).await?;
        }
        CheckResult::Ok(platform)
    });
    let mut kills = 0;
    let (victim, ended) = loop {
        if let Some(mut victim) = launch.start().await? {
            let target = Target {
                generation: launch.boot,
                address: victim.address,
            };
            homes.send_replace(Some(target));
            tokio::select! {
                ended = &mut life => break (victim, ended),
                died = victim.death() => died?,
            }
        }
        kills += 1;
        after_death(&mut launch, kills);
    };
    let platform = ended.map_err(|error| Violation::new(error.to_string()))??;
    end(victim, &launch).await?;
    let effects = check_effects(&launch.ledger, 1)?;
    let recovery = platform.recovery;
    audit(&launch.db, &[platform], &effects).await?;
    let (effects, repeats) = (effects.effects, effects.repeats);
    Ok(KillPointsReport {
        kills,
        lives: 1,
        effects,
        repeats,
        recovery,
    })
}

fn second_kill(number: u64, moment: Moment, kills: u64) -> Option<(u64, Moment)> {
    let second = kills == 1 && number.is_multiple_of(TWICE_EVERY);
    second.then_some((number % SECOND_KILL_WITHIN + 1, moment))
}

/// Ends a life. A victim with a pending kill may die while it drains; that is not an error.
async fn end(victim: VictimProcess, launch: &Launch) -> CheckResult<()> {
    if launch.may_die() {
        victim.kill().await
    } else {
        victim.stop().await
    }
}
