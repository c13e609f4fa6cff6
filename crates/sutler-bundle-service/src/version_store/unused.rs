//! Which copies are unused. Pure: time and usage are arguments.
//!
//! A copy is removed only if it was unused at two checks some time apart and at none between them: a request that
//! has just decided to use it has stored that by then.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Unused copies, and since when.
#[derive(Debug, Default)]
pub(crate) struct UnusedVersions(BTreeMap<String, Instant>);

impl UnusedVersions {
    /// Records the existing and used copies; returns those that were unused for `grace`.
    pub(crate) fn update(
        &mut self,
        there: BTreeSet<String>,
        used: &BTreeSet<String>,
        now: Instant,
        grace: Duration,
    ) -> BTreeSet<String> {
        self.0
            .retain(|digest, _| there.contains(digest) && !used.contains(digest));
        for digest in there.difference(used) {
            self.0.entry(digest.clone()).or_insert(now);
        }
        let old = self
            .0
            .iter()
            .filter(|(_, since)| now.duration_since(**since) >= grace);
        old.map(|(digest, _)| digest.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::UnusedVersions;
    use std::collections::BTreeSet;
    use std::time::{Duration, Instant};

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|it| (*it).to_owned()).collect()
    }

    #[test]
    fn a_copy_that_was_unused_for_a_while_is_returned() {
        let (mut unused, begun) = (UnusedVersions::default(), Instant::now());
        let grace = Duration::from_secs(60);
        let mut update = |seconds: u64, there: &[&str], used: &[&str]| {
            let now = begun + Duration::from_secs(seconds);
            unused.update(set(there), &set(used), now, grace)
        };
        assert_eq!(update(0, &["a", "b", "c"], &["a"]), set(&[]));
        assert_eq!(update(59, &["a", "b", "c"], &["a"]), set(&[]));
        assert_eq!(update(60, &["a", "b", "c"], &["a", "b"]), set(&["c"]));
        assert_eq!(update(61, &["a", "b"], &["a"]), set(&[]), "b begins anew");
        assert_eq!(update(121, &["a", "b"], &[]), set(&["b"]));
        assert_eq!(update(122, &["b"], &["b"]), set(&[]));
    }
}
