//! Chooses the offered specs where several claim the same name or id: by a fixed order, with reported conflicts.
//!
//! The order is that of registries in the configuration, then of names. It does not depend on time, so every replica
//! and every start chooses the same specs.

use super::{KnownRegistries, KnownSpec, SpecName};
use serde::Serialize;
use std::collections::HashMap;
use std::fmt;

/// Two specs claim the same name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NameConflict {
    /// The claimed name, e.g. `the service id 1dda…`.
    pub what: String,
    /// The offered spec.
    pub offered: SpecName,
    /// The spec that is not offered.
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

/// Offered specs, and conflicts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfferedSpecs<'a> {
    /// Ordered by registry in the configuration, then by name.
    pub specs: Vec<(SpecName, &'a KnownSpec)>,
    /// Specs that are not offered because of a conflict.
    pub conflicts: Vec<NameConflict>,
}

/// Chooses the offered specs. `order` is the order of registries in the configuration; specs of other registries are
/// not offered.
#[must_use]
pub fn offered_specs<'a>(known: &'a KnownRegistries, order: &[String]) -> OfferedSpecs<'a> {
    // Index of the spec that has the name.
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
