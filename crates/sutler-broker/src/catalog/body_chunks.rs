//! The response body of `GET /v2/catalog`, stored in chunks.
//!
//! With many offerings the body is long, and each replacement changes little of it. So the next body reuses every
//! unchanged chunk, and only the others are written. Each offering is stored with a leading comma, so chunks can
//! be reused at any position. Handles bytes only: the offerings are chosen in `catalog/replace.rs`.

use bytes::{Bytes, BytesMut};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use sutler_server::ChunkedBody;

/// Maximum bytes of a chunk. A longer offering has a chunk of its own.
const CHUNK_BYTES: usize = 64 * 1024;

const OPENING: &[u8] = br#"{"services":["#;
const ENDING: &[u8] = b"]}";

/// All chunks of a body, and the byte range of each offering.
#[derive(Default)]
pub(super) struct BodyChunks {
    chunks: Vec<BodyChunk>,
    ranges: Vec<ByteRange>,
}

#[derive(Clone)]
struct BodyChunk {
    bytes: Bytes,
    /// Number of offerings in the chunk.
    count: usize,
}

/// Position of an offering, without its comma.
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

    /// The whole body; a short one is a single piece.
    pub(super) fn content(&self) -> ChunkedBody {
        let mut parts = vec![Bytes::from_static(OPENING)];
        for (nth, chunk) in self.chunks.iter().enumerate() {
            // The first offering needs no comma.
            let comma = usize::from(nth == 0);
            parts.push(chunk.bytes.slice(comma..));
        }
        parts.push(Bytes::from_static(ENDING));
        match parts.iter().map(Bytes::len).sum::<usize>() {
            ..=CHUNK_BYTES => ChunkedBody::of(parts.concat()),
            _ => ChunkedBody::of_parts(parts),
        }
    }

    /// The chunk that starts with this offering.
    fn starting_with(&self, nth: usize) -> Option<&BodyChunk> {
        let ByteRange { chunk, at } = self.ranges.get(nth)?;
        self.chunks.get(*chunk).filter(|_| at.start == 1)
    }
}

/// Writes the next body, offering by offering.
///
/// # Guarantees
/// No two neighbouring chunks would fit into one, however many were reused: a body has at most twice as many
/// chunks as it needs, plus one.
pub(super) struct ChunkWriter<'a> {
    was: &'a BodyChunks,
    chunk_bytes: usize,
    finished: Vec<BodyChunk>,
    /// Bytes of the chunk being written, and its number of offerings.
    pending: Vec<u8>,
    count: usize,
    /// Length of each offering.
    lengths: Vec<usize>,
    /// Number of following offerings that the last chunk already contains.
    already_copied: usize,
}

impl<'a> ChunkWriter<'a> {
    /// `was`: the current body.
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

    /// Adds the first of the remaining offerings from the current body. `positions`: of each remaining offering its
    /// position there, if it is unchanged. Returns false if it changed and must be written.
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
            let following = positions.iter().take(chunk.count).copied();
            following.eq(all.map(Some))
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

    /// Adds a new or changed offering.
    pub(super) fn write(&mut self, json: &[u8]) {
        if self.pending.len() + 1 + json.len() > self.chunk_bytes {
            self.finish_chunk();
        }
        self.pending.push(b',');
        self.pending.extend_from_slice(json);
        self.count += 1;
        self.lengths.push(json.len());
    }

    /// Returns the finished body.
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

    /// Ends the chunk being written.
    fn finish_chunk(&mut self) {
        if self.count > 0 {
            // Copied, so that the chunk has no spare capacity.
            let bytes = Bytes::copy_from_slice(&self.pending);
            let count = std::mem::take(&mut self.count);
            self.pending.clear();
            self.push_chunk(BodyChunk { bytes, count });
        }
    }

    /// Adds a chunk, or appends it to the last one if both fit into one.
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

/// Memory for checked offerings that are not part of a body yet.
///
/// They are adjacent, in blocks as large as a chunk: the body consumes them in about the same order, and a chunk
/// fits where a block was freed. Allocated one by one, they would fragment the heap into holes too small for a
/// chunk.
#[derive(Default)]
pub(super) struct ChunkBuffer(Mutex<BytesMut>);

impl ChunkBuffer {
    /// Stores the JSON of an offering. Its block is freed with the last offering in it.
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
