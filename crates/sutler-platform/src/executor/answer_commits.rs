//! How often, and for how long, the commit of an answer is tried. An answer was received: it is not given up because other
//! writers are first, or because a record that belongs to the commit cannot be read for a moment.
//!
//! What is stored may be such that the answer never fits, or a record may stay unreadable. So the waits between the tries
//! grow, and the tries end after the lifetime of a lease: then the answer is lost, and the next claim finds out what became
//! of the request, as after a crash.

use super::run_error::RunError;
use std::time::Duration;
use sutler_journal::Lost;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Tries that follow each other at once: other writers are first for a moment only.
const WITHOUT_WAIT: u32 = 4;
/// First wait; doubles with each try.
const WAIT_FIRST: Duration = Duration::from_millis(10);
/// Longest wait.
const WAIT_LONGEST: Duration = Duration::from_secs(2);

/// The tries of one answer.
pub(super) struct AnswerCommits {
    tries: u32,
    until: Instant,
}

impl AnswerCommits {
    /// Tries that end when a lease of this lifetime would have run out since the answer.
    pub(super) fn within(lease: Duration) -> Self {
        Self {
            tries: 0,
            until: Instant::now() + lease,
        }
    }

    /// Waits before the next try, as long as the claim is not `lost`. `error` is why the last one was in vain.
    ///
    /// # Errors
    /// The claim was lost, the time is over, or another try would not help.
    pub(super) async fn again(
        &mut self,
        lost: &CancellationToken,
        error: RunError,
    ) -> Result<(), RunError> {
        let wait = self.wait();
        if !error.is_passing() || Instant::now() + wait > self.until {
            return Err(error);
        }
        tracing::debug!(%error, "the commit of an answer is tried again");
        tokio::select! {
            biased;
            () = lost.cancelled() => Err(Lost.into()),
            () = tokio::time::sleep(wait) => Ok(()),
        }
    }

    fn wait(&mut self) -> Duration {
        self.tries += 1;
        let Some(doublings) = self.tries.checked_sub(WITHOUT_WAIT + 1) else {
            return Duration::ZERO;
        };
        let wait = WAIT_FIRST.saturating_mul(2_u32.saturating_pow(doublings));
        wait.min(WAIT_LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::{AnswerCommits, RunError};
    use std::time::Duration;
    use sutler_journal::StoreError;
    use sutler_records::RecordError;
    use tokio::time::Instant;
    use tokio_util::sync::CancellationToken;

    const LEASE: Duration = Duration::from_secs(30);

    async fn tries(error: impl Fn() -> RunError) -> (u32, Duration, RunError) {
        let (mut commits, held) = (AnswerCommits::within(LEASE), CancellationToken::new());
        let begun = Instant::now();
        let mut count = 1;
        loop {
            match commits.again(&held, error()).await {
                Ok(()) => count += 1,
                Err(error) => return (count, begun.elapsed(), error),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn tries_are_few_and_end_within_the_lifetime_of_a_lease() {
        let unread = || RunError::Record(RecordError::Store(StoreError::new("away")));
        for error in [&unread as &dyn Fn() -> RunError, &|| RunError::Contended] {
            let (count, took, last) = tries(error).await;
            assert!((20..40).contains(&count), "{count}");
            assert!(
                took <= LEASE && took > LEASE - Duration::from_secs(3),
                "{took:?}"
            );
            assert_eq!(last.to_string(), error().to_string());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_another_try_does_not_change_ends_at_once() {
        let (count, took, _) = tries(|| RunError::NewerVersion).await;
        assert_eq!((count, took), (1, Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn tries_end_with_the_claim() {
        let lost = CancellationToken::new();
        lost.cancel();
        let mut commits = AnswerCommits::within(LEASE);
        let ended = commits.again(&lost, RunError::Contended).await;
        assert!(matches!(ended, Err(RunError::Lost(_))));
    }
}
