//! Which of the specs are offered where several want the same name or id: an order, and a told conflict.
//!
//! The order is that of the configuration, then that of names. It does not depend on what happened when, so
//! every replica, and every start, comes to the same.

use super::{KnownRegistries, KnownSpec, SpecName};
use serde::Serialize;
use std::collections::HashMap;
use std::fmt;

/// Two specs want the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NameConflict {
    /// What both want, e.g. `the service id 1dda…`.
    pub what: String,
    /// The spec that is offered.
    pub offered: SpecName,
    /// The spec that is left out for it.
    pub left_out: SpecName,
}

impl fmt::Display for NameConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            offered,
            left_out,
        } = self;
        write!(
            f,
            "{offered} and {left_out} both have {what}: {left_out} is not offered until one of them has \
             another, or its registry stands first in the configuration"
        )
    }
}

/// What is offered, and what is not although it could be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfferedSpecs<'a> {
    /// In the order of the configuration, then of names.
    pub specs: Vec<(SpecName, &'a KnownSpec)>,
    /// What was left out.
    pub conflicts: Vec<NameConflict>,
}

/// What is offered of all that is known. `order`: the registries as they are configured; of others nothing
/// is offered.
#[must_use]
pub fn offered_specs<'a>(known: &'a KnownRegistries, order: &[String]) -> OfferedSpecs<'a> {
    // Which of the specs has it.
    let mut taken: HashMap<&'a str, usize> = HashMap::new();
    let mut result = OfferedSpecs::default();
    for registry in order {
        let Some(its) = known.0.get(registry) else {
            continue;
        };
        for (item, held) in &its.specs {
            if held.mark.is_some() {
                continue;
            }
            let name = SpecName::new(registry, item);
            let wants = || held.wants.iter();
            let first = wants().find_map(|want| Some((want, *taken.get(want)?)));
            let first = first.and_then(|(want, nth)| Some((want, result.specs.get(nth)?)));
            match first {
                Some((want, (first, _))) => result.conflicts.push(NameConflict {
                    what: want.to_owned(),
                    offered: first.clone(),
                    left_out: name,
                }),
                None => {
                    let nth = result.specs.len();
                    taken.extend(wants().map(|want| (want, nth)));
                    result.specs.push((name, held.as_ref()));
                }
            }
        }
    }
    result
}
