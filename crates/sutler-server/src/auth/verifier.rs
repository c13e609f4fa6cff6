//! Slow checks of passwords, off the threads that serve, few at a time, with a short queue.
//!
//! The same pair asked for twice is checked once. A caller that leaves does not stop its check: the
//! next one finds it remembered. What is right and what follows is decided in `users.rs`.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use tokio::sync::{Semaphore, watch};

/// Most different pairs that are checked or wait for it.
const WAITING_MAX: usize = 32;

/// Checks that run at a time, of all users of this process: at most a quarter of the processors, so
/// that guesses leave the rest to those who are already in.
static RUNNING: LazyLock<Semaphore> = LazyLock::new(|| {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    Semaphore::new((processors / 4).max(1))
});

/// Answers of a check; `None` until it ended.
type Verdict = watch::Receiver<Option<bool>>;

#[derive(Default)]
pub(super) struct Verifier(Arc<Mutex<HashMap<[u8; 32], Verdict>>>);

/// What to do about a pair.
pub(super) enum Turn {
    /// It is being checked already.
    Shared(Verdict),
    /// Nobody checks it yet, and there is room.
    Mine(Ticket),
    /// There is no room.
    Full,
}

/// The right to check a pair; given back when dropped.
pub(super) struct Ticket {
    pair: [u8; 32],
    sender: watch::Sender<Option<bool>>,
    waiting: Arc<Mutex<HashMap<[u8; 32], Verdict>>>,
}

impl Verifier {
    pub(super) fn turn(&self, pair: [u8; 32]) -> Turn {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(verdict) = waiting.get(&pair) {
            return Turn::Shared(verdict.clone());
        }
        if waiting.len() >= WAITING_MAX {
            return Turn::Full;
        }
        let (sender, verdict) = watch::channel(None);
        waiting.insert(pair, verdict);
        Turn::Mine(Ticket {
            pair,
            sender,
            waiting: self.0.clone(),
        })
    }
}

impl Ticket {
    /// Checks in the background; `ended` hears the verdict before anybody else.
    pub(super) fn check(
        self,
        slow: impl FnOnce() -> bool + Send + 'static,
        ended: impl FnOnce(bool) + Send + 'static,
    ) -> Verdict {
        let verdict = self.sender.subscribe();
        tokio::spawn(async move {
            let Ok(_permit) = RUNNING.acquire().await else {
                return;
            };
            let right = tokio::task::spawn_blocking(slow).await.unwrap_or(false);
            ended(right);
            self.sender.send_replace(Some(right));
        });
        verdict
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.remove(&self.pair);
    }
}

/// Waits for a verdict. A check that was lost proves nothing.
pub(super) async fn right(mut verdict: Verdict) -> bool {
    let ended = verdict.wait_for(Option::is_some).await;
    ended.is_ok_and(|it| *it == Some(true))
}

#[cfg(test)]
mod tests {
    use super::{Turn, Verifier, WAITING_MAX, right};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn pair(n: usize) -> [u8; 32] {
        let mut pair = [0; 32];
        pair[..8].copy_from_slice(&n.to_be_bytes());
        pair
    }

    #[tokio::test]
    async fn the_same_pair_is_checked_once_however_many_ask() {
        let (verifier, checks) = (Verifier::default(), Arc::new(AtomicUsize::new(0)));
        let mut verdicts = Vec::new();
        for _ in 0..1000 {
            match verifier.turn(pair(1)) {
                Turn::Shared(verdict) => verdicts.push(verdict),
                Turn::Mine(ticket) => {
                    let checks = checks.clone();
                    let slow = move || checks.fetch_add(1, Ordering::SeqCst) == 0;
                    verdicts.push(ticket.check(slow, |_| ()));
                }
                Turn::Full => panic!("one pair is not too many"),
            }
        }
        for verdict in verdicts {
            assert!(right(verdict).await);
        }
        assert_eq!(checks.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn beyond_a_bound_nobody_waits() {
        let verifier = Verifier::default();
        let mut tickets = Vec::new();
        for n in 0..WAITING_MAX {
            match verifier.turn(pair(n)) {
                Turn::Mine(ticket) => tickets.push(ticket),
                Turn::Shared(_) | Turn::Full => panic!("there is room for {n}"),
            }
        }
        assert!(matches!(verifier.turn(pair(WAITING_MAX)), Turn::Full));
        assert!(matches!(verifier.turn(pair(0)), Turn::Shared(_)));
        tickets.pop();
        assert!(matches!(verifier.turn(pair(WAITING_MAX)), Turn::Mine(_)));
    }

    #[tokio::test]
    async fn a_check_that_is_lost_proves_nothing() {
        let verifier = Verifier::default();
        let Turn::Mine(ticket) = verifier.turn(pair(1)) else {
            panic!("there is room");
        };
        let Turn::Shared(verdict) = verifier.turn(pair(1)) else {
            panic!("somebody checks it");
        };
        drop(ticket);
        assert!(!right(verdict).await);
    }
}
