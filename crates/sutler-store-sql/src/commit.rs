//! One attempt of a commit. Retries: `commit_retry.rs`.

use crate::commit_retry::{CommitAttempt, Committer, UnresolvedCommits, verdict_of};
use crate::commit_rows::CommitRows;
use crate::dialect::Dialect;
use crate::error::SqlError;
use crate::query::finish;
use crate::store::SqlShared;
use crate::wakeups::Wakeups;

impl<D: Dialect> Committer for SqlShared<D> {
    type Session = D::Session;

    fn unresolved(&self) -> &UnresolvedCommits<D::Session> {
        &self.unresolved
    }

    fn wakeups(&self) -> &Wakeups {
        &self.wakeups
    }

    async fn try_commit(&self, rows: &CommitRows<'_>) -> CommitAttempt<D::Session> {
        let mut pooled = match self.pool.acquire().await {
            Ok(pooled) => pooled,
            Err(error) => return CommitAttempt::Settled(Err(error.into_commit_error())),
        };
        let session = pooled.connection().session.clone();
        let stale = !pooled.is_fresh();
        let answer = D::send_commit(self, &mut pooled, rows).await;
        match finish(pooled, answer) {
            Ok(verdict) => CommitAttempt::Settled(verdict_of(verdict)),
            Err(error @ (SqlError::Lost(_) | SqlError::Odd(_))) => CommitAttempt::Broke {
                error,
                session,
                stale,
            },
            Err(error) => D::refused_commit(error),
        }
    }

    async fn end_session(&self, session: &D::Session) -> Result<bool, SqlError> {
        D::end_session(self, session).await
    }
}
