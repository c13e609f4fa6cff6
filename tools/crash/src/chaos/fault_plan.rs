//! The plan of faults and their times, derived from a seed only.
//!
//! Pure and printable: the same seed gives the same faults at the same times.
//! Injecting them is not here.

use std::fmt;
use sutler_servers::SeededRng;

/// How a replica is isolated from the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkCut {
    /// Connections are closed, new ones too.
    Off,
    /// Connections stay open, and nothing is forwarded.
    Silence,
    /// The next response of each connection is dropped, then it is reset: commits with a lost
    /// response.
    Answers,
    /// Half of the next request of each connection is forwarded, then it is reset.
    Requests,
}

/// A fault and its duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// SIGKILL, and a restart afterwards.
    Kill {
        /// Replica.
        replica: usize,
        /// Milliseconds until it is started again.
        down: u64,
    },
    /// SIGSTOP, and SIGCONT afterwards.
    Pause {
        /// Replica.
        replica: usize,
        /// Duration of the pause, in milliseconds.
        down: u64,
    },
    /// The link to the database is cut.
    Cut {
        /// Replica.
        replica: usize,
        /// Kind of cut.
        cut: LinkCut,
        /// Milliseconds until it is repaired.
        down: u64,
    },
    /// The database is killed, and started again.
    Restart {
        /// Duration of the outage, in milliseconds.
        down: u64,
    },
}

/// A fault and its time, in milliseconds from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedFault {
    /// Time.
    pub at: u64,
    /// Fault.
    pub fault: Fault,
}

impl fmt::Display for PlannedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>6} ms: ", self.at)?;
        match self.fault {
            Fault::Kill { replica, down } => write!(f, "kill {replica}, start after {down} ms"),
            Fault::Pause { replica, down } => write!(f, "pause {replica} for {down} ms"),
            Fault::Cut { replica, cut, down } => {
                write!(f, "cut {replica} ({cut:?}) for {down} ms")
            }
            Fault::Restart { down } => write!(f, "stop the database, start after {down} ms"),
        }
    }
}

impl Fault {
    /// Duration in milliseconds.
    pub fn down(self) -> u64 {
        match self {
            Self::Kill { down, .. }
            | Self::Pause { down, .. }
            | Self::Cut { down, .. }
            | Self::Restart { down } => down,
        }
    }

    /// Replica that the fault hits; `None`: all.
    pub fn replica(self) -> Option<usize> {
        match self {
            Self::Kill { replica, .. }
            | Self::Pause { replica, .. }
            | Self::Cut { replica, .. } => Some(replica),
            Self::Restart { .. } => None,
        }
    }
}

/// Parameters of a plan.
#[derive(Clone, Copy, Debug)]
pub struct FaultPlan {
    /// The same seed gives the same plan.
    pub seed: u64,
    /// Duration of the faults, in milliseconds. All faults are repaired by then.
    pub length: u64,
    /// Number of replicas.
    pub replicas: usize,
    /// Duration of a lease, in milliseconds: pauses are longer.
    pub lease: u64,
}

/// Pauses exceed a lease by this, in milliseconds, so that it has certainly expired.
const BEYOND_LEASE: u64 = 1_500;
/// Minimum time between two faults of one target, in milliseconds.
const AT_REST: u64 = 200;
/// Kinds of faults; each occurs once before any is repeated.
const KINDS: usize = 7;

impl FaultPlan {
    /// The faults, in order of time. No replica is hit while it is still down.
    pub fn faults(&self) -> Vec<PlannedFault> {
        let mut rng = SeededRng::new(self.seed);
        let mut free = vec![0_u64; self.replicas];
        let mut database_free = 0;
        let mut planned = Vec::new();
        let mut bag: Vec<usize> = Vec::new();
        let mut at = 300;
        while at < self.length {
            if bag.is_empty() {
                bag = (0..KINDS).collect();
            }
            let kind = bag.swap_remove(rng.below(bag.len() as u64) as usize);
            let replica = rng.below(self.replicas as u64) as usize;
            let fault = self.fault(kind, replica, &mut rng);
            let until = at + fault.down();
            let slot = match fault.replica() {
                Some(replica) => &mut free[replica],
                None => &mut database_free,
            };
            if *slot > at {
                bag.push(kind);
            } else if until <= self.length {
                *slot = until + AT_REST;
                planned.push(PlannedFault { at, fault });
            }
            at += 150 + rng.below(650);
        }
        planned
    }

    fn fault(&self, kind: usize, replica: usize, rng: &mut SeededRng) -> Fault {
        let cut = |cut, down| Fault::Cut { replica, cut, down };
        match kind {
            0 => Fault::Kill {
                replica,
                down: 50 + rng.below(900),
            },
            1 => Fault::Pause {
                replica,
                down: self.lease + BEYOND_LEASE + rng.below(800),
            },
            2 => cut(LinkCut::Off, 200 + rng.below(1_500)),
            3 => cut(LinkCut::Silence, 400 + rng.below(self.lease + 1_000)),
            4 => cut(LinkCut::Answers, 100 + rng.below(200)),
            5 => cut(LinkCut::Requests, 100 + rng.below(200)),
            _ => Fault::Restart {
                down: 50 + rng.below(500),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Fault, FaultPlan};
    use std::collections::BTreeSet;

    fn plan(seed: u64) -> FaultPlan {
        FaultPlan {
            seed,
            length: 22_000,
            replicas: 3,
            lease: 2_000,
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_faults() {
        assert_eq!(plan(7).faults(), plan(7).faults());
        assert_ne!(plan(7).faults(), plan(8).faults());
    }

    #[test]
    fn every_kind_of_fault_occurs_and_is_repaired() {
        for seed in 0..200 {
            let faults = plan(seed).faults();
            let sort = |fault: Fault| match fault {
                Fault::Kill { .. } => "kill".to_owned(),
                Fault::Pause { .. } => "pause".to_owned(),
                Fault::Cut { cut, .. } => format!("{cut:?}"),
                Fault::Restart { .. } => "restart".to_owned(),
            };
            let sorts: BTreeSet<String> = faults.iter().map(|it| sort(it.fault)).collect();
            assert_eq!(sorts.len(), super::KINDS, "seed {seed}: {sorts:?}");
            assert!(faults.iter().all(|it| it.at + it.fault.down() <= 22_000));
        }
    }

    #[test]
    fn no_replica_is_hit_while_it_is_down() {
        for seed in 0..200 {
            let faults = plan(seed).faults();
            for replica in 0..3 {
                let hits = faults
                    .iter()
                    .filter(|it| it.fault.replica() == Some(replica));
                let hits: Vec<_> = hits.collect();
                for pair in hits.windows(2) {
                    assert!(pair[0].at + pair[0].fault.down() <= pair[1].at, "{seed}");
                }
            }
        }
    }
}
