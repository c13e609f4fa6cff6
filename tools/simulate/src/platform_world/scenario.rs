//! The scenario of a platform seed: size, times, faults, and how often the broker fails. Pure.

use crate::scenario::FaultKind;
use std::fmt;
use std::time::Duration;
use sutler_servers::SeededRng;

/// Choices that hold for a whole run.
#[derive(Clone, Debug)]
pub(crate) struct PlatformScenario {
    pub replicas: usize,
    pub users: usize,
    pub instances: usize,
    /// Length of the part with faults.
    pub chaos: Duration,
    pub lease: Duration,
    /// How long a process waits for its store before it gives a call up.
    pub call_timeout: Duration,
    /// How long a user waits for an answer.
    pub user_timeout: Duration,
    /// Longest pause of a user between two commands.
    pub user_pause: Duration,
    /// How long the platform waits for an answer of the broker.
    pub answer_within: Duration,
    /// Time for all attempts of an intent.
    pub send_within: Duration,
    /// Time for all polls of an operation.
    pub poll_within: Duration,
    /// Drift of the store's clock, in parts per thousand.
    pub drift: i64,
    /// Percentage of polls of engine tasks that are delayed.
    pub delayed_polls: u64,
    pub faults: Vec<FaultKind>,
    /// Mean pause between two faults; `None`: no faults.
    pub fault_pause: Option<Duration>,
    pub broker: BrokerErrorRates,
    /// Mean pause between two outages of the broker; `None`: there are none.
    pub outage_pause: Option<Duration>,
    /// Mean pause between two changes of its catalog; `None`: it stays.
    pub catalog_pause: Option<Duration>,
    pub habits: UserHabits,
    pub options: ChosenOptions,
}

/// What users do besides the ordinary, in percent of their commands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UserHabits {
    /// They choose the ids that the broker knows.
    pub chosen_ids: u64,
    /// They keep parameters in secrets.
    pub secrets: u64,
    /// They change annotations, which the context of requests contains.
    pub annotations: u64,
}

/// How troublesome the broker and the way to it are, in percent of its requests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BrokerErrorRates {
    /// There is no connection.
    pub refused_connections: u64,
    /// Nothing arrives, or the answer is lost.
    pub lost: u64,
    /// The request arrives long after it was given up, perhaps a second time.
    pub late: u64,
    /// It is done twice at once.
    pub twice: u64,
    /// It is refused.
    pub rejections: u64,
    /// It fails, and may have been done.
    pub failures: u64,
    /// The broker has no time for it.
    pub busy: u64,
    /// It is done in the background.
    pub accepted: u64,
    /// What is done in the background fails.
    pub failed_operations: u64,
    /// Longest work in the background, in polls.
    pub polls: u64,
}

/// Choices of the broker's operator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChosenOptions {
    pub auto_retries: u32,
    pub delete_waits_for_update: bool,
    pub manual_orphan_cleanup: bool,
    pub serialize: bool,
    /// Whether instances and bindings can be fetched.
    pub retrievable: bool,
}

fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

impl PlatformScenario {
    /// The scenario of a seed.
    pub(crate) fn of(rng: &mut SeededRng) -> Self {
        let faults = [
            FaultKind::Partition,
            FaultKind::Slow,
            FaultKind::Loss,
            FaultKind::Kill,
            FaultKind::Kill,
            FaultKind::Restart,
            FaultKind::StoreStall,
            FaultKind::HangingRenewals,
        ];
        let faults = match rng.below(3) {
            0 => vec![*rng.pick(&faults)],
            _ => faults.to_vec(),
        };
        Self {
            replicas: *rng.pick(&[1, 2, 2, 3]),
            users: *rng.pick(&[1, 2, 3]),
            instances: *rng.pick(&[1, 1, 2]),
            chaos: match rng.below(6) {
                // The ledger's first DELETE comes after about forty seconds.
                0 => seconds(150 + rng.below(300)),
                _ => seconds(30 + rng.below(60)),
            },
            lease: seconds(*rng.pick(&[5, 5, 10])),
            call_timeout: seconds(*rng.pick(&[2, 5, 8])),
            user_timeout: seconds(*rng.pick(&[2, 10, 30])),
            user_pause: seconds(*rng.pick(&[1, 2, 5, 20])),
            answer_within: seconds(*rng.pick(&[3, 10])),
            send_within: seconds(*rng.pick(&[15, 60, 600])),
            poll_within: seconds(*rng.pick(&[20, 60, 600])),
            drift: i64::try_from(rng.below(11)).unwrap_or(0) - 5,
            delayed_polls: *rng.pick(&[0, 2, 20]),
            faults,
            fault_pause: match rng.below(8) {
                0 | 1 => None,
                2..5 => Some(seconds(4)),
                _ => Some(seconds(12)),
            },
            broker: BrokerErrorRates::of(rng),
            outage_pause: rng.one_in(3).then(|| seconds(30)),
            catalog_pause: rng.one_in(4).then(|| seconds(15)),
            habits: UserHabits {
                chosen_ids: *rng.pick(&[0, 0, 50]),
                secrets: *rng.pick(&[0, 0, 30]),
                annotations: *rng.pick(&[0, 10]),
            },
            options: ChosenOptions {
                auto_retries: *rng.pick(&[0, 1, 3]),
                delete_waits_for_update: rng.one_in(4),
                manual_orphan_cleanup: rng.one_in(8),
                serialize: rng.one_in(4),
                retrievable: !rng.one_in(4),
            },
        }
    }
}

impl BrokerErrorRates {
    fn of(rng: &mut SeededRng) -> Self {
        Self {
            refused_connections: *rng.pick(&[0, 0, 5]),
            lost: *rng.pick(&[0, 5, 20]),
            late: *rng.pick(&[0, 0, 5, 20]),
            twice: *rng.pick(&[0, 0, 5]),
            rejections: *rng.pick(&[0, 5, 15]),
            failures: *rng.pick(&[0, 5, 15]),
            busy: *rng.pick(&[0, 5, 15]),
            accepted: *rng.pick(&[0, 30, 80]),
            failed_operations: *rng.pick(&[0, 10, 40]),
            polls: *rng.pick(&[0, 2, 6]),
        }
    }

    /// A broker that does what it is asked for.
    pub(crate) fn calm(self) -> Self {
        Self {
            accepted: self.accepted,
            polls: self.polls.min(1),
            ..Self::default()
        }
    }
}

impl fmt::Display for PlatformScenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} replicas, {} users, {} instances, {:?} with faults {:?} every {:?}, lease {:?}, calls {:?}, answers {:?}, \
             sends {:?}, polls {:?}, drift {}, delayed polls {} %, {:?}, outages every {:?}, catalogs every {:?}, {:?}, {:?}",
            self.replicas,
            self.users,
            self.instances,
            self.chaos,
            self.faults,
            self.fault_pause,
            self.lease,
            self.call_timeout,
            self.answer_within,
            self.send_within,
            self.poll_within,
            self.drift,
            self.delayed_polls,
            self.broker,
            self.outage_pause,
            self.catalog_pause,
            self.habits,
            self.options
        )
    }
}
