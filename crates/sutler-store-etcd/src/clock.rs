//! Time of the servers, derived from the `Date` header of their responses.
//!
//! etcd has no time inside a transaction, but every response has a time in whole seconds.
//! A server that reports 12:00:05 is at 12:00:05 or later when the response arrives: each response is a
//! lower bound, and the best bound improves with every second that begins between two responses.
//! Replicas share the best bound they know, so replicas whose own clocks disagree agree on this
//! one. Leases do not use it: they expire by etcd's clock.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use sutler_journal::StoreTime;

/// `Date` has whole seconds: the server may be almost this much later.
const STEP: Duration = Duration::from_secs(1);
/// Maximum drift between the clocks of two machines: a second in three hours.
const DRIFT_PER_MILLION: u32 = 100;

/// A clock that follows the servers'.
#[derive(Debug)]
pub(crate) struct ServerClock {
    origin: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    bound: Option<ClockBound>,
    last: StoreTime,
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

impl ServerClock {
    pub(crate) fn new() -> Self {
        Self {
            origin: Instant::now(),
            state: Mutex::default(),
        }
    }

    /// Records the time of a response.
    pub(crate) fn received(&self, sent: Instant, date: &str) {
        let Some(date) = read_date(date) else { return };
        let sent = sent.saturating_duration_since(self.origin);
        let received = self.origin.elapsed();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.bound = Some(better(state.bound, sent, received, date));
    }

    /// Adopts a bound of another replica.
    pub(crate) fn is_at_least(&self, time: StoreTime) {
        let received = self.origin.elapsed();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.bound.is_none_or(|bound| bound.at(received) < time) {
            state.bound = Some(ClockBound { received, time });
        }
    }

    /// The current time, never earlier than before; by this machine's clock until the first response.
    pub(crate) fn now(&self) -> StoreTime {
        let moment = self.origin.elapsed();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(bound) = state.bound else {
            let here = SystemTime::now().duration_since(UNIX_EPOCH);
            return StoreTime::default().plus(here.unwrap_or_default());
        };
        state.last = state.last.max(bound.at(moment));
        state.last
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
    use super::{ClockBound, ServerClock, better, read_date};
    use std::time::Duration;
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
        let clock = ServerClock::new();
        let far_future = seconds(4_000_000_000);
        assert!(clock.now() < far_future);
        clock.is_at_least(seconds(50));
        assert!(clock.now() < seconds(60), "not the time of this machine");
        clock.is_at_least(far_future);
        assert!(clock.now() >= far_future);
        clock.is_at_least(seconds(50));
        assert!(clock.now() >= far_future, "it never goes back");
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
