//! Slow password checks: off the threads that serve, few at a time, with a short queue.
//!
//! Concurrent requests with the same pair share one check. A caller that disconnects does not stop its check: the next
//! request finds the result in the cache. The consequences of a check are in `users.rs`.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use tokio::sync::{Semaphore, watch};

/// Maximum distinct pairs that are checked or wait for it.
const WAITING_MAX: usize = 32;

/// Checks at a time, over all users of this process: at most a quarter of the processors, so that guesses leave the
/// rest to authenticated callers.
static RUNNING: LazyLock<Semaphore> = LazyLock::new(|| {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    Semaphore::new((processors / 4).max(1))
});

/// Result of a check; `None` until it ended.
type Verdict = watch::Receiver<Option<bool>>;

#[derive(Default)]
pub(super) struct PasswordVerifier(Arc<Mutex<HashMap<[u8; 32], Verdict>>>);

/// How to check a pair.
pub(super) enum HashJob {
    /// A check is in progress.
    Shared(Verdict),
    /// No check is in progress, and there is room for one.
    Mine(HashTicket),
    /// There is no room.
    QueueFull,
}

/// Permission to check a pair, released when dropped.
pub(super) struct HashTicket {
    pair: [u8; 32],
    sender: watch::Sender<Option<bool>>,
    waiting: Arc<Mutex<HashMap<[u8; 32], Verdict>>>,
}

impl PasswordVerifier {
    pub(super) fn turn(&self, pair: [u8; 32]) -> HashJob {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(verdict) = waiting.get(&pair) {
            return HashJob::Shared(verdict.clone());
        }
        if waiting.len() >= WAITING_MAX {
            return HashJob::QueueFull;
        }
        let (sender, verdict) = watch::channel(None);
        waiting.insert(pair, verdict);
        HashJob::Mine(HashTicket {
            pair,
            sender,
            waiting: self.0.clone(),
        })
    }
}

impl HashTicket {
    /// Checks in the background; `ended` is called with the result before waiters get it.
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

impl Drop for HashTicket {
    fn drop(&mut self) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.remove(&self.pair);
    }
}

/// Waits for a result. A check that was dropped counts as failed.
pub(super) async fn right(mut verdict: Verdict) -> bool {
    let ended = verdict.wait_for(Option::is_some).await;
    ended.is_ok_and(|it| *it == Some(true))
}

#[cfg(test)]
mod tests {
    use super::{HashJob, PasswordVerifier, WAITING_MAX, right};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn pair(n: usize) -> [u8; 32] {
        let mut pair = [0; 32];
        pair[..8].copy_from_slice(&n.to_be_bytes());
        pair
    }

    #[tokio::test]
    async fn concurrent_requests_share_one_check_of_a_pair() {
        let (verifier, checks) = (PasswordVerifier::default(), Arc::new(AtomicUsize::new(0)));
        let mut verdicts = Vec::new();
        for _ in 0..1000 {
            match verifier.turn(pair(1)) {
                HashJob::Shared(verdict) => verdicts.push(verdict),
                HashJob::Mine(ticket) => {
                    let checks = checks.clone();
                    let slow = move || checks.fetch_add(1, Ordering::SeqCst) == 0;
                    verdicts.push(ticket.check(slow, |_| ()));
                }
                HashJob::QueueFull => panic!("one pair is not too many"),
            }
        }
        for verdict in verdicts {
            assert!(right(verdict).await);
        }
        assert_eq!(checks.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_full_queue_refuses_further_checks() {
        let verifier = PasswordVerifier::default();
        let mut tickets = Vec::new();
        for n in 0..WAITING_MAX {
            match verifier.turn(pair(n)) {
                HashJob::Mine(ticket) => tickets.push(ticket),
                HashJob::Shared(_) | HashJob::QueueFull => panic!("there is room for {n}"),
            }
        }
        assert!(matches!(
            verifier.turn(pair(WAITING_MAX)),
            HashJob::QueueFull
        ));
        assert!(matches!(verifier.turn(pair(0)), HashJob::Shared(_)));
        tickets.pop();
        assert!(matches!(verifier.turn(pair(WAITING_MAX)), HashJob::Mine(_)));
    }

    #[tokio::test]
    async fn a_dropped_check_counts_as_failed() {
        let verifier = PasswordVerifier::default();
        let HashJob::Mine(ticket) = verifier.turn(pair(1)) else {
            panic!("there is room");
        };
        let HashJob::Shared(verdict) = verifier.turn(pair(1)) else {
            panic!("somebody checks it");
        };
        drop(ticket);
        assert!(!right(verdict).await);
    }
}
