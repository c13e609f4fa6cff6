//! Differences between two ordered lists of keys, window by window. Pure.
//!
//! A window is a consecutive part of one side's keys. Both sides are only known up to the smaller end of
//! the two windows, so one comparison covers that range, and the next starts after it.

use std::cmp::Ordering;

/// Consecutive keys of one side.
pub(super) struct DiffWindow<K> {
    pub(super) keys: Vec<K>,
    /// The window reaches the end of its side.
    pub(super) at_end: bool,
}

/// Keys by side, up to a bound.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference<K> {
    pub(super) both: Vec<K>,
    /// Only in the source.
    pub(super) missing: Vec<K>,
    /// Only in the target.
    pub(super) extra: Vec<K>,
    /// Last key compared; `None`: to the end.
    pub(super) bound: Option<K>,
}

/// Compares two windows with the same start.
pub(super) fn part<K: Ord + Clone>(
    source: &DiffWindow<K>,
    target: &DiffWindow<K>,
) -> Difference<K> {
    let end = |window: &DiffWindow<K>| match window.at_end {
        true => None,
        false => window.keys.last().cloned(),
    };
    let bound = match (end(source), end(target)) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    let within = |key: &&K| bound.as_ref().is_none_or(|bound| *key <= bound);
    let mut found = Difference {
        both: Vec::new(),
        missing: Vec::new(),
        extra: Vec::new(),
        bound: bound.clone(),
    };
    let mut ours = source.keys.iter().filter(within).peekable();
    let mut theirs = target.keys.iter().filter(within).peekable();
    loop {
        let order = match (ours.peek(), theirs.peek()) {
            (Some(one), Some(other)) => one.cmp(other),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return found,
        };
        match order {
            Ordering::Less => found.missing.extend(ours.next().cloned()),
            Ordering::Greater => found.extra.extend(theirs.next().cloned()),
            Ordering::Equal => {
                found.both.extend(ours.next().cloned());
                theirs.next();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DiffWindow, part};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// The keys after a key, at most `limit`.
    fn window(keys: &BTreeSet<u16>, after: Option<u16>, limit: usize) -> DiffWindow<u16> {
        let bytes_after = keys
            .iter()
            .filter(|key| after.is_none_or(|after| **key > after));
        let read: Vec<u16> = bytes_after.copied().take(limit).collect();
        DiffWindow {
            at_end: read.len() < limit,
            keys: read,
        }
    }

    proptest! {
        #[test]
        fn every_key_is_compared_once_window_by_window(
            source in prop::collection::btree_set(0..300_u16, 0..120),
            target in prop::collection::btree_set(0..300_u16, 0..120),
            limits in (1..20_usize, 1..20_usize),
        ) {
            let (mut both, mut missing, mut extra) = (Vec::new(), Vec::new(), Vec::new());
            let mut after = None;
            loop {
                let found = part(
                    &window(&source, after, limits.0),
                    &window(&target, after, limits.1),
                );
                both.extend(found.both);
                missing.extend(found.missing);
                extra.extend(found.extra);
                prop_assert!(found.bound.is_none() || found.bound > after, "it goes on");
                after = found.bound;
                if after.is_none() {
                    break;
                }
            }
            let set = |keys: BTreeSet<&u16>| keys.into_iter().copied().collect::<Vec<_>>();
            prop_assert_eq!(both, set(source.intersection(&target).collect()));
            prop_assert_eq!(missing, set(source.difference(&target).collect()));
            prop_assert_eq!(extra, set(target.difference(&source).collect()));
        }
    }
}
