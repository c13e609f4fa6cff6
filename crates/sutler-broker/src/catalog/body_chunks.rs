//! The answer to a request for the catalog, written on sheets.
//!
//! With many offerings the answer is long, and little of it changes at a time. So the next one takes over every
//! sheet on which nothing changed, and only the others are written. An offering stands on its sheet with a comma
//! before it: whatever sheet comes before, the bytes stay. Knows bytes only: which offerings there are is decided
//! in `catalog/replace.rs`.

use bytes::{Bytes, BytesMut};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use sutler_server::ChunkedBody;

/// Most bytes of a sheet. An offering that is longer has one to itself.
const CHUNK_BYTES: usize = 64 * 1024;

const OPENING: &[u8] = br#"{"services":["#;
const ENDING: &[u8] = b"]}";

/// All sheets of an answer, and where on them its offerings are.
#[derive(Default)]
pub(super) struct BodyChunks {
    chunks: Vec<BodyChunk>,
    ranges: Vec<ByteRange>,
}

#[derive(Clone)]
struct BodyChunk {
    bytes: Bytes,
    /// How many offerings are on it.
    count: usize,
}

/// Where an offering is: without its comma.
struct ByteRange {
    chunk: usize,
    at: Range<usize>,
}

impl BodyChunks {
    /// The JSON of an offering.
    pub(super) fn get(&self, nth: usize) -> Option<&[u8]> {
        let ByteRange { chunk, at } = self.ranges.get(nth)?;
        self.chunks.get(*chunk)?.bytes.get(at.clone())
    }

    /// The answer. What is short is one piece.
    pub(super) fn content(&self) -> ChunkedBody {
        let mut parts = vec![Bytes::from_static(OPENING)];
        for (nth, chunk) in self.chunks.iter().enumerate() {
            // Nothing is before the first offering, so it needs no comma.
            let comma = usize::from(nth == 0);
            parts.push(chunk.bytes.slice(comma..));
        }
        parts.push(Bytes::from_static(ENDING));
        match parts.iter().map(Bytes::len).sum::<usize>() {
            ..=CHUNK_BYTES => ChunkedBody::of(parts.concat()),
            _ => ChunkedBody::of_parts(parts),
        }
    }

    /// The sheet that begins with this offering.
    fn starting_with(&self, nth: usize) -> Option<&BodyChunk> {
        let ByteRange { chunk, at } = self.ranges.get(nth)?;
        self.chunks.get(*chunk).filter(|_| at.start == 1)
    }
}

/// Writes the next answer, offering by offering.
///
/// # Guarantees
/// No two neighbouring sheets would fit on one, whatever was kept of the answer before: an answer has at most
/// twice as many sheets as it needs, and one more.
pub(super) struct ChunkWriter<'a> {
    was: &'a BodyChunks,
    chunk_bytes: usize,
    finished: Vec<BodyChunk>,
    /// What is being written, and how many offerings that are.
    pending: Vec<u8>,
    count: usize,
    /// How long each offering is.
    lengths: Vec<usize>,
    /// So many of the next offerings are on the last sheet already.
    already_copied: usize,
}

impl<'a> ChunkWriter<'a> {
    /// `was`: the answer that is given now.
    pub(super) fn after(was: &'a BodyChunks) -> Self {
        Self::with_chunk_bytes(CHUNK_BYTES, was)
    }

    fn with_chunk_bytes(chunk_bytes: usize, was: &'a BodyChunks) -> Self {
        Self {
            was,
            chunk_bytes,
            finished: Vec::new(),
            pending: Vec::new(),
            count: 0,
            lengths: Vec::new(),
            already_copied: 0,
        }
    }

    /// Adds the first of these offerings, which are all that come: each where it stood, if it is as it was.
    /// False: it is not, and has to be written.
    pub(super) fn keep(&mut self, positions: &[Option<usize>]) -> bool {
        let Some(&Some(first)) = positions.first() else {
            return false;
        };
        let was = self.was;
        let Some(json) = was.get(first) else {
            return false;
        };
        if self.already_copied > 0 {
            self.already_copied -= 1;
            self.lengths.push(json.len());
            return true;
        }
        let stays = |chunk: &&BodyChunk| {
            let all = first..first + chunk.count;
            let come = positions.iter().take(chunk.count).copied();
            come.eq(all.map(Some))
        };
        match was.starting_with(first).filter(stays) {
            Some(chunk) => {
                self.finish_chunk();
                self.already_copied = chunk.count - 1;
                self.lengths.push(json.len());
                self.push_chunk(chunk.clone());
            }
            None => self.write(json),
        }
        true
    }

    /// Adds an offering that is new, or not as it was.
    pub(super) fn write(&mut self, json: &[u8]) {
        if self.pending.len() + 1 + json.len() > self.chunk_bytes {
            self.finish_chunk();
        }
        self.pending.push(b',');
        self.pending.extend_from_slice(json);
        self.count += 1;
        self.lengths.push(json.len());
    }

    /// The answer.
    pub(super) fn finish(mut self) -> BodyChunks {
        self.finish_chunk();
        let mut ranges = Vec::with_capacity(self.lengths.len());
        let mut lengths = self.lengths.into_iter();
        for (chunk, BodyChunk { count, .. }) in self.finished.iter().enumerate() {
            let mut end = 0;
            for length in lengths.by_ref().take(*count) {
                let start = end + 1;
                end = start + length;
                let at = start..end;
                ranges.push(ByteRange { chunk, at });
            }
        }
        BodyChunks {
            chunks: self.finished,
            ranges,
        }
    }

    /// Begins a new sheet.
    fn finish_chunk(&mut self) {
        if self.count > 0 {
            // Copied, so that the sheet has no room that it does not need.
            let bytes = Bytes::copy_from_slice(&self.pending);
            let count = std::mem::take(&mut self.count);
            self.pending.clear();
            self.push_chunk(BodyChunk { bytes, count });
        }
    }

    /// Adds a sheet, or joins it to the last one if both fit on one.
    fn push_chunk(&mut self, chunk: BodyChunk) {
        let last = self.finished.last_mut();
        let fits = |last: &&mut BodyChunk| last.bytes.len() + chunk.bytes.len() <= self.chunk_bytes;
        match last.filter(fits) {
            Some(last) => {
                last.bytes = [&last.bytes[..], &chunk.bytes[..]].concat().into();
                last.count += chunk.count;
            }
            None => self.finished.push(chunk),
        }
    }
}

/// Where offerings are written that are not part of an answer yet.
///
/// They stand side by side, on leaves as large as a sheet: the answer takes them away in about the same order, and
/// a sheet has room where a leaf was. Each for itself they would leave thousands of holes where no sheet fits in.
#[derive(Default)]
pub(super) struct ChunkBuffer(Mutex<BytesMut>);

impl ChunkBuffer {
    /// Notes the JSON of an offering. Its leaf is there for as long as one of those on it is.
    pub(super) fn write(&self, json: &[u8]) -> Bytes {
        let mut block = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if block.capacity() < json.len() {
            *block = BytesMut::with_capacity(json.len().max(CHUNK_BYTES));
        }
        block.extend_from_slice(json);
        block.split().freeze()
    }
}

#[cfg(test)]
mod tests;
