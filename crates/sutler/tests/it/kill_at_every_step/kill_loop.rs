//! Decides when a process is killed: once at every step, but not so often that a broker gives up an
//! operation.

use super::syscall_steps::Step;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Later steps with the same label are not distinguished: the number of progress writes depends on the
/// machine.
const SAME_MAX: u32 = 8;
/// Number of times a step may be missed because the process was faster than the kill.
const MISSES_MAX: u32 = 4;

/// The process that is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Victim {
    Broker,
    Supervisor,
    Both,
}

impl Victim {
    /// A broker gives up an operation that is taken over five times without progress, or lost more often.
    fn kills_of_one_operation(self) -> u32 {
        match self {
            Self::Broker => 3,
            Self::Supervisor | Self::Both => 1,
        }
    }
}

/// A step at which a process is killed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KillPoint {
    action: &'static str,
    /// The broker was restarted during this operation, and recoveries are distinguished.
    recovering: bool,
    label: String,
    /// Number of this step among those with the same label.
    nth: u32,
}

/// The points with a kill, in all lifecycles.
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

    /// Marks the point as covered; returns whether it was not covered before.
    fn claim(&self, point: &KillPoint) -> bool {
        self.lock().points.insert(point.clone())
    }

    /// The kill came too late: the point must be tried again.
    fn missed(&self, point: &KillPoint) {
        let mut covered = self.lock();
        let misses = covered.misses.entry(point.clone()).or_default();
        *misses += 1;
        if *misses <= MISSES_MAX {
            covered.points.remove(point);
        }
    }

    /// Number of points with a kill during an action.
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

/// Kills during one lifecycle.
#[derive(Debug)]
pub(super) struct KillLoop {
    victim: Victim,
    /// Also kills during recoveries, and at steps that cannot differ from the previous one.
    thorough: bool,
    /// Whether requests to an engine are steps.
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
    /// Process handles, which never refer to another process.
    broker: Option<OwnedFd>,
    supervisor: Option<(i32, OwnedFd)>,
}

/// A point at which a process was killed.
#[derive(Debug)]
pub(super) struct KilledAt {
    point: KillPoint,
    /// Thread that must not take another step.
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

    /// Also traces requests to a container engine.
    pub(super) fn with_engine(mut self) -> Self {
        self.traces_engine = true;
        self
    }

    fn lock(&self) -> MutexGuard<'_, CurrentAction> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Assigns the following steps to this action.
    pub(super) fn begin(&self, action: &'static str) {
        let mut now = self.lock();
        *now = CurrentAction {
            action: Some(action),
            broker: now.broker.take(),
            ..CurrentAction::default()
        };
    }

    /// Ends the action; returns the number of kills.
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

    /// Handles a step: kills the process if there was no kill at this point before.
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
        // Commits after a restart are other commits.
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

    /// The process took another step before it was killed.
    pub(super) fn missed(&self, killed: &KilledAt) {
        self.coverage.missed(&killed.point);
    }
}

fn is_thorough() -> bool {
    std::env::var("SUTLER_TEST_KILLS").is_ok_and(|it| it == "all")
}

/// A kill does not remove written data: a file is the same before and after its sync, and so is a folder that
/// is removed file by file. Between two requests to an engine nothing changes.
fn is_like_its_neighbour(point: &KillPoint) -> bool {
    let label = point.label.as_str();
    let again = label.starts_with("remove") || label.starts_with("ask");
    (again && point.nth > 1) || label.starts_with("sync") || label == "ask engine to tell"
}

/// Steps of a supervisor and of its processes.
fn is_of_the_run(label: &str) -> bool {
    label.contains("RUN/") || label == "sync RUNS" || label.starts_with("start")
}

fn handle(pid: i32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()
}

fn kill(handle: &OwnedFd) {
    // The process may have ended already.
    let _ = pidfd_send_signal(handle, Signal::KILL);
}
