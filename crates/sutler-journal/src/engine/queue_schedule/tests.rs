//! Tests of the schedule: which queues a claim asks, and that none waits for long. The last ones check these laws on random
//! histories with queues that always have work.

use super::{CLAIM_SPACING, PLAN_DISTANCE, PLANS_MAX, QUEUES_PER_CLAIM, QueueSchedule};
use crate::operation::Queue;
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::test_runner::TestCaseError;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How much later a planned look may be made that is not the first.
const DISTANCE: Duration = Duration::from_millis(125);
/// No other limit than that of a claim.
const ROOM: usize = 1000;

fn queue(n: usize) -> Queue {
    Queue::of(format!("{n:04}"))
}

fn schedule(queues: usize, now: Instant) -> QueueSchedule {
    let mut schedule = QueueSchedule::new(LOOK_EVERY);
    for n in 0..queues {
        schedule.serve(&queue(n), now);
    }
    schedule
}

/// Claims until no queue is due; the queues of each claim.
fn claims(schedule: &mut QueueSchedule, now: Instant) -> Vec<Vec<Queue>> {
    let mut claims = Vec::new();
    while schedule.next_look().is_some_and(|at| at <= now) {
        claims.push(schedule.next_claim(now, ROOM, |_| true));
        assert!(claims.len() < 1000, "some queue stays due");
    }
    claims
}

fn sizes(claims: &[Vec<Queue>]) -> Vec<usize> {
    claims.iter().map(Vec::len).collect()
}

#[test]
fn a_few_queues_are_all_asked_whenever_one_is_due() {
    let now = Instant::now();
    let mut schedule = schedule(QUEUES_PER_CLAIM, now);
    assert_eq!(sizes(&claims(&mut schedule, now)), [QUEUES_PER_CLAIM]);
    assert!(claims(&mut schedule, now).is_empty(), "none is due");
    let soon = now + LOOK_EVERY / 3;
    schedule.plan(&queue(7), soon);
    assert_eq!(schedule.next_look(), Some(soon));
    assert_eq!(sizes(&claims(&mut schedule, soon)), [QUEUES_PER_CLAIM]);
    schedule.hint(soon);
    assert_eq!(sizes(&claims(&mut schedule, soon)), [QUEUES_PER_CLAIM]);
    assert_eq!(schedule.next_look(), Some(soon + LOOK_EVERY));
}

#[test]
fn many_queues_are_asked_in_several_claims_and_each_once() {
    let now = Instant::now();
    let mut schedule = schedule(1000, now);
    for at in [now, now + LOOK_EVERY] {
        let claims = claims(&mut schedule, at);
        assert_eq!(claims.len(), 1000_usize.div_ceil(QUEUES_PER_CLAIM));
        let mut asked: Vec<Queue> = claims.concat();
        asked.sort();
        asked.dedup();
        assert_eq!(asked.len(), 1000);
        assert_eq!(schedule.next_look(), Some(at + LOOK_EVERY));
    }
}

#[test]
fn of_many_queues_only_those_that_are_due_are_asked() {
    let now = Instant::now();
    let mut schedule = schedule(1000, now);
    claims(&mut schedule, now);
    let (soon, later) = (now + LOOK_EVERY / 4, now + LOOK_EVERY / 2);
    for (n, at) in [(5, later), (5, soon), (900, soon), (7, later)] {
        schedule.plan(&queue(n), at);
    }
    assert!(claims(&mut schedule, now).is_empty());
    let asked = claims(&mut schedule, soon).concat();
    assert_eq!(asked, [queue(5), queue(900)]);
    let asked = claims(&mut schedule, later).concat();
    assert_eq!(asked, [queue(7), queue(5)]);
    let round = claims(&mut schedule, now + LOOK_EVERY).concat();
    assert_eq!(round.len(), 997, "the three were asked since");
}

#[test]
fn a_plan_says_whether_the_next_look_is_earlier() {
    let now = Instant::now();
    let mut schedule = schedule(2, now);
    claims(&mut schedule, now);
    assert!(!schedule.plan(&queue(0), now + LOOK_EVERY));
    assert!(schedule.plan(&queue(0), now + LOOK_EVERY / 2));
    assert!(!schedule.plan(&queue(1), now + LOOK_EVERY / 2));
    assert!(schedule.plan(&queue(1), now));
    assert!(!schedule.plan(&queue(9), now), "nobody serves it");
}

#[test]
fn a_plan_beyond_the_next_look_stays() {
    let now = Instant::now();
    let mut schedule = schedule(1, now);
    claims(&mut schedule, now);
    let planned = now + LOOK_EVERY * 5 / 2;
    schedule.plan(&queue(0), planned);
    for at in [now + LOOK_EVERY, now + LOOK_EVERY * 2, planned] {
        assert_eq!(schedule.next_look(), Some(at));
        assert_eq!(claims(&mut schedule, at).len(), 1);
    }
}

#[test]
fn several_plans_are_kept_and_close_ones_share_a_look() {
    let now = Instant::now();
    let ms = |ms| now + Duration::from_millis(ms);
    assert_eq!(LOOK_EVERY / PLAN_DISTANCE, DISTANCE);
    let mut schedule = schedule(1, now);
    claims(&mut schedule, now);
    for planned in [500, 510, 520, 400, 500, 900] {
        schedule.plan(&queue(0), ms(planned));
    }
    for at in [400, 500, 625, 900] {
        assert_eq!(schedule.next_look(), Some(ms(at)));
        assert_eq!(claims(&mut schedule, ms(at)).len(), 1);
    }
    assert_eq!(schedule.next_look(), Some(ms(1900)));
}

#[test]
fn a_look_that_is_needed_now_is_not_put_off_and_leaves_the_plans() {
    let now = Instant::now();
    let mut schedule = schedule(1, now);
    claims(&mut schedule, now);
    let planned = now + DISTANCE / 2;
    schedule.plan(&queue(0), planned);
    assert!(schedule.plan_now(&queue(0), now));
    assert!(!schedule.plan_now(&queue(0), now), "it is due");
    assert_eq!(schedule.next_look(), Some(now));
    claims(&mut schedule, now);
    assert_eq!(schedule.next_look(), Some(planned));
}

#[test]
fn plans_are_bounded_and_the_first_are_kept() {
    let now = Instant::now();
    let mut schedule = schedule(1, now);
    claims(&mut schedule, now);
    let at = |n: u32| now + LOOK_EVERY * n;
    for n in (1..1000).rev() {
        schedule.plan(&queue(0), at(n));
    }
    let plans = &schedule.times[&queue(0)].plans;
    assert_eq!((plans.len(), plans[0]), (PLANS_MAX, at(1)));
}

#[test]
fn claims_that_ask_a_few_of_many_queues_keep_their_distance() {
    let now = Instant::now();
    let mut schedule = schedule(65, now);
    claims(&mut schedule, now);
    assert!(schedule.plan_now(&queue(1), now));
    let next = now + CLAIM_SPACING;
    assert_eq!(schedule.next_look(), Some(next));
    assert!(!schedule.plan_now(&queue(2), now + CLAIM_SPACING / 2));
    let asked = claims(&mut schedule, next).concat();
    assert_eq!(asked, [queue(1), queue(2)]);
}

#[test]
fn a_hint_makes_every_queue_due_once() {
    let now = Instant::now();
    let mut schedule = schedule(130, now);
    claims(&mut schedule, now);
    let hinted = now + LOOK_EVERY / 2;
    schedule.hint(hinted);
    assert_eq!(sizes(&claims(&mut schedule, hinted)), [64, 64, 2]);
    assert_eq!(schedule.next_look(), Some(hinted + LOOK_EVERY));
}

#[test]
fn hints_that_come_all_the_time_keep_claims_of_many_queues_apart() {
    let now = Instant::now();
    let mut schedule = schedule(640, now);
    claims(&mut schedule, now);
    schedule.hint(now);
    let round = CLAIM_SPACING * 10;
    assert_eq!(schedule.next_look(), Some(now + round));
    let mut total = 0;
    for ms in 0..1000 {
        let at = now + Duration::from_millis(ms);
        schedule.hint(at);
        total += claims(&mut schedule, at).len();
    }
    assert_eq!(total, 90, "a round of ten claims every {round:?}");
}

#[test]
fn a_queue_without_a_free_slot_is_passed_over_until_it_is_planned() {
    let now = Instant::now();
    let mut schedule = schedule(100, now);
    let is_full = queue(3);
    let asked = schedule.next_claim(now, ROOM, |queue| *queue != is_full);
    assert_eq!(asked.len(), QUEUES_PER_CLAIM);
    assert!(!asked.contains(&is_full));
    let rest = claims(&mut schedule, now).concat();
    assert!(!rest.contains(&is_full));
    schedule.plan_now(&is_full, now);
    let next = now + CLAIM_SPACING;
    assert_eq!(claims(&mut schedule, next).concat(), [is_full]);
}

#[test]
fn a_claim_without_room_for_all_asks_those_that_wait_longest() {
    let now = Instant::now();
    let mut schedule = schedule(10, now);
    assert!(schedule.next_claim(now, 0, |_| true).is_empty());
    let mut all = Vec::new();
    for (n, room) in [4, 4, 2].into_iter().enumerate() {
        let at = now + CLAIM_SPACING * u32::try_from(n).unwrap();
        assert_eq!(schedule.next_look(), Some(at));
        all.extend(schedule.next_claim(at, room, |_| true));
    }
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 10);
}

#[test]
fn a_queue_that_has_left_is_not_asked() {
    let now = Instant::now();
    let mut schedule = schedule(3, now);
    schedule.plan(&queue(1), now);
    schedule.leave(&queue(1));
    schedule.leave(&queue(1));
    assert_eq!(claims(&mut schedule, now).concat(), [queue(0), queue(2)]);
    for n in [0, 2] {
        schedule.leave(&queue(n));
    }
    schedule.hint(now);
    assert_eq!(schedule.next_look(), None);
}

/// What may happen to a schedule.
#[derive(Clone, Debug)]
enum HistoryStep {
    Pass(Duration),
    Hint,
    Plan(usize, Duration),
    Serve(usize),
    Leave(usize),
    SetFull(usize, bool),
}

fn history_step(queues: usize) -> impl Strategy<Value = HistoryStep> {
    let wait = |ms: u64| (0..ms).prop_map(Duration::from_millis);
    prop_oneof![
        4 => wait(700).prop_map(HistoryStep::Pass),
        1 => any::<bool>().prop_map(|_| HistoryStep::Hint),
        4 => (0..queues, wait(2500)).prop_map(|(n, wait)| HistoryStep::Plan(n, wait)),
        1 => (0..queues).prop_map(HistoryStep::Serve),
        1 => (0..queues).prop_map(HistoryStep::Leave),
        2 => (0..queues, any::<bool>()).prop_map(|(n, is)| HistoryStep::SetFull(n, is)),
    ]
}

/// A queue that is served: when it is due at the latest, and how many claims have passed it over since.
struct ExpectedQueue {
    asked_at: Instant,
    plans: Vec<Instant>,
    missed: usize,
}

impl ExpectedQueue {
    fn due(&self) -> Instant {
        let regular = self.asked_at + LOOK_EVERY;
        let first = self.plans.iter().min();
        first.map_or(regular, |plan| regular.min(*plan + DISTANCE))
    }
}

/// A schedule, and what is expected of it.
struct ScheduleHistory {
    schedule: QueueSchedule,
    now: Instant,
    served: BTreeMap<usize, ExpectedQueue>,
    /// Queues without a free slot.
    full: Vec<bool>,
    /// Queues below this number always have work.
    busy: usize,
    /// How often a queue was served first.
    entries: usize,
    /// When a claim is made at the latest, though a queue may be due.
    apart_until: Instant,
}

impl ScheduleHistory {
    fn new(queues: usize, busy: usize) -> Self {
        let mut history = Self {
            schedule: QueueSchedule::new(LOOK_EVERY),
            now: Instant::now(),
            served: BTreeMap::new(),
            full: vec![false; queues],
            busy,
            entries: 0,
            apart_until: Instant::now(),
        };
        (0..queues).for_each(|n| history.serve(n));
        history
    }

    fn serve(&mut self, n: usize) {
        self.schedule.serve(&queue(n), self.now);
        self.served.entry(n).or_insert_with(|| {
            self.entries += 1;
            ExpectedQueue {
                asked_at: self.now,
                plans: vec![self.now],
                missed: 0,
            }
        });
    }

    fn plan(&mut self, n: usize, wait: Duration) {
        let at = self.now + wait;
        match wait {
            Duration::ZERO => self.schedule.plan_now(&queue(n), at),
            _ => self.schedule.plan(&queue(n), at),
        };
        if let Some(expected) = self.served.get_mut(&n) {
            expected.plans.push(at);
        }
    }

    fn step(&mut self, step: &HistoryStep) {
        match step {
            HistoryStep::Pass(time) => self.now += *time,
            HistoryStep::Hint => self.schedule.hint(self.now),
            HistoryStep::Plan(n, wait) => self.plan(*n, *wait),
            HistoryStep::Serve(n) => self.serve(*n),
            HistoryStep::Leave(n) => {
                self.schedule.leave(&queue(*n));
                self.served.remove(n);
            }
            HistoryStep::SetFull(n, is_full) => {
                self.full[*n] = *is_full;
                if !is_full {
                    self.plan(*n, Duration::ZERO);
                }
            }
        }
    }

    /// One claim, if a queue is due.
    fn claim(&mut self) -> Result<(), TestCaseError> {
        self.check_next_look()?;
        let (now, full) = (self.now, &self.full);
        let visited = RefCell::new(Vec::new());
        let number = |queue: &Queue| queue.as_str().parse::<usize>().unwrap_or_default();
        let asked = self.schedule.next_claim(now, ROOM, |queue| {
            visited.borrow_mut().push(number(queue));
            !full[number(queue)]
        });
        let mut visited = visited.into_inner();
        visited.sort_unstable();
        let asked: Vec<usize> = asked.iter().map(number).collect();
        prop_assert!(asked.len() <= QUEUES_PER_CLAIM);
        prop_assert!(asked.iter().all(|n| !full[*n]));
        prop_assert!(visited.iter().all(|n| self.served.contains_key(n)));
        if !visited.is_empty() && self.served.len() <= QUEUES_PER_CLAIM {
            let served: Vec<usize> = self.served.keys().copied().collect();
            prop_assert_eq!(&visited, &served, "one claim for all, each once");
        }
        if !visited.is_empty() {
            self.apart_until = now + CLAIM_SPACING;
        }
        let most = self.entries.div_ceil(QUEUES_PER_CLAIM);
        for (n, expected) in &mut self.served {
            if visited.contains(n) {
                expected.asked_at = now;
                expected.plans.retain(|plan| *plan > now);
                expected.missed = 0;
            } else if !visited.is_empty() && expected.due() <= now {
                expected.missed += 1;
                prop_assert!(expected.missed <= most, "{} is starved", n);
            }
        }
        let busy = self.busy;
        for n in asked.into_iter().filter(|n| *n < busy) {
            self.plan(n, Duration::ZERO);
        }
        Ok(())
    }

    /// The loop that claims is woken in time.
    fn check_next_look(&self) -> Result<(), TestCaseError> {
        let due = self.served.values().map(ExpectedQueue::due).min();
        let next = self.schedule.next_look();
        prop_assert_eq!(due.is_some(), next.is_some());
        prop_assert!(next <= due.map(|due| due.max(self.apart_until)));
        Ok(())
    }
}

proptest! {
    #[test]
    fn no_queue_is_starved_and_few_are_all_asked_at_once(
        (queues, busy, steps) in (1_usize..200).prop_flat_map(|queues| {
            (queues..=queues, 0..=queues, vec((history_step(queues), 0_u64..3), 1..60))
        }),
        took in 0_u64..4,
    ) {
        let mut history = ScheduleHistory::new(queues, busy);
        for (step, claims) in steps {
            history.step(&step);
            for _ in 0..claims {
                history.claim()?;
                history.now += Duration::from_millis(took);
            }
        }
    }

    #[test]
    fn every_queue_is_asked_in_its_interval_if_claims_go_on_until_none_is_due(
        (queues, steps) in (1_usize..200).prop_flat_map(|queues| {
            (queues..=queues, vec(history_step(queues), 1..40))
        }),
    ) {
        let mut history = ScheduleHistory::new(queues, 0);
        for step in steps {
            history.step(&step);
            let mut claims = 0;
            while history.schedule.next_look().is_some_and(|at| at <= history.now) {
                history.claim()?;
                claims += 1;
                prop_assert!(claims <= history.served.len().div_ceil(QUEUES_PER_CLAIM));
            }
            let is_late = |expected: &ExpectedQueue| expected.due() <= history.now;
            let is_apart = history.now < history.apart_until;
            prop_assert!(is_apart || !history.served.values().any(is_late));
        }
    }
}
