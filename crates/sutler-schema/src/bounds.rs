//! Upper bounds of the work of a schema, computed before it runs.
//!
//! A validator applies subschemas recursively. A schema that refers to itself without descending into the
//! value never ends; a chain of subschemas that each refer twice to the next takes time exponential in its
//! length; a recursive schema, in the depth of the value. So the subschemas are followed level by level and
//! only counted: how many can apply to one place of a value, and how deep they nest. The result is the
//! depth to which values can be checked within bounds.
//!
//! The count is too high where several properties share a name or a pattern, never too low. The keywords
//! are in `subschema_graph.rs`.

use crate::compiled_schema::{CompileError, CompileOptions};
use crate::subschema_graph::{Graph, Slot};
use serde_json::Value;
use std::collections::BTreeSet;

/// Deepest schema, in levels of JSON.
const NESTING_MAX: usize = 96;

/// Most subschemas that may be applied to one value.
const APPLIED_MAX: u64 = 2_000;

/// Most subschemas that may nest, from the top of the parameters to the bottom. Each takes some hundred
/// bytes of stack.
const STACKED_MAX: usize = 512;

/// Refuses a schema that is too deep for a recursive walk.
pub(crate) fn check_nesting(schema: &Value) -> Result<(), CompileError> {
    if Extent::of(schema).levels > NESTING_MAX {
        let reason = format!("must not be nested deeper than {NESTING_MAX} levels");
        return Err(CompileError::whole(reason));
    }
    Ok(())
}

/// Depth and size of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Levels below the top; a plain value has none.
    pub levels: usize,
    /// Values, the value itself included.
    pub values: u64,
}

impl Extent {
    /// Measures a value, without recursion.
    #[must_use]
    pub fn of(value: &Value) -> Self {
        let mut extent = Self {
            levels: 0,
            values: 0,
        };
        // An explicit stack: the value may be nested deeper than the thread's stack allows.
        let mut open = vec![(value, 0)];
        while let Some((value, level)) = open.pop() {
            extent.levels = extent.levels.max(level);
            extent.values += 1;
            match value {
                Value::Array(items) => open.extend(items.iter().map(|item| (item, level + 1))),
                Value::Object(entries) => open.extend(entries.values().map(|one| (one, level + 1))),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (),
            }
        }
        extent
    }
}

/// Bounds of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Depth to which parameters can be checked.
    pub(crate) depth_max: usize,
    /// Most subschemas applied to one value.
    pub(crate) applied_max: u64,
    /// Patterns to compile.
    pub(crate) patterns: usize,
}

/// Computes the bounds of a schema.
///
/// # Errors
/// The schema recurses without end, or takes too long before `options.depth_min`.
pub(crate) fn bounds(schema: &Value, options: &CompileOptions) -> Result<Bounds, CompileError> {
    let graph = Graph::of(schema, options)?;
    let order = graph.order()?;
    let mut bounds = Bounds {
        depth_max: options.depth_max,
        applied_max: 0,
        patterns: graph.patterns,
    };
    let mut level = graph.top(&order);
    let mut stacked = 0;
    for depth in 0..=options.depth_max {
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
            Some(reason) if depth <= options.depth_min => return Err(CompileError::whole(reason)),
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

/// The subschemas that can apply to places of one depth.
struct Level {
    /// For each subschema, how often it applies to one place at most.
    meeting: Vec<u64>,
    /// Most subschemas that apply to one place, all together.
    applied_max: u64,
}

impl Graph<'_> {
    /// Sorts the subschemas so that each precedes those it applies to the same value.
    fn order(&self) -> Result<Vec<usize>, CompileError> {
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
            Some(endless) => Err(CompileError::Unbounded {
                path: self.subschemas[endless].path.clone(),
                reason: "applies itself to the same value again, without end".to_owned(),
            }),
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

    /// Adds the subschemas that each subschema applies to the same value.
    fn spread(&self, order: &[usize], meeting: &mut [u64]) {
        for &one in order {
            let times = meeting[one];
            if times > 0 {
                add(meeting, &self.subschemas[one].same_value, times);
            }
        }
    }

    /// Deepest nesting of the subschemas that meet.
    fn height(&self, order: &[usize], meeting: &[u64]) -> usize {
        let mut heights = vec![0_usize; meeting.len()];
        for &one in order.iter().rev() {
            let below = self.subschemas[one].same_value.iter();
            heights[one] = 1 + below.map(|&target| heights[target]).max().unwrap_or(0);
        }
        let met = (0..meeting.len()).filter(|&one| meeting[one] > 0);
        met.map(|one| heights[one]).max().unwrap_or(0)
    }

    /// Descends one level into the value: the subschemas that can meet at one entry, or at one item.
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
