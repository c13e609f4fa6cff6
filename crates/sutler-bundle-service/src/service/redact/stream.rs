//! Replaces known words in a byte stream, wherever it is cut. Pure.
//!
//! Which words: `encodings.rs`.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Replacement of a word.
const REPLACEMENT: &[u8] = b"***";
/// Length of the prefix by which words are found; shorter words are never searched.
const HEAD: usize = 2;

/// Words to search, all at once.
pub(super) struct SecretWords {
    /// Words by prefix; longest first, so that a word that begins with another one is replaced completely.
    by_head: HashMap<[u8; HEAD], Vec<Vec<u8>>>,
    /// First bytes of the words.
    firsts: BTreeSet<u8>,
}

/// Match at a position.
enum WordMatch {
    /// A word of this length.
    Word(usize),
    Nothing,
    /// More bytes are needed.
    Perhaps,
}

impl SecretWords {
    pub(super) fn new(words: BTreeSet<Vec<u8>>) -> Self {
        let mut by_head: HashMap<[u8; HEAD], Vec<Vec<u8>>> = HashMap::new();
        for word in words {
            if let Some(head) = word.first_chunk::<HEAD>() {
                by_head.entry(*head).or_default().push(word);
            }
        }
        for alike in by_head.values_mut() {
            alike.sort_by_key(|word| std::cmp::Reverse(word.len()));
        }
        let firsts = by_head.keys().map(|head| head[0]).collect();
        Self { by_head, firsts }
    }

    /// Matches the longest word at the beginning of the bytes. `more`: whether bytes may follow.
    fn at(&self, bytes: &[u8], more: bool) -> WordMatch {
        let Some(head) = bytes.first_chunk::<HEAD>() else {
            let may = bytes
                .first()
                .is_some_and(|first| self.firsts.contains(first));
            return if more && may {
                WordMatch::Perhaps
            } else {
                WordMatch::Nothing
            };
        };
        let Some(alike) = self.by_head.get(head) else {
            return WordMatch::Nothing;
        };
        for word in alike {
            if bytes.starts_with(word) {
                return WordMatch::Word(word.len());
            }
            if more && word.starts_with(bytes) {
                return WordMatch::Perhaps;
            }
        }
        WordMatch::Nothing
    }
}

/// Replaces words in one stream.
pub(super) struct StreamRedactor {
    words: Arc<SecretWords>,
    held: Vec<u8>,
}

impl StreamRedactor {
    pub(super) fn new(words: Arc<SecretWords>) -> Self {
        Self {
            words,
            held: Vec::new(),
        }
    }

    /// Takes bytes, and returns those that cannot belong to an incomplete word.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        self.redact(true)
    }

    /// Returns the rest: the stream has ended.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        self.redact(false)
    }

    /// Processes every position that can be decided.
    fn redact(&mut self, more: bool) -> Vec<u8> {
        let mut clean = Vec::with_capacity(self.held.len());
        let mut at = 0;
        while let Some(first) = self.held.get(at) {
            match self.words.at(&self.held[at..], more) {
                WordMatch::Word(length) => {
                    clean.extend_from_slice(REPLACEMENT);
                    at += length;
                }
                WordMatch::Nothing => {
                    clean.push(*first);
                    at += 1;
                }
                WordMatch::Perhaps => break,
            }
        }
        self.held.drain(..at);
        clean
    }
}

#[cfg(test)]
mod tests {
    use super::{SecretWords, StreamRedactor};
    use std::sync::Arc;

    fn redacted(words: &[&str], pieces: &[&[u8]]) -> String {
        let words = words.iter().map(|it| it.as_bytes().to_vec()).collect();
        let mut striker = StreamRedactor::new(Arc::new(SecretWords::new(words)));
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
            let found = redacted(&["hunter2", "hunter22"], &[&text[..cut], &text[cut..]]);
            assert_eq!(found, expected, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(redacted(&["hunter22", "hunter2"], &bytes), expected);
    }

    #[test]
    fn bytes_that_cannot_begin_a_word_pass_at_once() {
        let word = "-----BEGIN-----".repeat(100).into_bytes();
        let mut striker = StreamRedactor::new(Arc::new(SecretWords::new([word.clone()].into())));
        assert_eq!(striker.feed(b"making it - "), b"making it - ");
        assert_eq!(striker.feed(b"now: --"), b"now: ");
        assert_eq!(striker.feed(b"help"), b"--help");
        assert_eq!(striker.feed(&word[..900]), b"");
        assert_eq!(striker.feed(&word[900..]), b"***");
        assert_eq!(striker.feed(b"-"), b"");
        assert_eq!(striker.finish(), b"-");
    }

    #[test]
    fn without_words_everything_passes() {
        assert_eq!(redacted(&[], &[b"plain ", b"text"]), "plain text");
        assert_eq!(redacted(&[""], &[b"plain"]), "plain");
    }
}
