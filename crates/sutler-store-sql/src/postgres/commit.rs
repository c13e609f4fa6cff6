//! A commit: one statement, and what is done when its answer does not come.
//!
//! A commit whose connection broke may still be on its way to a session that lives. Before the same
//! commit is sent again, that session is ended: so "stale" is never answered to a commit that is
//! applied later. What a session had finished by then, the repeat finds in the feed.

use super::answers::finish;
use super::connect::Session;
use super::ids::Id;
use super::read::one;
use super::{Shared, sql};
use crate::hints;
use crate::staged::{Row, Staged};
use crate::trouble::Trouble;
use sqlx::Arguments;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArguments, PgRow};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use sutler_journal::{Commit, CommitError, CommitId, StoreError, Which};
use tokio::time::sleep;

/// How often a commit is tried that another got in the way of.
const TRIES: usize = 8;
/// Most commits of unknown fate that are remembered with their session; who repeats does so at once.
const UNRESOLVED_MAX: usize = 4096;
/// How often it is looked whether a session has ended, and how long the wait is at first.
const LOOKS: u32 = 8;
const FIRST_LOOK: Duration = Duration::from_millis(2);

/// Commits whose answer never came, and the sessions that had them.
#[derive(Default)]
pub(super) struct Unresolved(Mutex<VecDeque<(CommitId, Session)>>);

impl Unresolved {
    fn add(&self, commit: CommitId, session: Session) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() == UNRESOLVED_MAX {
            all.pop_front();
        }
        all.push_back((commit, session));
    }

    fn sessions(&self, commit: CommitId) -> Vec<Session> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_commit = all.iter().filter(|(id, _)| *id == commit);
        of_commit.map(|(_, session)| *session).collect()
    }

    fn forget(&self, commit: CommitId, session: Session) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|entry| *entry != (commit, session));
    }
}

/// What one try came to.
enum Try {
    Settled(Result<(), CommitError>),
    /// Somebody got in the way; nothing was written.
    Again(Trouble),
    /// A connection broke that may have been broken before; the session is remembered.
    Broke(Trouble),
}

impl Shared {
    pub(super) async fn commit(&self, commit: &Commit) -> Result<(), CommitError> {
        commit.check().map_err(|reason| {
            CommitError::NotWritten(StoreError::caused("the commit cannot be taken", reason))
        })?;
        let staged = Staged::of(commit);
        let mut broke = false;
        for n in 0..TRIES {
            let resolved = self.resolve(commit.id()).await;
            resolved.map_err(|trouble| unknown(&trouble))?;
            match self.try_commit(commit, &staged).await {
                Try::Settled(result) => {
                    if result.is_ok() && hints::is_worth_a_hint(commit) {
                        self.hints.everywhere();
                    }
                    return match result {
                        // This try was not written; an earlier one may have been.
                        Err(CommitError::NotWritten(error)) if broke => {
                            Err(CommitError::Unknown(error))
                        }
                        result => result,
                    };
                }
                Try::Again(trouble) if n + 1 == TRIES => return Err(trouble.into_commit_error()),
                Try::Again(_) => {}
                Try::Broke(trouble) if broke => return Err(unknown(&trouble)),
                Try::Broke(_) => broke = true,
            }
        }
        Err(CommitError::NotWritten(StoreError::new(
            "others were always in the way of this commit: try again",
        )))
    }

    async fn try_commit(&self, commit: &Commit, staged: &Staged<'_>) -> Try {
        let mut lent = match self.pool.lend().await {
            Ok(lent) => lent,
            Err(trouble) => return Try::Settled(Err(trouble.into_commit_error())),
        };
        let session = lent.line().session;
        let fresh = lent.is_fresh();
        let answer = self
            .send(&mut lent, sql::COMMIT, &|a| fill(a, staged))
            .await;
        match finish(lent, answer) {
            Ok(found) => match one_verdict(&found) {
                Ok(verdict) => Try::Settled(verdict_of(verdict)),
                Err(trouble) => Try::Settled(Err(trouble.into_commit_error())),
            },
            Err(trouble @ (Trouble::Lost(_) | Trouble::Odd(_))) => {
                self.unresolved.add(commit.id(), session);
                match fresh {
                    true => Try::Settled(Err(unknown(&trouble))),
                    false => Try::Broke(trouble),
                }
            }
            Err(trouble) => refusal(trouble),
        }
    }

    /// Ends every session that may still have this commit before it.
    async fn resolve(&self, commit: CommitId) -> Result<(), Trouble> {
        for session in self.unresolved.sessions(commit) {
            self.end_session(session).await?;
            self.unresolved.forget(commit, session);
        }
        Ok(())
    }

    async fn end_session(&self, session: Session) -> Result<(), Trouble> {
        let mut wait = FIRST_LOOK;
        for _ in 0..LOOKS {
            let left = self
                .ask(sql::END_SESSION, &|a| {
                    a.add(session.process)?;
                    a.add(session.began)
                })
                .await?;
            if left.is_empty() {
                return Ok(());
            }
            sleep(wait).await;
            wait *= 2;
        }
        Err(Trouble::Lost(
            "the session that had the commit has not ended yet".into(),
        ))
    }
}

fn unknown(trouble: &Trouble) -> CommitError {
    CommitError::Unknown(StoreError::new(trouble.sentence()))
}

fn one_verdict(found: &[PgRow]) -> Result<i32, Trouble> {
    match found.first() {
        Some(row) => super::rows::column(row, 0),
        None => one(found).map(|_| 0),
    }
}

/// What the function answered: 0, an expectation from 1, or a write from -1.
fn verdict_of(verdict: i32) -> Result<(), CommitError> {
    let place = |n: i32| usize::try_from(n - 1).unwrap_or_default();
    match verdict {
        0 => Ok(()),
        n if n > 0 => Err(CommitError::Stale(Which::Expect(place(n)))),
        n => Err(CommitError::Stale(Which::Write(place(-n)))),
    }
}

/// What the server's refusal means for a commit; the codes beginning with SU are our own.
fn refusal(trouble: Trouble) -> Try {
    let Trouble::Refused { code, said } = &trouble else {
        return Try::Settled(Err(trouble.into_commit_error()));
    };
    match code.as_str() {
        "SU000" => Try::Settled(Ok(())),
        "SU001" => Try::Settled(match said.parse::<i32>() {
            Ok(n) => verdict_of(-n),
            Err(_) => Err(unknown(&trouble)),
        }),
        // Two made the same thing at once, or locked the same things: one of them gave way.
        "23505" | "40001" | "40P01" => Try::Again(trouble),
        _ => Try::Settled(Err(trouble.into_commit_error())),
    }
}

/// The commit as parameters of the function, in their order.
pub(super) fn fill(to: &mut PgArguments, staged: &Staged<'_>) -> Result<(), BoxDynError> {
    let locks: Vec<i64> = staged.locks.iter().map(|(number, _)| *number).collect();
    let shared: Vec<bool> = staged.locks.iter().map(|(_, shared)| *shared).collect();
    let operations: Vec<Id> = staged.operations.iter().map(|id| Id(*id)).collect();
    to.add(Id(staged.id))?;
    to.add(locks)?;
    to.add(shared)?;
    to.add(operations)?;
    let wanted = &staged.expects;
    to.add(wanted.iter().map(|w| w.kind).collect::<Vec<i16>>())?;
    to.add(wanted.iter().map(|w| w.key).collect::<Vec<_>>())?;
    to.add(wanted.iter().map(|w| w.id.map(Id)).collect::<Vec<_>>())?;
    to.add(wanted.iter().map(|w| w.fence).collect::<Vec<_>>())?;
    let rows = &staged.writes;
    to.add(rows.iter().map(|w| w.kind).collect::<Vec<i16>>())?;
    to.add(rows.iter().map(|w| w.key).collect::<Vec<_>>())?;
    to.add(rows.iter().map(|w| w.id.map(Id)).collect::<Vec<_>>())?;
    to.add(rows.iter().map(|w| w.worker.map(Id)).collect::<Vec<_>>())?;
    to.add(rows.iter().map(|w| w.state).collect::<Vec<_>>())?;
    to.add(rows.iter().map(|w| w.wait).collect::<Vec<_>>())?;
    to.add(rows.iter().map(|w| w.verb).collect::<Vec<_>>())?;
    to.add(rows.iter().map(|w| w.queue).collect::<Vec<_>>())?;
    for part in [
        |w: &Row<'_>| w.a.map(<[u8]>::to_vec),
        |w: &Row<'_>| w.b.map(<[u8]>::to_vec),
        |w: &Row<'_>| w.c.map(<[u8]>::to_vec),
        |w: &Row<'_>| w.d.map(<[u8]>::to_vec),
        |w: &Row<'_>| w.e.map(<[u8]>::to_vec),
    ] {
        to.add(rows.iter().map(part).collect::<Vec<_>>())?;
    }
    to.add(rows.iter().map(|w| &w.subject[..]).collect::<Vec<_>>())?;
    fill_terms(to, rows)
}

fn fill_terms(to: &mut PgArguments, rows: &[Row<'_>]) -> Result<(), BoxDynError> {
    let mut before: Vec<i32> = vec![0];
    let mut count = 0;
    for row in rows {
        count += i32::try_from(row.terms.len())?;
        before.push(count);
    }
    let terms = || rows.iter().flat_map(|row| &row.terms);
    to.add(before)?;
    to.add(terms().map(|(scope, _)| &scope[..]).collect::<Vec<_>>())?;
    to.add(terms().map(|(_, value)| *value).collect::<Vec<_>>())?;
    let numbers = rows.iter().filter_map(|row| row.numbers).flatten();
    to.add(numbers.collect::<Vec<Option<i64>>>())
}
