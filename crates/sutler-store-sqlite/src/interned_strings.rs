//! Interned strings: strings that repeat in every row are stored once and are numbers in rows.
//!
//! A string is never removed and never changes its number, so this cache needs no invalidation; it
//! is filled on use. Not here: adding a string to the file, which only the writer does.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// A string as stored: its purpose, then its text.
pub(crate) type Word = Vec<u8>;

const SCOPE: u8 = b's';
const QUEUE: u8 = b'q';
const VERB: u8 = b'v';

/// The string for one term of one kind in one realm.
pub(crate) fn scope(realm: &str, kind: &str, term: &str) -> Word {
    let mut word = vec![SCOPE];
    for part in [realm, kind, term] {
        word.extend_from_slice(part.as_bytes());
        word.push(0);
    }
    word
}

/// The name of the term, in the text of a scope.
pub(crate) fn term_of(scope: &str) -> &str {
    let parts = scope.strip_suffix('\0').unwrap_or(scope);
    parts.rsplit('\0').next().unwrap_or_default()
}

/// The string for a queue.
pub(crate) fn queue(name: &str) -> Word {
    [&[QUEUE], name.as_bytes()].concat()
}

/// The string for a verb.
pub(crate) fn verb(name: &str) -> Word {
    [&[VERB], name.as_bytes()].concat()
}

/// Strings used so far, in both directions.
#[derive(Default)]
pub(crate) struct Interner(RwLock<InternedStrings>);

#[derive(Default)]
struct InternedStrings {
    numbers: HashMap<Word, i64>,
    texts: HashMap<i64, Arc<str>>,
}

impl Interner {
    pub(crate) fn number(&self, word: &[u8]) -> Option<i64> {
        let both = self.0.read().unwrap_or_else(PoisonError::into_inner);
        both.numbers.get(word).copied()
    }

    /// The text of a queue or a verb.
    pub(crate) fn text(&self, number: i64) -> Option<Arc<str>> {
        let both = self.0.read().unwrap_or_else(PoisonError::into_inner);
        both.texts.get(&number).cloned()
    }

    /// Caches a string that is durable in the file.
    pub(crate) fn learn(&self, word: Word, number: i64) {
        let mut both = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(word.get(1..).unwrap_or_default());
        both.texts.insert(number, Arc::from(text));
        both.numbers.insert(word, number);
    }
}
