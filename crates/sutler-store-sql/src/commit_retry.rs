//! Retries of a commit, and handling of lost responses: the same for every server.
//!
//! A commit whose connection broke may still be in flight to a live session. Before the same
//! commit is sent again, that session is ended: so "stale" is never returned for a commit that is
//! applied later. If the session had applied it by then, the repeat finds it in the feed.

use crate::commit_rows::CommitRows;
use crate::error::SqlError;
use crate::wakeups::Wakeups;
use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use sutler_journal::{Commit, CommitError, CommitId, StaleItem, StoreError};
use tokio::time::sleep;

/// Attempts of a commit that other transactions interfere with.
const TRIES: usize = 8;
/// Maximum commits of unknown outcome that are remembered with their session; repeats come soon.
const UNRESOLVED_MAX: usize = 4096;
/// Checks whether a session has ended, and the first pause between two.
const LOOKS: u32 = 8;
const FIRST_LOOK: Duration = Duration::from_millis(2);

/// Commits without a response, and their sessions.
pub(crate) struct UnresolvedCommits<S>(Mutex<VecDeque<(CommitId, S)>>);

impl<S> Default for UnresolvedCommits<S> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<S: Clone + PartialEq> UnresolvedCommits<S> {
    fn add(&self, commit: CommitId, session: S) {
        let mut all = self.all();
        if all.len() == UNRESOLVED_MAX {
            all.pop_front();
        }
        all.push_back((commit, session));
    }

    fn sessions(&self, commit: CommitId) -> Vec<S> {
        let all = self.all();
        let of_commit = all.iter().filter(|(id, _)| *id == commit);
        of_commit.map(|(_, session)| session.clone()).collect()
    }

    fn forget(&self, commit: CommitId, session: &S) {
        self.all().retain(|(id, of)| *id != commit || of != session);
    }

    fn all(&self) -> MutexGuard<'_, VecDeque<(CommitId, S)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Result of one attempt.
pub enum CommitAttempt<S> {
    Settled(Result<(), CommitError>),
    /// Another transaction interfered; nothing was written.
    Again(SqlError),
    /// The connection broke; this session may still have the commit. `stale`: it may have been broken
    /// before the commit was sent.
    Broke {
        error: SqlError,
        session: S,
        stale: bool,
    },
}

/// A store that can attempt a commit.
pub(crate) trait Committer: Sync {
    /// Id of a session of the server; never reused.
    type Session: Clone + PartialEq + Send + Sync;
    /// Commits without a response.
    fn unresolved(&self) -> &UnresolvedCommits<Self::Session>;
    /// Wakes workers when an operation becomes claimable.
    fn wakeups(&self) -> &Wakeups;
    /// Makes one attempt.
    fn try_commit(
        &self,
        staged: &CommitRows<'_>,
    ) -> impl Future<Output = CommitAttempt<Self::Session>> + Send;
    /// Ends a session. Returns whether it is gone already.
    fn end_session(
        &self,
        session: &Self::Session,
    ) -> impl Future<Output = Result<bool, SqlError>> + Send;
}

/// Commits, in as many attempts as needed.
pub(crate) async fn commit<C: Committer>(store: &C, commit: &Commit) -> Result<(), CommitError> {
    commit.check().map_err(|reason| {
        CommitError::NotWritten(StoreError::caused("the commit cannot be taken", reason))
    })?;
    let staged = CommitRows::of(commit);
    let (mut broke, mut left) = (false, TRIES);
    loop {
        let resolved = resolve(store, commit.id()).await;
        resolved.map_err(|trouble| unknown(&trouble))?;
        let tried = store.try_commit(&staged).await;
        left -= 1;
        let breaks = match &tried {
            CommitAttempt::Broke { session, .. } => {
                store.unresolved().add(commit.id(), session.clone());
                true
            }
            CommitAttempt::Settled(_) | CommitAttempt::Again(_) => false,
        };
        if let Some(answer) = answer_to(tried, broke, left) {
            if answer.is_ok() {
                store.wakeups().feed_moved();
                if commit.is_worth_a_hint() {
                    store.wakeups().everywhere();
                }
            }
            return answer;
        }
        broke |= breaks;
    }
}

/// Result after an attempt; `None`: try again. `broke`: an earlier attempt broke and may have been
/// applied, so `NotWritten` is not certain. `left`: number of attempts left. Pure.
fn answer_to<S>(
    tried: CommitAttempt<S>,
    broke: bool,
    left: usize,
) -> Option<Result<(), CommitError>> {
    let answer = match tried {
        CommitAttempt::Settled(answer) => answer,
        CommitAttempt::Again(_) if left > 0 => return None,
        CommitAttempt::Again(trouble) => Err(trouble.into_commit_error()),
        CommitAttempt::Broke { stale: true, .. } if !broke && left > 0 => return None,
        CommitAttempt::Broke { error, .. } => Err(unknown(&error)),
    };
    Some(match answer {
        Err(CommitError::NotWritten(error)) if broke => Err(CommitError::Unknown(error)),
        answer => answer,
    })
}

/// Ends every session that may still have this commit.
async fn resolve<C: Committer>(store: &C, commit: CommitId) -> Result<(), SqlError> {
    for session in store.unresolved().sessions(commit) {
        let mut wait = FIRST_LOOK;
        let mut gone = store.end_session(&session).await?;
        for _ in 0..LOOKS {
            if gone {
                break;
            }
            sleep(wait).await;
            wait *= 2;
            gone = store.end_session(&session).await?;
        }
        if !gone {
            let said = "the session that had the commit has not ended yet";
            return Err(SqlError::Lost(said.into()));
        }
        store.unresolved().forget(commit, &session);
    }
    Ok(())
}

pub(crate) fn unknown(trouble: &SqlError) -> CommitError {
    CommitError::Unknown(StoreError::new(trouble.sentence()))
}

/// Decodes the result of the server: 0, an expectation from 1, or a write from -1.
pub(crate) fn verdict_of(verdict: i64) -> Result<(), CommitError> {
    let place = |n: i64| usize::try_from(n - 1).unwrap_or_default();
    match verdict {
        0 => Ok(()),
        n if n > 0 => Err(CommitError::Stale(StaleItem::Expect(place(n)))),
        n => Err(CommitError::Stale(StaleItem::Write(place(-n)))),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        CommitAttempt, Committer, TRIES, UnresolvedCommits, answer_to, commit, verdict_of,
    };
    use crate::commit_rows::CommitRows;
    use crate::error::SqlError;
    use crate::wakeups::Wakeups;
    use std::sync::Mutex;
    use sutler_journal::{Commit, CommitError, StaleItem, StoreError};

    /// Scripted outcomes of attempts, and sessions that end or do not.
    struct Script {
        tries: Mutex<Vec<CommitAttempt<u32>>>,
        unresolved: UnresolvedCommits<u32>,
        wakeups: Wakeups,
        sessions_end: bool,
    }

    impl Script {
        fn of(mut tries: Vec<CommitAttempt<u32>>, sessions_end: bool) -> Self {
            tries.reverse();
            Self {
                tries: Mutex::new(tries),
                unresolved: UnresolvedCommits::default(),
                wakeups: Wakeups::default(),
                sessions_end,
            }
        }
    }

    impl Committer for Script {
        type Session = u32;
        fn unresolved(&self) -> &UnresolvedCommits<u32> {
            &self.unresolved
        }
        fn wakeups(&self) -> &Wakeups {
            &self.wakeups
        }
        async fn try_commit(&self, _: &CommitRows<'_>) -> CommitAttempt<u32> {
            self.tries.lock().unwrap().pop().expect("one try too many")
        }
        async fn end_session(&self, _: &u32) -> Result<bool, SqlError> {
            Ok(self.sessions_end)
        }
    }

    fn broke(stale: bool) -> CommitAttempt<u32> {
        CommitAttempt::Broke {
            error: SqlError::Lost("reset".into()),
            session: 7,
            stale,
        }
    }

    #[tokio::test]
    async fn a_broken_idle_connection_is_retried_once() {
        let store = Script::of(vec![broke(true), CommitAttempt::Settled(Ok(()))], true);
        assert!(commit(&store, &Commit::new()).await.is_ok());
        let store = Script::of(vec![broke(true), broke(true)], true);
        let answer = commit(&store, &Commit::new()).await;
        assert!(matches!(answer, Err(CommitError::Unknown(_))));
    }

    #[tokio::test]
    async fn after_a_break_nothing_is_certainly_not_written() {
        let down = CommitAttempt::Settled(Err(CommitError::NotWritten(StoreError::new("down"))));
        let store = Script::of(vec![broke(true), down], true);
        let answer = commit(&store, &Commit::new()).await;
        assert!(matches!(answer, Err(CommitError::Unknown(_))));
    }

    fn in_the_way() -> CommitAttempt<u32> {
        CommitAttempt::Again(SqlError::Refused {
            code: "40001".into(),
            said: "no".into(),
        })
    }

    #[test]
    fn a_break_leaves_every_later_failure_uncertain() {
        let down = || CommitAttempt::Settled(Err(CommitError::NotWritten(StoreError::new("down"))));
        for left in [0, 1, TRIES - 1] {
            for tried in [in_the_way(), down(), broke(true), broke(false)] {
                match answer_to(tried, true, left) {
                    None => assert!(left > 0, "there is no other try"),
                    Some(answer) => assert!(matches!(answer, Err(CommitError::Unknown(_)))),
                }
            }
        }
    }

    /// Other transactions interfere in every attempt except the one that breaks, if there is one.
    #[tokio::test]
    async fn a_commit_after_conflicts_is_not_written_unless_an_attempt_broke() {
        for at in [None, Some(0), Some(TRIES / 2), Some(TRIES - 1)] {
            let tries = (0..TRIES).map(|n| match Some(n) == at {
                true => broke(true),
                false => in_the_way(),
            });
            let store = Script::of(tries.collect(), true);
            match (commit(&store, &Commit::new()).await, at) {
                (Err(CommitError::NotWritten(_)), None)
                | (Err(CommitError::Unknown(_)), Some(_)) => {}
                (answer, _) => panic!("{answer:?} after a break at {at:?}"),
            }
        }
    }

    #[tokio::test]
    async fn nothing_is_tried_while_an_earlier_session_lives() {
        let store = Script::of(vec![broke(false)], false);
        let lost = Commit::new();
        for _ in 0..2 {
            let answer = commit(&store, &lost).await;
            assert!(matches!(answer, Err(CommitError::Unknown(_))));
        }
    }

    #[test]
    fn verdicts_have_indexes_from_zero() {
        let which = |verdict| match verdict_of(verdict) {
            Err(CommitError::Stale(which)) => Some(which),
            _ => None,
        };
        assert_eq!(which(0), None);
        assert_eq!(which(1), Some(StaleItem::Expect(0)));
        assert_eq!(which(-3), Some(StaleItem::Write(2)));
    }
}
