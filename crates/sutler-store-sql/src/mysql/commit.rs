//! A commit: one call of a procedure, and what its answer means. How it is tried: `committing.rs`.

use super::answers::finish;
use super::connect::Session;
use super::packed::pack;
use super::{Shared, sql};
use crate::committing::{Committer, Try, Unresolved, verdict_of};
use crate::hints::Hints;
use crate::rows::{Cells as _, one};
use crate::staged::Staged;
use crate::trouble::Trouble;
use sqlx::{Arguments, AssertSqlSafe, Executor};

impl Committer for Shared {
    type Session = Session;

    fn unresolved(&self) -> &Unresolved<Session> {
        &self.unresolved
    }

    fn hints(&self) -> &Hints {
        &self.hints
    }

    async fn try_commit(&self, staged: &Staged<'_>) -> Try<Session> {
        let packed = pack(staged);
        let mut lent = match self.pool.lend().await {
            Ok(lent) => lent,
            Err(trouble) => return Try::Settled(Err(trouble.into_commit_error())),
        };
        let session = lent.line().session.clone();
        let stale = !lent.is_fresh();
        let answer = self
            .send(&mut lent, sql::COMMIT, &|a| {
                a.add(&staged.id.as_bytes()[..])?;
                a.add(&packed.head[..])?;
                a.add(&packed.data[..])
            })
            .await;
        match finish(lent, answer).and_then(|found| one(&found)) {
            Ok(verdict) => Try::Settled(verdict_of(verdict)),
            Err(trouble @ (Trouble::Lost(_) | Trouble::Odd(_))) => Try::Broke {
                trouble,
                session,
                stale,
            },
            Err(trouble) => refusal(trouble),
        }
    }

    async fn end_session(&self, session: &Session) -> Result<bool, Trouble> {
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
        let mut lent = self.pool.lend().await?;
        let kill = AssertSqlSafe(format!("KILL CONNECTION {number}"));
        if lent.line().connection.execute(kill).await.is_ok() {
            lent.keep();
        }
        Ok(false)
    }
}

/// What the server's refusal means for a commit.
fn refusal(trouble: Trouble) -> Try<Session> {
    match &trouble {
        // Two made the same thing at once, or locked the same things: one of them gave way.
        Trouble::Refused { code, .. } if ["1062", "1213"].contains(&code.as_str()) => {
            Try::Again(trouble)
        }
        _ => Try::Settled(Err(trouble.into_commit_error())),
    }
}
