//! A commit: one statement, and decoding of its result. Retries: `commit_retry.rs`; the shorter
//! functions for common commits: `fast_commit.rs`.

use super::connect::Session;
use super::fast_commit::FastCommit;
use super::ids::Id;
use super::{PostgresDialect, sql};
use crate::commit_retry::{CommitAttempt, unknown, verdict_of};
use crate::commit_rows::{CommitRows, WriteRow};
use crate::error::SqlError;
use crate::pool::PooledConnection;
use crate::rows::one;
use crate::store::SqlShared;
use sqlx::Arguments;
use sqlx::error::BoxDynError;
use sqlx::postgres::PgArguments;

/// Sends a commit: through its fast function if there is one, and through the general one if that declines.
pub(super) async fn send(
    shared: &SqlShared<PostgresDialect>,
    pooled: &mut PooledConnection<'_, PostgresDialect>,
    rows: &CommitRows<'_>,
) -> Result<i64, SqlError> {
    if let Some(fast) = FastCommit::of(rows) {
        let fill = |to: &mut PgArguments| fast.fill(to);
        let answer = shared.send(pooled, fast.statement(), &fill).await;
        if let Some(verdict) = FastCommit::verdict(answer) {
            return verdict;
        }
    }
    let fill = |to: &mut PgArguments| fill(to, rows);
    one(&shared.send(pooled, sql::COMMIT, &fill).await?)
}

/// Classifies a refused commit; codes that begin with SU are our own.
pub(super) fn refused(error: SqlError) -> CommitAttempt<Session> {
    let SqlError::Refused { code, said } = &error else {
        return CommitAttempt::Settled(Err(error.into_commit_error()));
    };
    match code.as_str() {
        "SU000" => CommitAttempt::Settled(Ok(())),
        "SU001" => CommitAttempt::Settled(match said.parse::<i64>() {
            Ok(n) => verdict_of(-n),
            Err(_) => Err(unknown(&error)),
        }),
        // Two transactions created or locked the same rows: one of them was rolled back.
        "23505" | "40001" | "40P01" => CommitAttempt::Again(error),
        _ => CommitAttempt::Settled(Err(error.into_commit_error())),
    }
}

/// The commit as parameters of the function, in their order.
pub(super) fn fill(to: &mut PgArguments, staged: &CommitRows<'_>) -> Result<(), BoxDynError> {
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
        |w: &WriteRow<'_>| w.a.map(<[u8]>::to_vec),
        |w: &WriteRow<'_>| w.b.map(<[u8]>::to_vec),
        |w: &WriteRow<'_>| w.c.map(<[u8]>::to_vec),
        |w: &WriteRow<'_>| w.d.map(<[u8]>::to_vec),
        |w: &WriteRow<'_>| w.e.map(<[u8]>::to_vec),
    ] {
        to.add(rows.iter().map(part).collect::<Vec<_>>())?;
    }
    to.add(rows.iter().map(|w| &w.subject[..]).collect::<Vec<_>>())?;
    fill_terms(to, rows)
}

fn fill_terms(to: &mut PgArguments, rows: &[WriteRow<'_>]) -> Result<(), BoxDynError> {
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
