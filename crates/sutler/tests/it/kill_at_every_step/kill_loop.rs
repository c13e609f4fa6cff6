//! Who is killed when: at every step once, and never so often that a broker would give an operation up.

use super::syscall_steps::Step;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Later ones of the same kind are not told apart: how often progress is noted depends on the machine.
const SAME_MAX: u32 = 8;
/// How often a step may be missed because whoever was to be killed was too quick.
const MISSES_MAX: u32 = 4;

/// Who is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Victim {
    Broker,
    Supervisor,
    Both,
}

impl Victim {
    /// A broker gives up what is taken over five times without progress, and what is lost more often.
    fn kills_of_one_operation(self) -> u32 {
        match self {
            Self::Broker => 3,
            Self::Supervisor | Self::Both => 1,
        }
    }
}

/// Where somebody is killed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KillPoint {
    action: &'static str,
    /// The broker was started again during this operation, and that is told apart.
    recovering: bool,
    label: String,
    /// The how-manieth of its kind.
    nth: u32,
}

/// The points at which somebody was killed, in all lives.
#[derive(Debug, Default)]
pub(super) struct Coverage(Mutex<CoveredPoints>);

#[derive(Debug, Default)]
struct CoveredPoints {
    points: BTreeSet<KillPoint>,
    misses: BTreeMap<KillPoint, u32>,
}

impl Coverage {
    fn lock(&self) -> MutexGuard<'_, CoveredPoints> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody was killed there yet; from now on somebody was.
    fn claim(&self, point: &KillPoint) -> bool {
        self.lock().points.insert(point.clone())
    }

    /// The kill came too late: somebody else must try again.
    fn missed(&self, point: &KillPoint) {
        let mut covered = self.lock();
        let misses = covered.misses.entry(point.clone()).or_default();
        *misses += 1;
        if *misses <= MISSES_MAX {
            covered.points.remove(point);
        }
    }

    /// At how many points somebody was killed during an action.
    pub(super) fn kills_during(&self, action: &str) -> usize {
        let covered = self.lock();
        covered
            .points
            .iter()
            .filter(|it| it.action == action)
            .count()
    }

    pub(super) fn report(&self, victim: Victim) -> String {
        let covered = self.lock();
        let misses: u32 = covered.misses.values().sum();
        let points = covered.points.len();
        if is_thorough() {
            for point in &covered.points {
                sutler_servers::print_line(&format!("{point:?}"));
            }
        }
        format!("{victim:?} killed at {points} steps; {misses} kills came late and were repeated")
    }
}

/// One hunter follows one life.
#[derive(Debug)]
pub(super) struct KillLoop {
    victim: Victim,
    /// Also during recoveries, and where nothing can differ from the step before.
    thorough: bool,
    /// Whether questions to an engine are steps.
    pub(super) traces_engine: bool,
    coverage: Arc<Coverage>,
    now: Mutex<CurrentAction>,
}

#[derive(Debug, Default)]
struct CurrentAction {
    action: Option<&'static str>,
    recovering: bool,
    kills: u32,
    counts: BTreeMap<String, u32>,
    /// By handles that never mean another process.
    broker: Option<OwnedFd>,
    supervisor: Option<(i32, OwnedFd)>,
}

/// A point at which somebody was killed.
#[derive(Debug)]
pub(super) struct KilledAt {
    point: KillPoint,
    /// The thread that must not take another step.
    pub(super) last_step_of: Option<i32>,
}

impl KillLoop {
    pub(super) fn new(victim: Victim, coverage: Arc<Coverage>) -> Self {
        Self {
            victim,
            thorough: is_thorough(),
            traces_engine: false,
            coverage,
            now: Mutex::default(),
        }
    }

    /// With an engine that is asked for containers.
    pub(super) fn with_engine(mut self) -> Self {
        self.traces_engine = true;
        self
    }

    fn lock(&self) -> MutexGuard<'_, CurrentAction> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on steps belong to this action.
    pub(super) fn begin(&self, action: &'static str) {
        let mut now = self.lock();
        *now = CurrentAction {
            action: Some(action),
            broker: now.broker.take(),
            ..CurrentAction::default()
        };
    }

    /// The action is over; how often somebody was killed.
    pub(super) fn end(&self) -> u32 {
        let mut now = self.lock();
        now.action = None;
        now.kills
    }

    /// A broker was started.
    pub(super) fn broker_started(&self, pid: u32) {
        let mut now = self.lock();
        now.recovering = now.kills > 0;
        now.counts.clear();
        now.broker = handle(pid.cast_signed());
    }

    /// Somebody came to a step: if nobody was killed there before, somebody is now.
    pub(super) fn at(&self, step: &Step) -> Option<KilledAt> {
        let mut now = self.lock();
        let action = now.action?;
        if step.label == "start supervisor" {
            now.supervisor = handle(step.thread).map(|handle| (step.thread, handle));
        }
        let count = now.counts.entry(step.label.clone()).or_default();
        *count += 1;
        let nth = *count;
        let point = KillPoint {
            action,
            recovering: now.recovering && self.thorough,
            label: step.label.clone(),
            nth,
        };
        if !self.wants(&now, &point) || !self.coverage.claim(&point) {
            return None;
        }
        now.kills += 1;
        let by_supervisor = now
            .supervisor
            .as_ref()
            .is_some_and(|it| it.0 == step.thread);
        if let (Victim::Supervisor | Victim::Both, Some((_, handle))) =
            (self.victim, now.supervisor.take())
        {
            kill(&handle);
        }
        if let (Victim::Broker | Victim::Both, Some(handle)) = (self.victim, now.broker.take()) {
            kill(&handle);
        }
        let watched = match self.victim {
            Victim::Broker => !is_of_the_run(&step.label) && !step.label.starts_with("ask"),
            Victim::Supervisor | Victim::Both => by_supervisor,
        };
        Some(KilledAt {
            point,
            last_step_of: watched.then_some(step.thread),
        })
    }

    fn wants(&self, now: &CurrentAction, point: &KillPoint) -> bool {
        if now.kills >= self.victim.kills_of_one_operation() || point.nth > SAME_MAX {
            return false;
        }
        // What a broker commits when it is started again is another thing.
        let other = now.recovering && point.label == "commit";
        if !self.thorough && (other || is_like_its_neighbour(point)) {
            return false;
        }
        match self.victim {
            Victim::Broker => now.broker.is_some(),
            Victim::Supervisor => is_of_the_run(&point.label) && now.supervisor.is_some(),
            Victim::Both => {
                is_of_the_run(&point.label) && now.supervisor.is_some() && now.broker.is_some()
            }
        }
    }

    /// The prey took another step before it died.
    pub(super) fn missed(&self, killed: &KilledAt) {
        self.coverage.missed(&killed.point);
    }
}

fn is_thorough() -> bool {
    std::env::var("SUTLER_TEST_KILLS").is_ok_and(|it| it == "all")
}

/// A kill takes nothing from files that are written: before and after a sync of one they are the same, and
/// so is what is being removed, file by file. Between two questions to an engine nothing is changed.
fn is_like_its_neighbour(point: &KillPoint) -> bool {
    let label = point.label.as_str();
    let again = label.starts_with("remove") || label.starts_with("ask");
    (again && point.nth > 1) || label.starts_with("sync") || label == "ask engine to tell"
}

/// Steps of a supervisor and of what it runs.
fn is_of_the_run(label: &str) -> bool {
    label.contains("RUN/") || label == "sync RUNS" || label.starts_with("start")
}

fn handle(pid: i32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()
}

fn kill(handle: &OwnedFd) {
    // Whoever is gone already need not be killed.
    let _ = pidfd_send_signal(handle, Signal::KILL);
}
