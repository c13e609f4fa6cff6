//! Random numbers that can be repeated: the same seed makes the same inputs.

/// A small generator (splitmix64). Good enough to choose mutations, and for nothing else.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one; 0 if there is none.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let end = end as u64;
        if end == 0 {
            0
        } else {
            usize::try_from(self.next() % end).unwrap_or_default()
        }
    }

    pub(crate) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of these. There must be one.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// A part of a text of this length, perhaps empty.
    pub(crate) fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        // Short ones more often than long ones.
        let most = if self.one_in(4) {
            length - start
        } else {
            (length - start).min(16)
        };
        start..start + self.below(most + 1)
    }
}
