//! A commit prepared for the writer by its caller.
//!
//! The writer is one thread and the bottleneck of the store, so everything that can be computed
//! in advance is computed here, on the caller's thread. Not here: checking the expectations
//! (`writer/apply.rs`).

use crate::codec::put_term;
use crate::interned_strings::{self, Interner, Word};
use sutler_journal::{Commit, NewOperation, Term, Write};

/// A commit, with precomputed data for the writer.
pub(crate) struct StagedCommit {
    pub(crate) commit: Commit,
    /// One for each write, in the same order.
    pub(crate) extras: Vec<WriteExtra>,
}

/// Precomputed data of one write.
pub(crate) enum WriteExtra {
    /// Nothing.
    None,
    /// The terms of a document, encoded for its row.
    Terms(Vec<u8>),
    /// The numbers of an operation's queue and verb.
    QueueAndVerb {
        /// Of the queue.
        queue: i64,
        /// Of the verb.
        verb: i64,
    },
}

/// Prepares a commit, or returns the strings that the writer must intern first.
pub(crate) fn stage(commit: &Commit, known: &Interner) -> Result<Box<StagedCommit>, Vec<Word>> {
    let mut missing = Vec::new();
    let mut number = |word: Word| match known.number(&word) {
        Some(number) => number,
        None => {
            missing.push(word);
            0
        }
    };
    let extras = commit
        .writes()
        .iter()
        .map(|write| match write {
            Write::Put { key, terms, .. } => {
                let scope =
                    |term: &Term| interned_strings::scope(key.realm(), key.kind(), &term.name);
                WriteExtra::Terms(encode(terms, |term| number(scope(term))))
            }
            Write::Start(NewOperation { queue, verb, .. }) => WriteExtra::QueueAndVerb {
                queue: number(interned_strings::queue(queue.as_str())),
                verb: number(interned_strings::verb(verb)),
            },
            Write::Import(operation) => WriteExtra::QueueAndVerb {
                queue: number(interned_strings::queue(operation.row.queue.as_str())),
                verb: number(interned_strings::verb(&operation.row.verb)),
            },
            Write::Remove(_)
            | Write::Advance { .. }
            | Write::Cancel(_)
            | Write::Wake(_)
            | Write::Unpin(_)
            | Write::Reseal { .. } => WriteExtra::None,
        })
        .collect();
    if !missing.is_empty() {
        return Err(missing);
    }
    Ok(Box::new(StagedCommit {
        commit: commit.clone(),
        extras,
    }))
}

fn encode(terms: &[Term], mut number: impl FnMut(&Term) -> i64) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(terms.iter().map(|term| term.value.len() + 4).sum());
    for (n, term) in terms.iter().enumerate() {
        // A duplicate term is stored once.
        if !terms.get(..n).unwrap_or_default().contains(term) {
            put_term(&mut encoded, number(term), &term.value);
        }
    }
    encoded
}
