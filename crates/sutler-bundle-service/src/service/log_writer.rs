//! Converts the output of a run to text for its log: redacted, in whole characters, in chunks of a sensible size.
//!
//! The text does not depend on how the output was cut, so an offset in it is still valid after a restart. Redaction
//! is `redact.rs`.

use super::redact::Redaction;
use super::run_observer::RunObserver;
use sutler_broker::Result;

/// Bytes per chunk; smaller chunks are written only after a while.
const PASS_ON_BYTES: usize = 16 * 1024;

/// Writes the output of a run to its log.
pub(super) struct RedactingLogWriter<'a> {
    observer: &'a dyn RunObserver,
    redaction: Redaction,
    undecoded: Vec<u8>,
    unsaid: String,
    from: u64,
}

impl<'a> RedactingLogWriter<'a> {
    pub(super) fn new(observer: &'a dyn RunObserver, redaction: Redaction) -> Self {
        Self {
            observer,
            redaction,
            undecoded: Vec::new(),
            unsaid: String::new(),
            from: 0,
        }
    }

    /// Takes output, and writes it once there is a full chunk.
    pub(super) async fn take(&mut self, bytes: &[u8]) -> Result<()> {
        let clean = self.redaction.feed(bytes);
        self.undecoded.extend(clean);
        decode(&mut self.undecoded, &mut self.unsaid);
        if self.unsaid.len() >= PASS_ON_BYTES {
            self.pass_on().await?;
        }
        Ok(())
    }

    /// Whether output waits to be written.
    pub(super) fn has_more(&self) -> bool {
        !self.unsaid.is_empty()
    }

    /// Writes the waiting output.
    pub(super) async fn pass_on(&mut self) -> Result<()> {
        if !self.unsaid.is_empty() {
            self.observer.output(self.from, &self.unsaid).await?;
            self.from += self.unsaid.len() as u64;
            self.unsaid.clear();
        }
        Ok(())
    }

    /// Writes the rest: the output has ended.
    pub(super) async fn finish(mut self) -> Result<()> {
        let rest = self.redaction.finish();
        self.undecoded.extend(rest);
        decode(&mut self.undecoded, &mut self.unsaid);
        if !self.undecoded.is_empty() {
            self.unsaid.push(char::REPLACEMENT_CHARACTER);
        }
        self.pass_on().await
    }
}

/// Moves complete characters to `text`. Invalid bytes are replaced; an incomplete character at the end stays.
fn decode(bytes: &mut Vec<u8>, text: &mut String) {
    let mut at = 0;
    for chunk in bytes.utf8_chunks() {
        text.extend(
            chunk
                .valid()
                .chars()
                .map(|c| if c == '\0' { ' ' } else { c }),
        );
        at += chunk.valid().len();
        let invalid = chunk.invalid();
        let is_tail = at + invalid.len() == bytes.len() && may_go_on(invalid);
        if is_tail {
            break;
        }
        if !invalid.is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
            at += invalid.len();
        }
    }
    bytes.drain(..at);
}

/// Whether bytes are the beginning of a character.
fn may_go_on(bytes: &[u8]) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => false,
        Err(error) => error.valid_up_to() == 0 && error.error_len().is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::decode;

    fn decoded(pieces: &[&[u8]]) -> (String, usize) {
        let (mut bytes, mut text) = (Vec::new(), String::new());
        for piece in pieces {
            bytes.extend_from_slice(piece);
            decode(&mut bytes, &mut text);
        }
        (text, bytes.len())
    }

    #[test]
    fn text_is_the_same_however_output_is_cut() {
        let output = "größer — 🦀 end".as_bytes();
        for cut in 0..output.len() {
            let (text, left) = decoded(&[&output[..cut], &output[cut..]]);
            assert_eq!(
                (text.as_str(), left),
                ("größer — 🦀 end", 0),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn invalid_bytes_are_replaced_and_an_incomplete_character_waits() {
        assert_eq!(decoded(&[b"a\xffb"]), ("a\u{fffd}b".to_owned(), 0));
        assert_eq!(decoded(&[b"a\xc3"]), ("a".to_owned(), 1));
        assert_eq!(decoded(&[b"a\xc3", b"x"]), ("a\u{fffd}x".to_owned(), 0));
        assert_eq!(decoded(&[b"a\0b"]), ("a b".to_owned(), 0));
    }
}
