//! How much work a schema can make, found out before it makes any.
//!
//! A validator applies subschemas recursively. A schema that refers to itself without going into the
//! value never ends; one that refers twice to one that refers twice … takes time exponential in its
//! size; a recursive one, in the depth of the value. So the subschemas are followed here level by
//! level, only counted: how many can meet at one place of a value, and how deep they stand in each
//! other. The result is the depth to which values can be checked within bounds.
//!
//! Counted too high where several properties share a name or a pattern, never too low.

use super::graph::{Graph, Slot};
use serde_json::Value;
use std::collections::BTreeSet;

/// Deepest parameters that are checked against any schema, in levels below the top.
const DEPTH_MAX: usize = 64;

/// A schema that cannot be checked this deep is of no use.
const DEPTH_MIN: usize = 8;

/// Deepest schema, in levels of JSON.
const NESTING_MAX: usize = 96;

/// Most subschemas that may be applied to one value.
const APPLIED_MAX: u64 = 2_000;

/// Most subschemas that may stand in each other, from the top of the parameters to the bottom. Each
/// takes some hundred bytes of stack.
const STACKED_MAX: usize = 512;

/// A place in a schema and what is wrong there.
pub(super) type Fault = (String, String);

/// Refuses what is nested so deep that walking it recursively might not end well.
pub(super) fn check_nesting(schema: &Value) -> Result<(), Fault> {
    if extent(schema).0 > NESTING_MAX {
        let reason = format!("must not be nested deeper than {NESTING_MAX} levels");
        return Err((String::new(), reason));
    }
    Ok(())
}

/// How many levels a value has, a plain value having none, and how many values are in it.
pub(super) fn extent(value: &Value) -> (usize, u64) {
    let (mut levels, mut values) = (0, 0);
    // A stack of our own: the value may be nested deeper than ours is.
    let mut open = vec![(value, 0)];
    while let Some((value, level)) = open.pop() {
        levels = levels.max(level);
        values += 1;
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, level + 1))),
            Value::Object(entries) => open.extend(entries.values().map(|one| (one, level + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (),
        }
    }
    (levels, values)
}

/// What a schema can be asked to do.
pub(super) struct Bounds {
    /// The depth to which parameters can be checked.
    pub(super) depth_max: usize,
    /// How many subschemas can be applied to one value.
    pub(super) applied_max: u64,
    /// How many patterns there are to compile.
    pub(super) patterns: usize,
}

/// Finds out what a schema can be asked to do.
///
/// # Errors
/// The schema never ends, or takes too long on any parameters worth having.
pub(super) fn bounds(schema: &Value) -> Result<Bounds, Fault> {
    let graph = Graph::of(schema)?;
    let order = graph.order()?;
    let mut bounds = Bounds {
        depth_max: DEPTH_MAX,
        applied_max: 0,
        patterns: graph.patterns,
    };
    let mut level = graph.top(&order);
    let mut stacked = 0;
    for depth in 0..=DEPTH_MAX {
        stacked += graph.height(&order, &level.meeting);
        let exceeded = if level.applied_max > APPLIED_MAX {
            Some(format!(
                "can apply more than {APPLIED_MAX} rules to one value"
            ))
        } else if stacked > STACKED_MAX {
            Some(format!(
                "can apply more than {STACKED_MAX} rules within each other"
            ))
        } else {
            None
        };
        match exceeded {
            Some(reason) if depth <= DEPTH_MIN => return Err((String::new(), reason)),
            Some(_) => {
                bounds.depth_max = depth - 1;
                break;
            }
            None if level.applied_max == 0 => break,
            None => bounds.applied_max = bounds.applied_max.max(level.applied_max),
        }
        level = graph.below(&order, &level);
    }
    Ok(bounds)
}

/// The subschemas that can meet at places of one depth.
struct Level {
    /// For each subschema, how often at most at one place.
    meeting: Vec<u64>,
    /// How many at most at one place, all together.
    applied_max: u64,
}

impl Graph<'_> {
    /// The subschemas so that each comes before those it applies to the same value.
    fn order(&self) -> Result<Vec<usize>, Fault> {
        let mut incoming = vec![0_usize; self.subschemas.len()];
        for subschema in &self.subschemas {
            for &target in &subschema.same_value {
                incoming[target] += 1;
            }
        }
        let mut order: Vec<usize> = (0..incoming.len())
            .filter(|&one| incoming[one] == 0)
            .collect();
        let mut next = 0;
        while let Some(&one) = order.get(next) {
            next += 1;
            for &target in &self.subschemas[one].same_value {
                incoming[target] -= 1;
                if incoming[target] == 0 {
                    order.push(target);
                }
            }
        }
        match incoming.iter().position(|&left| left > 0) {
            Some(endless) => {
                let reason = "applies itself to the same value again, without end".to_owned();
                Err((self.subschemas[endless].pointer.clone(), reason))
            }
            None => Ok(order),
        }
    }

    fn top(&self, order: &[usize]) -> Level {
        let mut meeting = vec![0; self.subschemas.len()];
        meeting[0] = 1;
        self.spread(order, &mut meeting);
        let applied_max = total(&meeting);
        Level {
            meeting,
            applied_max,
        }
    }

    /// Adds what each subschema applies to the same value.
    fn spread(&self, order: &[usize], meeting: &mut [u64]) {
        for &one in order {
            let times = meeting[one];
            if times > 0 {
                add(meeting, &self.subschemas[one].same_value, times);
            }
        }
    }

    /// How many subschemas stand in each other at most, of those that meet.
    fn height(&self, order: &[usize], meeting: &[u64]) -> usize {
        let mut heights = vec![0_usize; meeting.len()];
        for &one in order.iter().rev() {
            let below = self.subschemas[one].same_value.iter();
            heights[one] = 1 + below.map(|&target| heights[target]).max().unwrap_or(0);
        }
        let met = (0..meeting.len()).filter(|&one| meeting[one] > 0);
        met.map(|one| heights[one]).max().unwrap_or(0)
    }

    /// One level further into the value: what can meet at one entry, or at one item.
    fn below(&self, order: &[usize], level: &Level) -> Level {
        let mut slots = BTreeSet::from([Slot::OtherEntry, Slot::OtherItem]);
        let active = || (0..level.meeting.len()).filter(|&one| level.meeting[one] > 0);
        for one in active() {
            slots.extend(self.subschemas[one].own.keys().copied());
        }
        let mut below = Level {
            meeting: vec![0; level.meeting.len()],
            applied_max: 0,
        };
        for slot in slots {
            let mut meeting = vec![0; level.meeting.len()];
            for one in active() {
                let (subschema, times) = (&self.subschemas[one], level.meeting[one]);
                match subschema.own.get(&slot) {
                    Some(&own) => add(&mut meeting, &[own], times),
                    None if slot.is_item() => add(&mut meeting, &subschema.other_items, times),
                    None => add(&mut meeting, &subschema.other_entries, times),
                }
                if slot.is_item() {
                    add(&mut meeting, &subschema.every_item, times);
                } else {
                    add(&mut meeting, &subschema.every_entry, times);
                }
            }
            self.spread(order, &mut meeting);
            below.applied_max = below.applied_max.max(total(&meeting));
            for (most, here) in below.meeting.iter_mut().zip(meeting) {
                *most = here.max(*most);
            }
        }
        below
    }
}

fn add(meeting: &mut [u64], subschemas: &[usize], times: u64) {
    for &one in subschemas {
        meeting[one] = meeting[one].saturating_add(times);
    }
}

fn total(meeting: &[u64]) -> u64 {
    meeting
        .iter()
        .fold(0, |sum, &times| sum.saturating_add(times))
}
