//! Long random histories: after every step the store must equal a small model.

use super::Candidate;
use super::fixture::{AFTER_BRIEF, BRIEF, Fixture, NEVER, SeededRng, WORK, new_operation, only};
use super::history_model::{Lease, ModelEntry, ModelOperation, ModelStore};
use super::samples::bytes;
use crate::commit::{Commit, CommitError, Due, Next, StaleItem, Start, Write};
use crate::operation::{Fence, OperationId, Outcome, State, WorkerId};
use crate::query::{OperationFilter, OperationList, Sweep};
use crate::store::LeaseError;
use std::time::Duration;

/// How often all leases expire, and the number of steps before each time.
const ROUNDS: usize = 4;
const STEPS: usize = 250;

/// For any sequence of steps, states, fences, attempts, takeovers and counts are as the contract
/// requires, and accepted = live + terminal + cleaned.
pub async fn random_histories_match_the_model(candidate: &dyn Candidate) {
    let mut model = ModelStore::default();
    let mut history = History {
        fixture: Fixture::of(candidate).await,
        rng: SeededRng::new(2026),
    };
    for _ in 0..ROUNDS {
        for step in 0..STEPS {
            if step % 5 == 0 {
                history.renew_all(&mut model).await;
            }
            history.step(&mut model).await;
            if step % 10 == 0 {
                history.check(&model).await;
            }
        }
        candidate.pass(AFTER_BRIEF).await;
        model.expire_all();
        history.check(&model).await;
    }
}

struct History {
    fixture: Fixture,
    rng: SeededRng,
}

impl History {
    async fn step(&mut self, model: &mut ModelStore) {
        match self.rng.roll(17) {
            0..=2 => self.start(model).await,
            3..=5 => self.claim(model).await,
            6..=9 => self.advance(model).await,
            10..=12 => self.touch(model).await,
            13 => self.release(model).await,
            14 => self.sweep(model).await,
            15 => self.renew_expired(model).await,
            _ => self.add_worker(model).await,
        }
    }

    async fn compare(&self, commit: Commit, expected: Result<(), StaleItem>) {
        let found = match self.fixture.store.commit(&commit).await {
            Ok(()) => Ok(()),
            Err(CommitError::Stale(which)) => Err(which),
            Err(error) => panic!("{error:?}: {commit:?}"),
        };
        assert_eq!(found, expected, "{commit:?}");
    }

    /// Usually a live worker, if there is one.
    fn worker(&mut self, model: &ModelStore) -> WorkerId {
        let live = model
            .workers
            .iter()
            .filter(|(_, lease)| *lease == Lease::Live);
        let live: Vec<(WorkerId, Lease)> = live.copied().collect();
        let from = if live.is_empty() || self.rng.roll(6) == 0 {
            &model.workers
        } else {
            &live
        };
        match self.rng.pick(from) {
            Some((worker, _)) => *worker,
            None => WorkerId::fresh(),
        }
    }

    /// Usually an operation in this state, if there is one.
    fn operation(&mut self, model: &ModelStore, wanted: fn(State) -> bool) -> (OperationId, Fence) {
        let fitting = model
            .entries
            .iter()
            .filter(|entry| wanted(entry.known.state));
        let fitting: Vec<ModelEntry> = fitting.cloned().collect();
        let from = if fitting.is_empty() || self.rng.roll(4) == 0 {
            &model.entries
        } else {
            &fitting
        };
        match self.rng.pick(from) {
            Some(entry) => (entry.known.id, entry.known.fence),
            None => (OperationId::fresh(), Fence(1)),
        }
    }

    fn due(&mut self) -> Due {
        if self.rng.roll(4) == 0 {
            Due::In(NEVER)
        } else {
            Due::Now
        }
    }

    async fn start(&mut self, model: &mut ModelStore) {
        let start = match self.rng.roll(4) {
            0 => Start::Waiting,
            1 => Start::Claimed(self.worker(model)),
            _ => Start::Ready(self.due()),
        };
        let new = new_operation("lane", start);
        let expected = model.start(new.id, start);
        self.compare(Commit::new().start(new), expected).await;
    }

    async fn claim(&mut self, model: &mut ModelStore) {
        let worker = self.worker(model);
        let limit = self.rng.roll(4);
        let claimed = self.fixture.store.claim(worker, &[(WORK, limit)]).await;
        if !model.lives(worker) {
            assert!(matches!(claimed, Err(LeaseError::Lost)), "{claimed:?}");
            return;
        }
        let claimable = model.claimable();
        let claimed = claimed.expect("a claim");
        assert_eq!(claimed.len(), claimable.len().min(limit));
        for operation in claimed {
            let id = operation.row.id;
            assert!(claimable.contains(&id), "not claimable: {operation:?}");
            model.claim(worker, id);
            let known = model.entry(id).map(|entry| entry.known.clone());
            assert_eq!(Some(ModelOperation::of(&operation.row)), known);
        }
    }

    async fn advance(&mut self, model: &mut ModelStore) {
        let (id, fence) = self.operation(model, |state| state == State::Running);
        let fence = match self.rng.roll(8) {
            0 => None,
            1 => Some(Fence(fence.0 + 1)),
            2 => Some(Fence(fence.0.saturating_sub(1))),
            _ => Some(fence),
        };
        let next = match self.rng.roll(8) {
            0 | 1 => Next::Same,
            2 => Next::Ready(self.due()),
            3 => Next::Retry(self.due()),
            4 => Next::PutBack(self.due()),
            5 => Next::Waiting,
            6 => Next::Done(Outcome::Succeeded),
            _ => Next::Done(Outcome::Failed),
        };
        let progress = (self.rng.roll(2) == 0).then(|| bytes("memo"));
        let makes_progress = progress.is_some();
        let commit = Commit::new().advance(id, next, Some(bytes("text")), progress);
        let commit = match fence {
            None => commit,
            Some(fence) => commit.fenced(id, fence),
        };
        let expected = model.advance(id, fence, next, makes_progress);
        self.compare(commit, expected).await;
    }

    async fn touch(&mut self, model: &mut ModelStore) {
        let kind = self.rng.roll(6);
        let wanted: fn(State) -> bool = match kind {
            0 => |state| state == State::Running,
            1 | 2 => |state| matches!(state, State::Waiting | State::Ready),
            _ => |state| matches!(state, State::Done(_)),
        };
        let (id, _) = self.operation(model, wanted);
        let write = match kind {
            0 => {
                model.cancel(id);
                Write::Cancel(id)
            }
            1 | 2 => {
                model.wake(id);
                Write::Wake(id)
            }
            _ => {
                model.unpin(id);
                Write::Unpin(id)
            }
        };
        self.compare(only(write), Ok(())).await;
    }

    async fn release(&mut self, model: &mut ModelStore) {
        let worker = self.worker(model);
        model.release(worker);
        let released = self.fixture.store.release(worker).await;
        released.expect("a release");
    }

    async fn add_worker(&mut self, model: &mut ModelStore) {
        let worker = self.fixture.worker(BRIEF).await;
        model.workers.push((worker, Lease::Live));
    }

    /// A worker whose lease expired gets `Lost` for ever.
    async fn renew_expired(&mut self, model: &mut ModelStore) {
        let worker = self.worker(model);
        if model.workers.contains(&(worker, Lease::Expired)) {
            self.fixture.must_be_lost(worker).await;
        }
    }

    /// Renews every live lease and checks the returned cancellations.
    async fn renew_all(&mut self, model: &mut ModelStore) {
        for (worker, lease) in &model.workers {
            if *lease != Lease::Live {
                continue;
            }
            let renewal = self.fixture.store.renew(*worker, BRIEF).await;
            let mut cancelled = renewal.expect("a live lease").cancelled;
            let mut expected = model.cancelled(*worker);
            cancelled.sort();
            expected.sort();
            assert_eq!(cancelled, expected);
        }
    }

    async fn sweep(&mut self, model: &mut ModelStore) {
        let limit = self.rng.roll(9);
        let sweep = Sweep::Operations {
            lanes: Vec::new(),
            outcome: None,
            finished_before: self.fixture.now().await.plus(Duration::from_secs(1)),
            limit,
        };
        let swept = self.fixture.store.sweep(&sweep).await.expect("a sweep");
        assert_eq!(swept, model.sweepable().min(limit) as u64);
        let cleaned = model.cleaned + swept;
        model.swept(&self.fixture.operations(OperationFilter::All).await);
        assert_eq!(model.cleaned, cleaned, "as many as it said");
    }

    async fn check(&self, model: &ModelStore) {
        let list = OperationList {
            filter: OperationFilter::All,
            before: None,
            limit: 10_000,
        };
        let rows = self.fixture.store.operations(&list).await.expect("a list");
        let mut expected: Vec<ModelOperation> =
            model.entries.iter().map(|e| e.known.clone()).collect();
        expected.sort_by_key(|known| std::cmp::Reverse(known.id));
        let found: Vec<ModelOperation> = rows.iter().map(ModelOperation::of).collect();
        assert_eq!(found, expected);
        let stats = self.fixture.stats().await;
        assert_eq!(stats.accepted, model.accepted);
        assert_eq!(stats.cleaned, model.cleaned);
    }
}
