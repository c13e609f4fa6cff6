//! Seeded random numbers for the fuzzer and the crash harness: the same seed gives the same sequence.
//!
//! Not for secrets. The users are `tools/fuzz` (mutations) and `tools/crash` (moments and requests).

use std::ops::Range;

/// A small generator (splitmix64), good enough to choose mutations and moments.
#[derive(Clone, Debug)]
pub struct SeededRng(u64);

impl SeededRng {
    /// Starts a sequence.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound
    }

    /// An index below `length`; 0 if `length` is 0.
    pub fn index(&mut self, length: usize) -> usize {
        match length {
            0 => 0,
            _ => usize::try_from(self.below(length as u64)).unwrap_or_default(),
        }
    }

    /// True once in `times` on average.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of the items, of which there must be at least one.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.index(from.len())]
    }

    /// A part of a sequence of this length, possibly empty.
    pub fn range(&mut self, length: usize) -> Range<usize> {
        let start = self.index(length + 1);
        // Short parts are more frequent than long ones.
        let most = if self.one_in(4) {
            length - start
        } else {
            (length - start).min(16)
        };
        start..start + self.index(most + 1)
    }

    /// A second generator whose use does not change the sequence of this one.
    #[must_use]
    pub fn split(&mut self) -> Self {
        Self(self.below(u64::MAX))
    }
}
