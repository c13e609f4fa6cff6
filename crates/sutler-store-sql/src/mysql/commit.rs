//! A commit: one call of a procedure, and what its answer means. How it is tried: `commit_retry.rs`.

use super::connect::Session;
use super::procedure_args::pack;
use super::query::finish;
use super::{SqlShared, sql};
use crate::commit_retry::{CommitAttempt, Committer, UnresolvedCommits, verdict_of};
use crate::commit_rows::CommitRows;
use crate::error::SqlError;
use crate::rows::{Cells as _, one};
use crate::wakeups::Wakeups;
use sqlx::{Arguments, AssertSqlSafe, Executor};

impl Committer for SqlShared {
    type Session = Session;

    fn unresolved(&self) -> &UnresolvedCommits<Session> {
        &self.unresolved
    }

    fn hints(&self) -> &Wakeups {
        &self.hints
    }

    async fn try_commit(&self, staged: &CommitRows<'_>) -> CommitAttempt<Session> {
        let packed = pack(staged);
        let mut pooled = match self.pool.acquire().await {
            Ok(pooled) => pooled,
            Err(trouble) => return CommitAttempt::Settled(Err(trouble.into_commit_error())),
        };
        let session = pooled.connection().session.clone();
        let stale = !pooled.is_fresh();
        let answer = self
            .send(&mut pooled, sql::COMMIT, &|a| {
                a.add(&staged.id.as_bytes()[..])?;
                a.add(&packed.head[..])?;
                a.add(&packed.data[..])
            })
            .await;
        match finish(pooled, answer).and_then(|found| one(&found)) {
            Ok(verdict) => CommitAttempt::Settled(verdict_of(verdict)),
            Err(trouble @ (SqlError::Lost(_) | SqlError::Odd(_))) => CommitAttempt::Broke {
                trouble,
                session,
                stale,
            },
            Err(trouble) => refusal(trouble),
        }
    }

    async fn end_session(&self, session: &Session) -> Result<bool, SqlError> {
        let found = self
            .ask(sql::FIND_SESSION, &|a| a.add(&session.0[..]))
            .await?;
        let number = match found.first() {
            Some(row) => row.integer(0)?,
            None => None,
        };
        let Some(number) = number else {
            return Ok(true);
        };
        let mut pooled = self.pool.acquire().await?;
        let kill = AssertSqlSafe(format!("KILL CONNECTION {number}"));
        if pooled.connection().connection.execute(kill).await.is_ok() {
            pooled.keep();
        }
        Ok(false)
    }
}

/// What the server's refusal means for a commit.
fn refusal(trouble: SqlError) -> CommitAttempt<Session> {
    match &trouble {
        // Two made the same thing at once, or locked the same things: one of them gave way.
        SqlError::Refused { code, .. } if ["1062", "1213"].contains(&code.as_str()) => {
            CommitAttempt::Again(trouble)
        }
        _ => CommitAttempt::Settled(Err(trouble.into_commit_error())),
    }
}
