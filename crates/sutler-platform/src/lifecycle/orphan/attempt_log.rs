//! What was tried to delete an orphan, as it is shown: the first attempt and the last ones.
//!
//! Attempts with the same outcome and the same words of the broker are one entry, so that a week of "later" does not push
//! out what happened before. Nothing is decided by it.

use crate::lifecycle::intent::BrokerStatement;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Entries that are kept besides the first one.
pub const ATTEMPTS_KEPT: usize = 20;
/// Longest text of a broker in an entry, in characters: the whole log fits into a document.
const STATEMENT_CHARS_MAX: usize = 1_000;

/// The first attempt and the last ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptLog {
    /// Attempts so far, of all rounds.
    pub total: u64,
    /// The first entry, once it is no longer among the last ones.
    pub first: Option<OrphanAttempt>,
    /// The last entries, oldest first.
    pub last: VecDeque<OrphanAttempt>,
}

/// An attempt, or several in a row that ended alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrphanAttempt {
    /// Number of the first of them, from 1.
    pub number: u64,
    /// How many they are.
    pub times: u64,
    /// When the last of them ended.
    pub ended: Timestamp,
    /// How.
    pub outcome: AttemptOutcome,
    /// Words of the broker, bounded.
    pub statement: Option<BrokerStatement>,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttemptOutcome {
    /// The broker says that nothing is there.
    Deleted,
    /// The same, but a create could still arrive.
    TooEarly,
    /// The broker refused.
    Rejected,
    /// The broker failed.
    BrokerError,
    /// The broker gave up, or took too long.
    StillThere,
    /// An answer that is no proof.
    NoProof,
    /// There was no answer, or it cannot be read.
    Unknown,
    /// The process ended before the answer.
    Interrupted,
    /// The broker asked to come later.
    Later,
    /// The broker was not reached.
    NotSent,
    /// The broker refused the credentials.
    Unauthorized,
}

impl AttemptLog {
    /// Adds an attempt.
    pub(super) fn add(
        &mut self,
        ended: Timestamp,
        outcome: AttemptOutcome,
        statement: Option<BrokerStatement>,
    ) {
        self.total = self.total.saturating_add(1);
        let statement = statement.map(bounded);
        if let Some(last) = self.last.back_mut()
            && last.outcome == outcome
            && last.statement == statement
        {
            last.times = last.times.saturating_add(1);
            last.ended = ended;
            return;
        }
        self.last.push_back(OrphanAttempt {
            number: self.total,
            times: 1,
            ended,
            outcome,
            statement,
        });
        while self.last.len() > ATTEMPTS_KEPT {
            let oldest = self.last.pop_front();
            if self.first.is_none() {
                self.first = oldest;
            }
        }
    }
}

fn bounded(statement: BrokerStatement) -> BrokerStatement {
    BrokerStatement {
        status: statement.status,
        error: statement.error.map(shortened),
        description: statement.description.map(shortened),
    }
}

fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(STATEMENT_CHARS_MAX) {
        text.truncate(end);
    }
    text
}
