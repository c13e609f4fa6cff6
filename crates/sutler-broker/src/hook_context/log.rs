//! Output of a hook, stored with its operation: sealed, bounded, outside commits.
//!
//! Each piece has its offset in the output of its attempt. A worker that takes over after a crash sends the output
//! again from the start, and stored parts are not stored twice. It is read by `admin/log.rs`.

use super::Cx;
use crate::error::{Error, Result};
use sutler_journal::{Fence, LogChunk, Lost, OperationId, SealContext, Store, StoreError};
use sutler_records::Documents;

/// Maximum text of one piece, in bytes; with its head and its seal it fits a chunk of any store.
const PIECE_BYTES_MAX: usize = 32 * 1024;
/// Pieces read at a time.
const PIECES_AT_ONCE: usize = 64;
/// Bytes before the text: the attempt and the offset.
const HEAD_BYTES: usize = 12;
/// Number after which no chunk is read.
const END: u32 = u32::MAX;

/// A piece of the output of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub attempt: u32,
    /// Offset in the output of its attempt, in bytes.
    pub from: u64,
    pub text: String,
}

impl Piece {
    fn end(&self) -> u64 {
        self.from + self.text.len() as u64
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + self.text.len());
        bytes.extend(self.attempt.to_be_bytes());
        bytes.extend(self.from.to_be_bytes());
        bytes.extend(self.text.as_bytes());
        bytes
    }

    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (attempt, rest) = bytes.split_first_chunk()?;
        let (from, text) = rest.split_first_chunk()?;
        Some(Self {
            attempt: u32::from_be_bytes(*attempt),
            from: u64::from_be_bytes(*from),
            text: String::from_utf8_lossy(text).into_owned(),
        })
    }
}

/// Reads sealed pieces of an operation's log from a number on, and returns the number that follows; the same number if
/// there is nothing more. Pieces that do not open are left out.
pub(crate) async fn log_from(
    documents: &Documents,
    id: OperationId,
    from: u32,
    limit: usize,
) -> std::result::Result<(Vec<Piece>, u32), StoreError> {
    if from == END {
        return Ok((Vec::new(), END));
    }
    let chunks = documents.store.read_log(id, from, limit).await?;
    let next = number_after(&chunks, from);
    let opened = chunks.iter().filter_map(|chunk| {
        let (plain, _) = documents
            .keys
            .open(SealContext::Log(id), &chunk.text)
            .ok()?;
        Piece::of_bytes(&plain)
    });
    Ok((opened.collect(), next))
}

/// The number after these chunks. Numbers are not sealed, so a database can hold any: it never goes back, and
/// [`END`] follows the last one.
fn number_after(chunks: &[LogChunk], from: u32) -> u32 {
    let last = chunks.iter().map(|chunk| chunk.number).max();
    let next = last.map_or(from, |number| number.checked_add(1).unwrap_or(END));
    next.max(from)
}

async fn append_piece(
    documents: &Documents,
    store: &dyn Store,
    id: OperationId,
    piece: &Piece,
) -> std::result::Result<(), StoreError> {
    let sealed = documents.keys.seal(SealContext::Log(id), &piece.to_bytes());
    store.append_log(id, sealed).await
}

impl Cx {
    /// Stores output of this attempt. `from`: its offset in the whole output. Parts that are stored already are
    /// skipped, so a worker that takes over can start at 0. Must contain no secret: operators read it. An error of
    /// the store is ignored.
    ///
    /// # Errors
    /// The claim was lost.
    pub async fn log(&self, from: u64, text: &str) -> Result<()> {
        let store = self.run.checked_store().map_err(|Lost| Error::lost())?;
        let mut logged = self.logged.lock().await;
        let known = match *logged {
            Some(known) => known,
            None => match self.logged_before().await {
                Ok(known) => known,
                Err(error) => {
                    tracing::debug!(%error, "a log cannot be read, so nothing is added to it now");
                    return Ok(());
                }
            },
        };
        *logged = Some(known);
        for piece in pieces(self.attempt(), from, text, known) {
            match append_piece(&self.records, store, self.run.id(), &piece).await {
                Ok(()) => *logged = Some(piece.end()),
                Err(error) => {
                    tracing::debug!(%error, "a piece of a log was not kept");
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// End of the log of this attempt.
    async fn logged_before(&self) -> std::result::Result<u64, StoreError> {
        if self.run.fence() == Fence(1) {
            return Ok(0);
        }
        let (mut at, mut known) = (0, 0);
        loop {
            let read = log_from(&self.records, self.run.id(), at, PIECES_AT_ONCE);
            let (pieces, next) = read.await?;
            let own = pieces.iter().filter(|it| it.attempt == self.attempt());
            known = own.map(Piece::end).fold(known, u64::max);
            if next == at {
                return Ok(known);
            }
            at = next;
        }
    }
}

/// The pieces of a text after `known`.
fn pieces(attempt: u32, from: u64, text: &str, known: u64) -> Vec<Piece> {
    let skip = usize::try_from(known.saturating_sub(from)).unwrap_or(usize::MAX);
    let mut at = text.ceil_char_boundary(skip.min(text.len()));
    let mut pieces = Vec::new();
    while at < text.len() {
        let end = text.floor_char_boundary((at + PIECE_BYTES_MAX).min(text.len()));
        pieces.push(Piece {
            attempt,
            from: from + at as u64,
            text: text[at..end].to_owned(),
        });
        at = end;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::{END, PIECE_BYTES_MAX, Piece, number_after, pieces};
    use sutler_journal::LogChunk;

    fn texts(from: u64, text: &str, known: u64) -> Vec<(u64, String)> {
        let made = pieces(1, from, text, known).into_iter();
        made.map(|it| (it.from, it.text)).collect()
    }

    #[test]
    fn stored_output_is_not_stored_again() {
        assert_eq!(texts(0, "hello", 0), [(0, "hello".to_owned())]);
        assert_eq!(texts(0, "hello", 3), [(3, "lo".to_owned())]);
        assert_eq!(texts(3, "lo, you", 5), [(5, ", you".to_owned())]);
        assert_eq!(texts(0, "hello", 5), []);
        assert_eq!(texts(0, "hello", 500), []);
    }

    #[test]
    fn a_reader_ends_at_the_highest_number_and_never_goes_back() {
        for (numbers, from, expected) in [
            (&[][..], 7, 7),
            (&[7, 8, 11], 7, 12),
            (&[7, u32::MAX], 7, END),
            (&[u32::MAX, 3], 7, END),
            (&[3], 7, 7),
        ] {
            let chunk = |number: &u32| LogChunk {
                number: *number,
                text: Default::default(),
            };
            let chunks: Vec<LogChunk> = numbers.iter().map(chunk).collect();
            assert_eq!(number_after(&chunks, from), expected, "{numbers:?}");
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let text = "ä".repeat(PIECE_BYTES_MAX);
        let made = texts(0, &text, 0);
        assert!(made.iter().all(|(_, it)| it.len() <= PIECE_BYTES_MAX));
        let whole: String = made.into_iter().map(|(_, it)| it).collect();
        assert_eq!(whole, text);
    }

    #[test]
    fn a_piece_is_read_as_it_was_written() {
        let piece = Piece {
            attempt: 3,
            from: 1 << 40,
            text: "übel".to_owned(),
        };
        assert_eq!(Piece::of_bytes(&piece.to_bytes()), Some(piece));
        assert_eq!(Piece::of_bytes(b"short"), None);
    }
}
