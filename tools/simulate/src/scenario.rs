//! The scenario of a seed: size, times and kinds of faults of one simulated run. Pure.
//!
//! Each seed draws its own sizes and times; some draw a single kind of fault.

use std::fmt;
use std::time::Duration;
use sutler_servers::SeededRng;

/// Choices that hold for a whole run.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub replicas: usize,
    pub clients: usize,
    /// Length of the part with faults.
    pub chaos: Duration,
    pub lease: Duration,
    /// How long a process waits for its store before it gives a call up.
    pub call_timeout: Duration,
    /// How long a client waits for an answer.
    pub client_timeout: Duration,
    pub sync_wait: Duration,
    pub drain: Duration,
    /// Longest call of a hook.
    pub hook: Duration,
    /// Deadline of a verb.
    pub deadline: Duration,
    pub workers: usize,
    /// Drift of the store's clock, in parts per thousand.
    pub drift: i64,
    /// Skew of the time of day.
    pub skew: Duration,
    pub delayed_polls: u64,
    /// Whether operators send commands.
    pub operators: bool,
    /// Whether operators only purge instances, and the process that is asked dies, often in the middle of the purge.
    pub purge_kills: bool,
    /// Whether an instance exists whose hook ends its process.
    pub crashing_hook: bool,
    /// Mean pause between two faults; `None`: no faults.
    pub fault_pause: Option<Duration>,
    pub faults: Vec<FaultKind>,
    /// Percentage of hooks that fail.
    pub failing_hooks: u64,
    /// Whether clean-up runs after the end.
    pub cleanup: bool,
    /// Whether a second platform changes the first instance.
    pub rival: bool,
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// A link between a replica and the store carries nothing for a while.
    Partition,
    /// Calls take seconds.
    Slow,
    /// Requests and answers get lost.
    Loss,
    /// A process dies and comes back.
    Kill,
    /// A process is stopped with notice and starts again.
    Restart,
    /// The store answers no replica for a while.
    StoreStall,
    /// Renewals of a replica hang for a while; its other calls do not.
    HangingRenewals,
    /// The clock of the store jumps forward.
    ClockJump,
}

impl FaultKind {
    /// Faults that also occur alone in mixed scenarios.
    const ALONE: [Self; 7] = [
        Self::Partition,
        Self::Slow,
        Self::Loss,
        Self::Kill,
        Self::Restart,
        Self::StoreStall,
        Self::HangingRenewals,
    ];
}

fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

impl Scenario {
    /// The scenario of a seed: five of twelve mix everything, the others look for one family of faults.
    pub(crate) fn of(rng: &mut SeededRng) -> Self {
        let mut scenario = Self::mixed(rng);
        match rng.below(12) {
            0..5 => {}
            5 => scenario.late_answers(rng),
            6 => scenario.partitions(rng),
            7 => scenario.restarts(rng),
            8 => scenario.purges(rng),
            9 => scenario.ended_runs(rng),
            10 => scenario.interrupted_purges(),
            _ => scenario.crash_loops(rng),
        }
        scenario.deadline = scenario.hook * 2 + seconds(10);
        scenario
    }

    fn mixed(rng: &mut SeededRng) -> Self {
        let faults = if rng.one_in(3) {
            vec![*rng.pick(&FaultKind::ALONE)]
        } else {
            let mut faults = FaultKind::ALONE.to_vec();
            faults.push(FaultKind::ClockJump);
            faults.retain(|kind| {
                rng.below(100)
                    < if *kind == FaultKind::ClockJump {
                        15
                    } else {
                        60
                    }
            });
            faults
        };
        Self {
            replicas: *rng.pick(&[1, 2, 2, 3]),
            clients: *rng.pick(&[1, 2, 3]),
            chaos: seconds(60 + rng.below(100)),
            lease: seconds(*rng.pick(&[5, 5, 10, 30])),
            call_timeout: seconds(*rng.pick(&[2, 5, 8, 12])),
            client_timeout: seconds(*rng.pick(&[2, 10, 30, 60])),
            sync_wait: seconds(*rng.pick(&[3, 20, 50])),
            drain: Duration::from_millis(*rng.pick(&[50, 500, 4_000])),
            hook: seconds(*rng.pick(&[1, 4, 12, 25])),
            deadline: Duration::ZERO,
            workers: *rng.pick(&[1, 4, 16]),
            drift: i64::try_from(rng.below(11)).unwrap_or(0) - 5,
            skew: seconds(*rng.pick(&[0, 5, 3600])),
            delayed_polls: *rng.pick(&[0, 2, 20]),
            operators: rng.below(100) < 45,
            purge_kills: false,
            crashing_hook: rng.one_in(12),
            fault_pause: match rng.below(8) {
                0 => None,
                1..4 => Some(seconds(4)),
                _ => Some(seconds(15)),
            },
            faults,
            failing_hooks: *rng.pick(&[0, 5, 25]),
            cleanup: rng.one_in(20),
            rival: rng.one_in(4),
        }
    }

    /// Answers get lost while leases are renewed.
    fn late_answers(&mut self, rng: &mut SeededRng) {
        self.faults = vec![FaultKind::Loss];
        self.fault_pause = Some(seconds(5));
        self.lease = seconds(5);
        self.call_timeout = seconds(*rng.pick(&[4, 5, 8]));
        self.client_timeout = seconds(60);
        self.sync_wait = seconds(50);
        self.hook = seconds(*rng.pick(&[25, 50]));
        self.clients = 3;
        self.workers = 16;
        (self.operators, self.crashing_hook) = (false, false);
    }

    /// Processes lose the store for about a lease.
    fn partitions(&mut self, rng: &mut SeededRng) {
        self.faults = vec![FaultKind::Partition];
        self.fault_pause = Some(seconds(8));
        self.lease = seconds(*rng.pick(&[5, 10]));
        self.hook = seconds(*rng.pick(&[12, 25]));
        self.client_timeout = seconds(60);
        self.replicas = 3;
        self.clients = 3;
        (self.operators, self.crashing_hook) = (false, false);
    }

    /// Processes are stopped with notice while hooks run.
    fn restarts(&mut self, rng: &mut SeededRng) {
        self.faults = vec![FaultKind::Restart];
        self.fault_pause = Some(seconds(3));
        self.drain = Duration::from_millis(50);
        self.delayed_polls = 40;
        self.hook = seconds(*rng.pick(&[12, 25]));
        self.workers = 16;
        self.replicas = 3;
        self.clients = 3;
        (self.operators, self.crashing_hook) = (false, false);
    }

    /// Operators purge while platforms create again, over slow links.
    fn purges(&mut self, rng: &mut SeededRng) {
        self.faults = vec![FaultKind::Slow];
        self.fault_pause = Some(seconds(6));
        self.hook = seconds(*rng.pick(&[1, 4]));
        self.client_timeout = seconds(30);
        self.call_timeout = seconds(12);
        (self.operators, self.crashing_hook) = (true, false);
    }

    /// Processes die in the middle of purges, and platforms use what is left.
    fn interrupted_purges(&mut self) {
        self.fault_pause = None;
        self.hook = seconds(1);
        self.failing_hooks = 0;
        self.replicas = 3;
        self.clients = 3;
        self.workers = 16;
        self.client_timeout = seconds(30);
        self.purge_kills = true;
        (self.operators, self.crashing_hook) = (true, false);
    }

    /// Operators end operations whose hooks run in other replicas.
    fn ended_runs(&mut self, rng: &mut SeededRng) {
        self.fault_pause = None;
        self.lease = seconds(5);
        self.hook = seconds(*rng.pick(&[50, 80]));
        self.replicas = 3;
        self.clients = 3;
        self.workers = 16;
        self.client_timeout = seconds(60);
        (self.operators, self.crashing_hook) = (true, false);
    }

    /// A hook ends its process again and again, and nothing else does.
    fn crash_loops(&mut self, rng: &mut SeededRng) {
        self.fault_pause = None;
        self.lease = seconds(5);
        self.hook = seconds(*rng.pick(&[12, 25]));
        self.replicas = *rng.pick(&[1, 2]);
        self.clients = 3;
        self.workers = 16;
        (self.operators, self.crashing_hook) = (false, true);
    }
}

impl Scenario {
    /// Whether only hooks end processes and no lease is lost: then no other operation may be given up.
    pub(crate) fn only_hooks_kill(&self) -> bool {
        (self.fault_pause.is_none() || self.faults.is_empty()) && !self.purge_kills
    }

    /// Whether the clock of the store may jump.
    pub(crate) fn clock_jumps(&self) -> bool {
        self.faults.contains(&FaultKind::ClockJump)
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} replicas, {} clients, lease {:?}, calls given up after {:?}, hooks up to {:?} within {:?}, \
             clients wait {:?}, sync {:?}, drain {:?}, drift {}‰, polls delayed {} %",
            self.replicas,
            self.clients,
            self.lease,
            self.call_timeout,
            self.hook,
            self.deadline,
            self.client_timeout,
            self.sync_wait,
            self.drain,
            self.drift,
            self.delayed_polls
        )?;
        write!(f, ", faults {:?} every {:?}", self.faults, self.fault_pause)?;
        if self.operators {
            write!(f, ", operators")?;
        }
        if self.purge_kills {
            write!(f, ", processes that die during purges")?;
        }
        if self.crashing_hook {
            write!(f, ", a hook that ends its process")?;
        }
        if self.rival {
            write!(f, ", two platforms change i0")?;
        }
        Ok(())
    }
}
