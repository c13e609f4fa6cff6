//! Time of the servers, derived from the `Date` header of their responses.
//!
//! etcd has no time inside a transaction, but every response has a time in whole seconds.
//! A server that reports 12:00:05 is at 12:00:05 or later when the response arrives: each response is a
//! lower bound, and the best bound improves with every second that begins between two responses.
//! Replicas share the best bound they know, so replicas whose own clocks disagree agree on this
//! one. Leases do not use it: they expire by etcd's clock.
//!
//! One member may be wrong, and a time that is too late would make everything look old, in all replicas. So a
//! time that is far from the known one is believed only if a second clock confirms it: another member's, or this
//! machine's; or if the same member repeats it for a while, because it may be the only one. A shared bound never
//! moves the clock far without this machine's own clock. When the clock turns out to be far ahead, it goes back.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use sutler_journal::StoreTime;

/// `Date` has whole seconds: the server may be almost this much later.
const STEP: Duration = Duration::from_secs(1);
/// Clocks that differ by more contradict each other.
const APART: Duration = Duration::from_secs(60);
/// Time after which a member that contradicts the known time is believed without a second clock.
const BELIEVED_AFTER: Duration = Duration::from_secs(600);
/// Maximum drift between the clocks of two machines: a second in three hours.
const DRIFT_PER_MILLION: u32 = 100;

/// A clock that follows the servers'.
#[derive(Debug)]
pub(crate) struct ServerClock {
    origin: Instant,
    /// Whether there is one member only.
    one_member: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    bound: Option<ClockBound>,
    last: StoreTime,
    unconfirmed: Option<UnconfirmedTime>,
}

/// A time that contradicts the known one.
#[derive(Clone, Copy, Debug)]
struct UnconfirmedTime {
    member: usize,
    since: Duration,
    bound: ClockBound,
}

/// Time of a response: of which member, when it was sent and received, and the time of this machine then.
#[derive(Clone, Copy, Debug)]
struct DateSample {
    member: usize,
    sent: Duration,
    received: Duration,
    date: StoreTime,
    here: StoreTime,
}

/// Result of a response for the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DateVerdict {
    /// The time is plausible or confirmed.
    Believed,
    /// It contradicts the known time, for the first time: ask another member.
    Contradicts,
    /// It still does.
    StillContradicts,
}

/// Best lower bound: at `received` after the origin the time was at least `time`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClockBound {
    received: Duration,
    time: StoreTime,
}

impl ClockBound {
    /// Lower bound at a later moment.
    fn at(self, moment: Duration) -> StoreTime {
        self.time.plus(moment.saturating_sub(self.received))
    }
}

impl State {
    fn take(&mut self, sample: DateSample, one_member: bool) -> DateVerdict {
        let plausible = match self.bound {
            Some(bound) => are_near(sample.date, bound.at(sample.received)),
            None => one_member,
        };
        if plausible || are_near(sample.date, sample.here) || self.confirms(&sample) {
            // The time of another member is still unconfirmed: a third one may confirm it, but not its repetition.
            self.unconfirmed = self
                .unconfirmed
                .filter(|unconfirmed| unconfirmed.member != sample.member);
            if let Some(unconfirmed) = &mut self.unconfirmed {
                unconfirmed.since = sample.received;
            }
            self.bound = Some(better(
                self.bound,
                sample.sent,
                sample.received,
                sample.date,
            ));
            return DateVerdict::Believed;
        }
        let repeated = self.unconfirmed.filter(|unconfirmed| {
            unconfirmed.member == sample.member
                && are_near(sample.date, unconfirmed.bound.at(sample.received))
        });
        if repeated.is_some() {
            return DateVerdict::StillContradicts;
        }
        self.unconfirmed = Some(UnconfirmedTime {
            member: sample.member,
            since: sample.received,
            bound: ClockBound {
                received: sample.received,
                time: sample.date,
            },
        });
        DateVerdict::Contradicts
    }

    /// Whether an unconfirmed time is confirmed by this response.
    fn confirms(&self, sample: &DateSample) -> bool {
        self.unconfirmed.is_some_and(|unconfirmed| {
            let lasts = sample.received.saturating_sub(unconfirmed.since) >= BELIEVED_AFTER;
            are_near(sample.date, unconfirmed.bound.at(sample.received))
                && (unconfirmed.member != sample.member || lasts)
        })
    }

    /// Adopts a shared bound, unless it is far ahead of the known time and of this machine's.
    fn adopt(&mut self, time: StoreTime, received: Duration, here: StoreTime) {
        let known = self.bound.map(|bound| bound.at(received));
        let is_new = known.is_none_or(|known| known < time);
        let is_far = time.since(known.unwrap_or(here)) > APART && time.since(here) > APART;
        if is_new && !is_far {
            self.bound = Some(ClockBound { received, time });
        }
    }

    /// The time at a moment. It goes back only if it was far ahead.
    fn at(&mut self, moment: Duration) -> Option<StoreTime> {
        let time = self.bound?.at(moment);
        if self.last.since(time) > APART {
            self.last = time;
        }
        self.last = self.last.max(time);
        Some(self.last)
    }
}

fn are_near(one: StoreTime, other: StoreTime) -> bool {
    one.since(other) <= APART && other.since(one) <= APART
}

/// The time of this machine.
fn here() -> StoreTime {
    let here = SystemTime::now().duration_since(UNIX_EPOCH);
    StoreTime::default().plus(here.unwrap_or_default())
}

impl ServerClock {
    pub(crate) fn new(members: usize) -> Self {
        Self {
            origin: Instant::now(),
            one_member: members < 2,
            state: Mutex::default(),
        }
    }

    /// Records the time of a response of a member.
    pub(crate) fn received(&self, member: usize, sent: Instant, date: &str) -> DateVerdict {
        let Some(date) = read_date(date) else {
            return DateVerdict::Believed;
        };
        let sample = DateSample {
            member,
            sent: sent.saturating_duration_since(self.origin),
            received: self.origin.elapsed(),
            date,
            here: here(),
        };
        let verdict = self.lock().take(sample, self.one_member);
        if verdict == DateVerdict::Contradicts {
            tracing::warn!(
                member,
                "the clock of a member of etcd contradicts the others; see that its time is right"
            );
        }
        verdict
    }

    /// Adopts a bound of another replica.
    pub(crate) fn is_at_least(&self, time: StoreTime) {
        let received = self.origin.elapsed();
        self.lock().adopt(time, received, here());
    }

    /// The current time, never earlier than before unless that was far from the truth; by this machine's clock
    /// until the first response.
    pub(crate) fn now(&self) -> StoreTime {
        let moment = self.origin.elapsed();
        self.lock().at(moment).unwrap_or_else(here)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The better of two bounds; the known one is dropped if this response contradicts it.
fn better(
    known: Option<ClockBound>,
    sent: Duration,
    received: Duration,
    date: StoreTime,
) -> ClockBound {
    let new = ClockBound {
        received,
        time: date,
    };
    let Some(known) = known else { return new };
    let age = received.saturating_sub(known.received);
    let drift = age * DRIFT_PER_MILLION / 1_000_000;
    // When the request was sent, the server was at most a second past its `Date`, unless its clock
    // was set back.
    let impossible = known.at(sent).minus(drift) > date.plus(STEP);
    if impossible || date > known.at(received).minus(drift) {
        new
    } else {
        known
    }
}

/// Parses `Sun, 15 Nov 2026 17:29:35 GMT`.
fn read_date(text: &str) -> Option<StoreTime> {
    let timestamp = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text);
    Some(StoreTime(timestamp.ok()?.as_microsecond()))
}

#[cfg(test)]
mod tests {
    use super::{ClockBound, DateSample, DateVerdict, ServerClock, State, better, read_date};
    use std::time::{Duration, Instant};
    use sutler_journal::StoreTime;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn seconds(seconds: i64) -> StoreTime {
        StoreTime(seconds * 1_000_000)
    }

    /// `Date` of a server whose clock is this much ahead, at a moment.
    fn date_of(moment: Duration, ahead: Duration) -> StoreTime {
        StoreTime::default().plus(Duration::from_secs((moment + ahead).as_secs()))
    }

    #[test]
    fn the_date_of_an_answer_is_read() {
        let date = read_date("Sun, 15 Nov 2026 17:29:35 GMT");
        assert_eq!(date, Some(StoreTime(1_794_763_775_000_000)));
        assert_eq!(read_date("yesterday"), None);
    }

    #[test]
    fn many_responses_give_the_time_better_than_to_the_second() {
        let ahead = ms(1_000_730);
        let mut bound = None;
        for sent in (0..40).map(|n| ms(n * 37)) {
            bound = Some(better(bound, sent, sent + ms(1), date_of(sent, ahead)));
        }
        let (now, estimate) = (ms(2000), bound.unwrap().at(ms(2000)));
        let truth = StoreTime::default().plus(now + ahead);
        assert!(estimate <= truth, "a lower bound");
        assert!(
            truth.since(estimate) <= ms(40),
            "as close as the answers are"
        );
    }

    #[test]
    fn bounds_of_other_replicas_count_and_the_local_clock_does_not() {
        let clock = ServerClock::new(3);
        clock.is_at_least(seconds(50));
        assert!(clock.now() < seconds(60), "not the time of this machine");
        clock.is_at_least(seconds(70));
        assert!(clock.now() >= seconds(70));
        clock.is_at_least(seconds(50));
        assert!(clock.now() >= seconds(70), "it never goes back");
    }

    /// Times of right and wrong members at second 0. This machine's clock agrees with neither.
    const HERE: i64 = 1_000_000;
    const WRONG: i64 = 1_600_000_000;

    fn sample(member: usize, second: u64, date: i64) -> DateSample {
        let received = Duration::from_secs(second);
        DateSample {
            member,
            sent: received,
            received,
            date: seconds(date + i64::try_from(second).unwrap()),
            here: seconds(0),
        }
    }

    fn time(state: &mut State, second: u64) -> i64 {
        let at = state.at(Duration::from_secs(second)).expect("a time");
        at.0 / 1_000_000 - i64::try_from(second).unwrap()
    }

    #[test]
    fn one_wrong_member_ages_nothing() {
        let mut state = State::default();
        assert_eq!(
            state.take(sample(0, 0, HERE), false),
            DateVerdict::Contradicts
        );
        assert_eq!(state.take(sample(1, 1, HERE), false), DateVerdict::Believed);
        for second in 2..2000 {
            let (member, date) = match second % 3 {
                2 => (2, WRONG),
                other => (usize::try_from(other).unwrap(), HERE),
            };
            let verdict = state.take(sample(member, second, date), false);
            assert_eq!(verdict == DateVerdict::Believed, member != 2);
            let moment = Duration::from_secs(second);
            state.adopt(seconds(WRONG), moment, seconds(0));
            assert_eq!(time(&mut state, second), HERE);
        }
    }

    #[test]
    fn a_wrong_first_member_is_outvoted() {
        let mut state = State::default();
        let first = DateSample {
            here: seconds(WRONG),
            ..sample(0, 0, WRONG)
        };
        assert_eq!(state.take(first, false), DateVerdict::Believed);
        assert_eq!(time(&mut state, 0), WRONG);
        assert_eq!(
            state.take(sample(1, 1, HERE), false),
            DateVerdict::Contradicts
        );
        assert_eq!(
            state.take(sample(0, 2, WRONG), false),
            DateVerdict::Believed
        );
        assert_eq!(state.take(sample(2, 3, HERE), false), DateVerdict::Believed);
        assert_eq!(time(&mut state, 3), HERE, "it goes back");
    }

    #[test]
    fn the_only_member_is_believed_after_a_while() {
        let mut state = State::default();
        assert_eq!(state.take(sample(0, 0, HERE), true), DateVerdict::Believed);
        for (second, verdict) in [
            (1, DateVerdict::Contradicts),
            (2, DateVerdict::StillContradicts),
            (600, DateVerdict::StillContradicts),
            (601, DateVerdict::Believed),
        ] {
            assert_eq!(state.take(sample(0, second, WRONG), true), verdict);
        }
        assert_eq!(time(&mut state, 601), WRONG);
        assert_eq!(
            state.take(sample(0, 602, HERE), true),
            DateVerdict::Contradicts
        );
        let healed = DateSample {
            here: seconds(HERE + 603),
            ..sample(0, 603, HERE)
        };
        assert_eq!(state.take(healed, true), DateVerdict::Believed);
        assert_eq!(time(&mut state, 603), HERE, "this machine confirms it");
    }

    #[test]
    fn a_wrong_date_between_right_ones_ages_nothing() {
        let clock = ServerClock::new(1);
        let here = clock.now();
        let text = |time: StoreTime| {
            let time = jiff::Timestamp::from_microsecond(time.0).expect("a time");
            time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
        };
        let far = seconds(4_000_000_000);
        for date in [here, far, here] {
            clock.received(0, Instant::now(), &text(date));
        }
        clock.is_at_least(far);
        assert!(clock.now() < here.plus(Duration::from_secs(60)));
    }

    #[test]
    fn a_server_whose_clock_went_back_is_believed() {
        let known = ClockBound {
            received: ms(0),
            time: seconds(100),
        };
        let later = better(Some(known), ms(500), ms(501), seconds(100));
        assert_eq!(later, known, "says nothing new");
        let back = better(Some(known), ms(500), ms(501), seconds(40));
        assert_eq!(back.time, seconds(40));
    }
}
