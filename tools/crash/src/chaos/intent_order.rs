//! Checks whether the accepted intents of one instance came one after the other. Pure.
//!
//! An instance numbers its intents: it is a counter that orders increment and reads show. The numbers give the order,
//! so it is linearizable exactly if no number is given twice and the order agrees with time: what was answered before
//! something else was sent comes before it. An order without an answer leaves a gap, which is allowed.

use crate::violation::{CheckResult, Violation};
use std::collections::BTreeMap;

/// What a client saw of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// Its order was accepted with this number.
    Number(u64),
    /// A read showed so many intents.
    Count(u64),
}

/// Something that a client saw, and when, in microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SeenIntents {
    /// Uid of the instance.
    pub(super) instance: String,
    /// When the request was sent first.
    pub(super) began: u64,
    /// When its answer came.
    pub(super) ended: u64,
    pub(super) seen: Seen,
}

/// Checks what was seen of all instances.
///
/// # Errors
/// Two things that cannot both be.
pub(super) fn check_order(all: &[SeenIntents]) -> CheckResult<()> {
    let mut instances: BTreeMap<&str, Vec<&SeenIntents>> = BTreeMap::new();
    for seen in all {
        instances.entry(&seen.instance).or_default().push(seen);
    }
    for (instance, seen) in instances {
        for (index, one) in seen.iter().enumerate() {
            for other in &seen[index + 1..] {
                let pair = match one.ended < other.began {
                    true => Some((one, other)),
                    false => (other.ended < one.began).then_some((other, one)),
                };
                let is_right = match (pair, one.seen, other.seen) {
                    (_, Seen::Number(a), Seen::Number(b)) if a == b => false,
                    (Some((before, after)), ..) => may_follow(before.seen, after.seen),
                    (None, ..) => true,
                };
                if !is_right {
                    return Err(Violation::new(format!(
                        "instance {instance}: {one:?} and {other:?} are in no order"
                    )));
                }
            }
        }
    }
    Ok(())
}

/// Whether one can be seen after the other.
fn may_follow(before: Seen, after: Seen) -> bool {
    match (before, after) {
        (Seen::Number(a) | Seen::Count(a), Seen::Number(b)) => a < b,
        (Seen::Number(a) | Seen::Count(a), Seen::Count(b)) => a <= b,
    }
}

#[cfg(test)]
mod tests {
    use super::{Seen, SeenIntents, check_order};

    fn seen(began: u64, ended: u64, seen: Seen) -> SeenIntents {
        SeenIntents {
            instance: "i".to_owned(),
            began,
            ended,
            seen,
        }
    }

    fn is_right(all: &[SeenIntents]) -> bool {
        check_order(all).is_ok()
    }

    #[test]
    fn orders_at_the_same_time_have_any_order() {
        let one = seen(1, 5, Seen::Number(2));
        let other = seen(2, 6, Seen::Number(1));
        assert!(is_right(&[one, other]));
    }

    #[test]
    fn a_later_order_has_a_larger_number() {
        let one = seen(1, 5, Seen::Number(2));
        let later = seen(6, 7, Seen::Number(1));
        assert!(!is_right(&[later.clone(), one.clone()]));
        assert!(!is_right(&[one.clone(), later]));
        assert!(is_right(&[one, seen(6, 7, Seen::Number(4))]));
    }

    #[test]
    fn no_number_is_given_twice() {
        let twice = [seen(1, 5, Seen::Number(2)), seen(1, 5, Seen::Number(2))];
        assert!(!is_right(&twice));
    }

    #[test]
    fn reads_do_not_go_back() {
        let read = seen(1, 2, Seen::Count(3));
        assert!(is_right(&[read.clone(), seen(3, 4, Seen::Count(3))]));
        assert!(!is_right(&[read.clone(), seen(3, 4, Seen::Count(2))]));
        // What was shown was accepted before.
        assert!(!is_right(&[read.clone(), seen(3, 4, Seen::Number(3))]));
        assert!(is_right(&[read, seen(3, 4, Seen::Number(4))]));
    }

    #[test]
    fn a_read_shows_what_was_accepted_before() {
        let accepted = seen(1, 2, Seen::Number(3));
        assert!(!is_right(&[accepted, seen(3, 4, Seen::Count(2))]));
    }

    #[test]
    fn instances_have_numbers_of_their_own() {
        let one = seen(1, 2, Seen::Number(3));
        let other = SeenIntents {
            instance: "j".to_owned(),
            ..seen(3, 4, Seen::Number(1))
        };
        assert!(is_right(&[one, other]));
    }
}
