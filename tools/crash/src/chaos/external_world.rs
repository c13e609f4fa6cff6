//! The external world: the resources that exist after all steps, for a service that uses the fencing
//! numbers that a hook receives.
//!
//! A step of an operation that is older than the last one of its lane, or under an older claim
//! of the same one, is refused there: that is the purpose of `Cx::fence`. Pure.

use crate::victim::{ReplicaEvent, steps_of};
use std::collections::{BTreeMap, BTreeSet};

/// Existing resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExternalWorld {
    /// Instances and bindings that were created and not removed.
    pub resources: BTreeSet<String>,
    /// The operations that removed a resource, since it was last created.
    pub removed_by: BTreeMap<String, BTreeSet<String>>,
    /// Steps that came too late and had no effect.
    pub refused: u64,
}

impl ExternalWorld {
    /// The world after these events, in their order.
    pub fn after(events: &[ReplicaEvent]) -> Self {
        let mut world = Self::default();
        let mut last: BTreeMap<&str, (u64, &str, u64)> = BTreeMap::new();
        for event in events {
            let ReplicaEvent::Ran {
                operation,
                lane,
                verb,
                step,
                fence,
                ..
            } = event
            else {
                continue;
            };
            let accepted = moment_of(operation);
            let old = last.get(lane.as_str()).is_some_and(|(moment, of, claim)| {
                accepted < *moment || (of == operation && fence < claim)
            });
            if old {
                world.refused += 1;
                continue;
            }
            last.insert(lane, (accepted, operation, *fence));
            match verb.as_str() {
                "provision" | "bind" => {
                    world.resources.insert(lane.clone());
                    world.removed_by.remove(lane);
                }
                "deprovision" | "unbind" if *step == steps_of(verb) => {
                    world.remove(lane, operation);
                }
                _ => {}
            }
        }
        world
    }

    /// Removes a resource. An operation that finds nothing to remove is noted only beside those that removed it.
    fn remove(&mut self, lane: &str, operation: &str) {
        if self.resources.remove(lane) {
            self.removed_by.insert(lane.to_owned(), BTreeSet::new());
        }
        if let Some(operations) = self.removed_by.get_mut(lane) {
            operations.insert(operation.to_owned());
        }
    }
}

/// Time of acceptance of an operation, in milliseconds: its id begins with it.
fn moment_of(operation: &str) -> u64 {
    let digits: String = operation.chars().filter(|it| *it != '-').take(12).collect();
    u64::from_str_radix(&digits, 16).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::ExternalWorld;
    use crate::victim::{ReplicaBoot, ReplicaEvent};

    const MAKE: &str = "00000000-0001-7000-8000-000000000000";
    const REMOVE: &str = "00000000-0002-7000-8000-000000000000";
    const REMOVE_AGAIN: &str = "00000000-0003-7000-8000-000000000000";
    const MAKE_AGAIN: &str = "00000000-0004-7000-8000-000000000000";

    fn ran(operation: &str, verb: &str, step: u32, fence: u64) -> ReplicaEvent {
        ReplicaEvent::Ran {
            operation: operation.to_owned(),
            lane: "one".to_owned(),
            verb: verb.to_owned(),
            step,
            attempt: 1,
            fence,
            by: ReplicaBoot {
                replica: 0,
                boot: 1,
            },
        }
    }

    #[test]
    fn created_resources_exist_until_removed() {
        let made = [ran(MAKE, "provision", 1, 1)];
        assert!(ExternalWorld::after(&made).resources.contains("one"));
        let half = [made[0].clone(), ran(REMOVE, "deprovision", 1, 1)];
        assert!(ExternalWorld::after(&half).resources.contains("one"));
        let both = [
            half[0].clone(),
            half[1].clone(),
            ran(REMOVE, "deprovision", 2, 1),
        ];
        let world = ExternalWorld::after(&both);
        assert!(world.resources.is_empty());
        assert_eq!(removers(&world), [REMOVE]);
    }

    /// The operations that removed the resource.
    fn removers(world: &ExternalWorld) -> Vec<&str> {
        let removers = world.removed_by.get("one");
        removers.into_iter().flatten().map(String::as_str).collect()
    }

    #[test]
    fn all_that_removed_a_resource_since_its_creation_are_known() {
        let never_made = [ran(REMOVE, "deprovision", 2, 1)];
        assert_eq!(ExternalWorld::after(&never_made), ExternalWorld::default());
        let removed_twice = [
            ran(MAKE, "provision", 1, 1),
            ran(REMOVE, "deprovision", 2, 1),
            ran(REMOVE_AGAIN, "deprovision", 2, 1),
        ];
        let world = ExternalWorld::after(&removed_twice);
        assert_eq!(removers(&world), [REMOVE, REMOVE_AGAIN]);
        let mut made_again = removed_twice.to_vec();
        made_again.push(ran(MAKE_AGAIN, "provision", 1, 1));
        let world = ExternalWorld::after(&made_again);
        assert!(world.resources.contains("one") && removers(&world).is_empty());
    }

    #[test]
    fn a_late_step_has_no_effect() {
        let late = [
            ran(REMOVE, "deprovision", 2, 1),
            ran(MAKE, "provision", 1, 1),
        ];
        let world = ExternalWorld::after(&late);
        assert!(world.resources.is_empty());
        assert_eq!(world.refused, 1);
        let superseded = [ran(MAKE, "provision", 1, 2), ran(MAKE, "provision", 2, 1)];
        assert_eq!(ExternalWorld::after(&superseded).refused, 1);
    }
}
