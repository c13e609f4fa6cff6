//! Changes of an operation's row: start, import, advance, wake, claim and release; and whether a commit makes an
//! operation claimable. Pure: no I/O, no clock.
//!
//! Used by stores that hold rows as values (memory, etcd); stores with SQL or update documents express the same
//! changes in statements. Not here: which worker holds an operation, which every store keeps in its own way, and
//! whether a commit is stale.

use crate::clock::StoreTime;
use crate::commit::{Commit, Due, NewOperation, Next, Start, Write};
use crate::operation::{Fence, OperationRow, State, WorkerId};
use std::borrow::Cow;

impl Due {
    /// The moment on the store's clock.
    pub fn at(self, now: StoreTime) -> StoreTime {
        match self {
            Self::Now => now,
            Self::In(wait) => now.plus(wait),
        }
    }
}

impl Start {
    /// The worker that holds the operation from its start.
    pub fn worker(self) -> Option<WorkerId> {
        match self {
            Self::Claimed(worker) => Some(worker),
            Self::Waiting | Self::Ready(_) => None,
        }
    }
}

impl Commit {
    /// Whether the commit may make an operation claimable at once, so that other replicas should look.
    pub fn is_worth_a_hint(&self) -> bool {
        self.writes().iter().any(|write| match write {
            Write::Start(new) => matches!(new.start, Start::Ready(Due::Now)),
            Write::Advance { next, .. } => {
                matches!(
                    next,
                    Next::Ready(Due::Now) | Next::Retry(Due::Now) | Next::PutBack(Due::Now)
                )
            }
            Write::Wake(_) | Write::Import(_) => true,
            Write::Put { .. }
            | Write::Remove(_)
            | Write::Cancel(_)
            | Write::Unpin(_)
            | Write::Reseal { .. } => false,
        })
    }
}

impl OperationRow {
    /// The row of a new operation.
    pub fn start(new: &NewOperation, now: StoreTime) -> Self {
        let (state, due, fence) = match new.start {
            Start::Waiting => (State::Waiting, now, Fence(0)),
            Start::Ready(due) => (State::Ready, due.at(now), Fence(0)),
            Start::Claimed(_) => (State::Running, now, Fence(1)),
        };
        Self {
            id: new.id,
            lane: new.lane.clone(),
            verb: Cow::Borrowed(new.verb),
            queue: new.queue.clone(),
            state,
            due,
            fence,
            attempt: 1,
            takeovers: 0,
            cancel: false,
            pinned: true,
            accepted: now,
            finished: None,
            detail: new.detail.clone(),
        }
    }

    /// Takes over the row from another store, whose workers are unknown here.
    pub fn import(&mut self, now: StoreTime) {
        match self.state {
            State::Waiting | State::Ready => {}
            State::Running => (self.state, self.due) = (State::Ready, now),
            State::Done(_) => self.finished = self.finished.or(Some(now)),
        }
    }

    /// Moves the operation on. `progress`: whether new progress is written. Its worker keeps it only if it is
    /// still running.
    pub fn advance(&mut self, next: Next, progress: bool, now: StoreTime) {
        match next {
            Next::Same if progress => self.takeovers = 0,
            Next::Same => {}
            Next::PutBack(due) => (self.state, self.due) = (State::Ready, due.at(now)),
            Next::Ready(due) => {
                self.takeovers = 0;
                (self.state, self.due) = (State::Ready, due.at(now));
            }
            Next::Retry(due) => {
                self.attempt = self.attempt.saturating_add(1);
                (self.state, self.due) = (State::Ready, due.at(now));
            }
            Next::Waiting => (self.state, self.takeovers) = (State::Waiting, 0),
            Next::Done(outcome) => {
                (self.state, self.finished) = (State::Done(outcome), Some(now));
            }
        }
    }

    /// Makes the operation claimable, if it is not already.
    pub fn wake(&mut self, now: StoreTime) {
        match self.state {
            State::Waiting => (self.state, self.due) = (State::Ready, now),
            // One that is already due keeps its place: waking often must not starve it.
            State::Ready => self.due = self.due.min(now),
            State::Running | State::Done(_) => {}
        }
    }

    /// Gives the operation to a worker; from a dead one if it was running.
    pub fn claim(&mut self) {
        if self.state == State::Running {
            self.takeovers = self.takeovers.saturating_add(1);
        }
        self.state = State::Running;
        self.fence.0 += 1;
    }

    /// Takes the operation back from its worker.
    pub fn release(&mut self, now: StoreTime) {
        (self.state, self.due) = (State::Ready, now);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Commit, Due, Next, OperationId, Outcome, Write};
    use std::time::Duration;

    #[test]
    fn only_claimable_operations_cause_a_hint() {
        let id = OperationId::fresh();
        let later = Due::In(Duration::from_secs(1));
        for (next, worth) in [
            (Next::Ready(Due::Now), true),
            (Next::Retry(Due::Now), true),
            (Next::Ready(later), false),
            (Next::Same, false),
            (Next::Waiting, false),
            (Next::Done(Outcome::Failed), false),
        ] {
            let commit = Commit::new().advance(id, next, None, None);
            assert_eq!(commit.is_worth_a_hint(), worth, "{next:?}");
        }
        assert!(Commit::new().write(Write::Wake(id)).is_worth_a_hint());
        assert!(!Commit::new().write(Write::Unpin(id)).is_worth_a_hint());
    }
}
