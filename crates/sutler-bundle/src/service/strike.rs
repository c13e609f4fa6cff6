//! Strikes known words out of a stream of bytes, wherever it is cut. Pure.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// What stands in the place of a word.
const STRUCK: &[u8] = b"***";
/// Words are found by so many of their first bytes; shorter ones are never looked for.
const HEAD: usize = 2;

/// Words that are looked for, all at once.
pub(super) struct Words {
    /// By their beginning; longest first, so that a word that begins another leaves nothing of it.
    by_head: HashMap<[u8; HEAD], Vec<Vec<u8>>>,
    longest: usize,
}

impl Words {
    pub(super) fn new(words: BTreeSet<Vec<u8>>) -> Self {
        let longest = words.iter().map(Vec::len).max().unwrap_or_default();
        let mut by_head: HashMap<[u8; HEAD], Vec<Vec<u8>>> = HashMap::new();
        for word in words {
            if let Some(head) = word.first_chunk::<HEAD>() {
                by_head.entry(*head).or_default().push(word);
            }
        }
        for alike in by_head.values_mut() {
            alike.sort_by_key(|word| std::cmp::Reverse(word.len()));
        }
        Self { by_head, longest }
    }

    /// The longest word that these bytes begin with.
    fn at(&self, bytes: &[u8]) -> Option<&[u8]> {
        let alike = self.by_head.get(bytes.first_chunk::<HEAD>()?)?;
        let found = alike.iter().find(|word| bytes.starts_with(word));
        found.map(Vec::as_slice)
    }
}

/// Strikes words out of one stream.
pub(super) struct Striker {
    words: Arc<Words>,
    held: Vec<u8>,
}

impl Striker {
    pub(super) fn new(words: Arc<Words>) -> Self {
        Self {
            words,
            held: Vec::new(),
        }
    }

    /// Takes bytes, and gives those of which it is known that no word begins in them.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        self.strike(self.words.longest.max(1))
    }

    /// Gives what is left: nothing follows.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        self.strike(1)
    }

    /// Decides every place that has `ahead` bytes to look at.
    fn strike(&mut self, ahead: usize) -> Vec<u8> {
        let mut clean = Vec::with_capacity(self.held.len());
        let mut at = 0;
        while at + ahead <= self.held.len() {
            let rest = &self.held[at..];
            match self.words.at(rest) {
                Some(word) => {
                    clean.extend_from_slice(STRUCK);
                    at += word.len();
                }
                None => {
                    clean.push(rest[0]);
                    at += 1;
                }
            }
        }
        self.held.drain(..at);
        clean
    }
}

#[cfg(test)]
mod tests {
    use super::{Striker, Words};
    use std::sync::Arc;

    fn struck(words: &[&str], pieces: &[&[u8]]) -> String {
        let words = words.iter().map(|it| it.as_bytes().to_vec()).collect();
        let mut striker = Striker::new(Arc::new(Words::new(words)));
        let mut clean = Vec::new();
        for piece in pieces {
            clean.extend(striker.feed(piece));
        }
        clean.extend(striker.finish());
        String::from_utf8(clean).expect("text")
    }

    #[test]
    fn words_are_struck_out_wherever_the_stream_is_cut() {
        let text = b"user hunter2 said hunter22, then hunter and hunter2";
        let expected = "user *** said ***, then hunter and ***";
        for cut in 0..=text.len() {
            let found = struck(&["hunter2", "hunter22"], &[&text[..cut], &text[cut..]]);
            assert_eq!(found, expected, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(struck(&["hunter22", "hunter2"], &bytes), expected);
    }

    #[test]
    fn without_words_everything_passes() {
        assert_eq!(struck(&[], &[b"plain ", b"text"]), "plain text");
        assert_eq!(struck(&[""], &[b"plain"]), "plain");
    }
}
