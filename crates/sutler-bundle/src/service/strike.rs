//! Strikes known words out of a stream of bytes, wherever it is cut. Pure.

/// What stands in the place of a word.
const STRUCK: &[u8] = b"***";

/// Strikes words out.
pub(super) struct Striker {
    /// Longest first, so that a word that begins another leaves nothing of it.
    words: Vec<Vec<u8>>,
    held: Vec<u8>,
}

impl Striker {
    pub(super) fn new<'a>(words: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut words: Vec<Vec<u8>> = words
            .filter(|it| !it.is_empty())
            .map(<[u8]>::to_vec)
            .collect();
        words.sort_by(|one, other| other.len().cmp(&one.len()).then(one.cmp(other)));
        words.dedup();
        Self {
            words,
            held: Vec::new(),
        }
    }

    /// Takes bytes, and gives those of which it is known that no word begins in them.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        let longest = self.words.first().map_or(1, Vec::len);
        self.strike(longest)
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
            match self.words.iter().find(|word| rest.starts_with(word)) {
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
    use super::Striker;

    fn struck(words: &[&str], pieces: &[&[u8]]) -> String {
        let mut striker = Striker::new(words.iter().map(|it| it.as_bytes()));
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
