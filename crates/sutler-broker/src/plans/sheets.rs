//! The answer to a request for the catalog, written on sheets.
//!
//! With many offerings the answer is long, and little of it changes at a time. So the next one takes over every
//! sheet on which nothing changed, and only the others are written. An offering stands on its sheet with a comma
//! before it: whatever sheet comes before, the bytes stay. Knows bytes only: which offerings there are is decided
//! in `plans/swap.rs`.

use bytes::{Bytes, BytesMut};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use sutler_server::ChunkedBody;

/// Most bytes of a sheet. An offering that is longer has one to itself.
const SHEET_BYTES: usize = 64 * 1024;

const OPENING: &[u8] = br#"{"services":["#;
const ENDING: &[u8] = b"]}";

/// All sheets of an answer, and where on them its offerings are.
#[derive(Default)]
pub(super) struct Sheets {
    sheets: Vec<Sheet>,
    places: Vec<Place>,
}

#[derive(Clone)]
struct Sheet {
    bytes: Bytes,
    /// How many offerings are on it.
    count: usize,
}

/// Where an offering is: without its comma.
struct Place {
    sheet: usize,
    at: Range<usize>,
}

impl Sheets {
    /// The JSON of an offering.
    pub(super) fn get(&self, nth: usize) -> Option<&[u8]> {
        let Place { sheet, at } = self.places.get(nth)?;
        self.sheets.get(*sheet)?.bytes.get(at.clone())
    }

    /// The answer. What is short is one piece.
    pub(super) fn content(&self) -> ChunkedBody {
        let mut parts = vec![Bytes::from_static(OPENING)];
        for (nth, sheet) in self.sheets.iter().enumerate() {
            // Nothing is before the first offering, so it needs no comma.
            let comma = usize::from(nth == 0);
            parts.push(sheet.bytes.slice(comma..));
        }
        parts.push(Bytes::from_static(ENDING));
        match parts.iter().map(Bytes::len).sum::<usize>() {
            ..=SHEET_BYTES => ChunkedBody::of(parts.concat()),
            _ => ChunkedBody::of_parts(parts),
        }
    }

    /// The sheet that begins with this offering.
    fn beginning_with(&self, nth: usize) -> Option<&Sheet> {
        let Place { sheet, at } = self.places.get(nth)?;
        self.sheets.get(*sheet).filter(|_| at.start == 1)
    }
}

/// Writes the next answer, offering by offering.
///
/// # Guarantees
/// No two neighbouring sheets would fit on one, whatever was kept of the answer before: an answer has at most
/// twice as many sheets as it needs, and one more.
pub(super) struct Writer<'a> {
    was: &'a Sheets,
    sheet_bytes: usize,
    done: Vec<Sheet>,
    /// What is being written, and how many offerings that are.
    page: Vec<u8>,
    count: usize,
    /// How long each offering is.
    lengths: Vec<usize>,
    /// So many of the next offerings are on the last sheet already.
    ahead: usize,
}

impl<'a> Writer<'a> {
    /// `was`: the answer that is given now.
    pub(super) fn after(was: &'a Sheets) -> Self {
        Self::with_sheets_of(SHEET_BYTES, was)
    }

    fn with_sheets_of(sheet_bytes: usize, was: &'a Sheets) -> Self {
        Self {
            was,
            sheet_bytes,
            done: Vec::new(),
            page: Vec::new(),
            count: 0,
            lengths: Vec::new(),
            ahead: 0,
        }
    }

    /// Adds the first of these offerings, which are all that come: each where it stood, if it is as it was.
    /// False: it is not, and has to be written.
    pub(super) fn keep(&mut self, stood: &[Option<usize>]) -> bool {
        let Some(&Some(first)) = stood.first() else {
            return false;
        };
        let was = self.was;
        let Some(json) = was.get(first) else {
            return false;
        };
        if self.ahead > 0 {
            self.ahead -= 1;
            self.lengths.push(json.len());
            return true;
        }
        let stays = |sheet: &&Sheet| {
            let all = first..first + sheet.count;
            let come = stood.iter().take(sheet.count).copied();
            come.eq(all.map(Some))
        };
        match was.beginning_with(first).filter(stays) {
            Some(sheet) => {
                self.turn();
                self.ahead = sheet.count - 1;
                self.lengths.push(json.len());
                self.lay(sheet.clone());
            }
            None => self.write(json),
        }
        true
    }

    /// Adds an offering that is new, or not as it was.
    pub(super) fn write(&mut self, json: &[u8]) {
        if self.page.len() + 1 + json.len() > self.sheet_bytes {
            self.turn();
        }
        self.page.push(b',');
        self.page.extend_from_slice(json);
        self.count += 1;
        self.lengths.push(json.len());
    }

    /// The answer.
    pub(super) fn finish(mut self) -> Sheets {
        self.turn();
        let mut places = Vec::with_capacity(self.lengths.len());
        let mut lengths = self.lengths.into_iter();
        for (sheet, Sheet { count, .. }) in self.done.iter().enumerate() {
            let mut end = 0;
            for length in lengths.by_ref().take(*count) {
                let start = end + 1;
                end = start + length;
                let at = start..end;
                places.push(Place { sheet, at });
            }
        }
        Sheets {
            sheets: self.done,
            places,
        }
    }

    /// Begins a new sheet.
    fn turn(&mut self) {
        if self.count > 0 {
            // Copied, so that the sheet has no room that it does not need.
            let bytes = Bytes::copy_from_slice(&self.page);
            let count = std::mem::take(&mut self.count);
            self.page.clear();
            self.lay(Sheet { bytes, count });
        }
    }

    /// Adds a sheet, or joins it to the last one if both fit on one.
    fn lay(&mut self, sheet: Sheet) {
        let last = self.done.last_mut();
        let fits = |last: &&mut Sheet| last.bytes.len() + sheet.bytes.len() <= self.sheet_bytes;
        match last.filter(fits) {
            Some(last) => {
                last.bytes = [&last.bytes[..], &sheet.bytes[..]].concat().into();
                last.count += sheet.count;
            }
            None => self.done.push(sheet),
        }
    }
}

/// Where offerings are written that are not part of an answer yet.
///
/// They stand side by side, on leaves as large as a sheet: the answer takes them away in about the same order, and
/// a sheet has room where a leaf was. Each for itself they would leave thousands of holes where no sheet fits in.
#[derive(Default)]
pub(super) struct Pad(Mutex<BytesMut>);

impl Pad {
    /// Notes the JSON of an offering. Its leaf is there for as long as one of those on it is.
    pub(super) fn write(&self, json: &[u8]) -> Bytes {
        let mut leaf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if leaf.capacity() < json.len() {
            *leaf = BytesMut::with_capacity(json.len().max(SHEET_BYTES));
        }
        leaf.extend_from_slice(json);
        leaf.split().freeze()
    }
}

#[cfg(test)]
mod tests;
