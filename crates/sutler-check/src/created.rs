//! Resources that a check has created and must delete.
//!
//! Only ids generated here are sent, so a check cannot touch other resources.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use uuid::Uuid;

/// The id of an instance that this check made up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct InstanceId(String);

/// The id of a binding that this check made up, with its instance's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BindingId {
    pub instance: InstanceId,
    id: String,
}

impl InstanceId {
    pub(crate) fn new() -> Self {
        Self(Uuid::new_v4().to_string())
    }

    /// A new id with characters that have to be encoded.
    pub(crate) fn unusual() -> Self {
        Self(format!("{} ä/%?#", Uuid::new_v4()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl BindingId {
    pub(crate) fn new(instance: &InstanceId) -> Self {
        Self {
            instance: instance.clone(),
            id: Uuid::new_v4().to_string(),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.id
    }
}

/// Something that may exist because of this check.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CreatedResource {
    // Bindings first: they are removed before their instances.
    Binding(BindingId),
    Instance(InstanceId),
}

impl fmt::Display for CreatedResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Binding(it) => write!(f, "binding {} of instance {}", it.id, it.instance.0),
            Self::Instance(it) => write!(f, "instance {}", it.0),
        }
    }
}

/// The service and the plan that a delete has to name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub service_id: String,
    pub plan_id: String,
}

/// Answers of the broker to requests that create the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResourceState {
    /// Sent, and not answered yet.
    Sent,
    /// Refused each time: a conformant broker has made nothing.
    Refused,
    /// Unknown: no answer, or an error of the broker.
    Unknown,
    /// The broker has taken it on.
    Accepted,
}

impl ResourceState {
    fn after(self, status: Option<u16>) -> Self {
        match (self, status) {
            (Self::Accepted, _) | (_, Some(200..=299)) => Self::Accepted,
            (Self::Sent | Self::Refused, Some(400..=499)) => Self::Refused,
            (Self::Sent | Self::Refused | Self::Unknown, _) => Self::Unknown,
        }
    }
}

/// How much a broker has made for a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Instances that the broker took on.
    pub instances: usize,
    /// Bindings that the broker took on.
    pub bindings: usize,
}

/// Everything that may still be there.
#[derive(Default)]
pub(crate) struct CreatedResources {
    entries: Mutex<CreatedEntries>,
}

#[derive(Default)]
struct CreatedEntries {
    made: BTreeMap<CreatedResource, (Owner, ResourceState)>,
    tally: Tally,
}

impl CreatedResources {
    /// Written before the request that creates it is sent.
    pub(crate) fn may_exist(&self, made: CreatedResource, owner: Owner) {
        let mut entries = self.lock();
        let standing = match entries.made.get(&made) {
            Some((_, ResourceState::Refused)) | None => ResourceState::Sent,
            Some((_, known)) => *known,
        };
        entries.made.insert(made, (owner, standing));
    }

    /// Records the answer to a request that creates it, if there is one.
    pub(crate) fn answered(&self, made: &CreatedResource, status: Option<u16>) {
        let mut entries = self.lock();
        let Some((_, standing)) = entries.made.get_mut(made) else {
            return;
        };
        let before = std::mem::replace(standing, standing.after(status));
        let accepted = *standing == ResourceState::Accepted && before != ResourceState::Accepted;
        match made {
            CreatedResource::Instance(_) => entries.tally.instances += usize::from(accepted),
            CreatedResource::Binding(_) => entries.tally.bindings += usize::from(accepted),
        }
    }

    /// Whether the broker refused to make it.
    pub(crate) fn was_refused(&self, made: &CreatedResource) -> bool {
        let entries = self.lock();
        matches!(entries.made.get(made), Some((_, ResourceState::Refused)))
    }

    /// The service and the plan that requests about it have to name, if it may be there.
    pub(crate) fn owner(&self, made: &CreatedResource) -> Option<Owner> {
        let entries = self.lock();
        entries.made.get(made).map(|(owner, _)| owner.clone())
    }

    /// Records that the broker reports it as gone.
    pub(crate) fn is_gone(&self, made: &CreatedResource) {
        let all = &mut self.lock().made;
        all.remove(made);
        if let CreatedResource::Instance(instance) = made {
            all.retain(|other, _| !matches!(other, CreatedResource::Binding(it) if it.instance == *instance));
        }
    }

    /// Resources that may still exist, bindings first.
    pub(crate) fn left(&self) -> Vec<(CreatedResource, Owner)> {
        let entries = self.lock();
        let left = entries.made.iter();
        left.map(|(made, (owner, _))| (made.clone(), owner.clone()))
            .collect()
    }

    /// How many things may still be there.
    pub(crate) fn left_count(&self) -> usize {
        self.lock().made.len()
    }

    /// How much was made so far, gone or not.
    pub(crate) fn tally(&self) -> Tally {
        self.lock().tally
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, CreatedEntries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{BindingId, CreatedResource, CreatedResources, InstanceId, Owner, Tally};

    fn owner() -> Owner {
        Owner {
            service_id: "s".to_owned(),
            plan_id: "p".to_owned(),
        }
    }

    #[test]
    fn only_what_was_refused_each_time_counts_as_refused() {
        let refused = |statuses: &[Option<u16>]| {
            let ledger = CreatedResources::default();
            let made = CreatedResource::Instance(InstanceId::new());
            for status in statuses {
                ledger.may_exist(made.clone(), owner());
                ledger.answered(&made, *status);
            }
            ledger.was_refused(&made)
        };
        assert!(refused(&[Some(400), Some(422)]));
        assert!(!refused(&[Some(202), Some(409)]));
        assert!(!refused(&[None, Some(409)]));
        assert!(!refused(&[Some(400), Some(500)]));
    }

    #[test]
    fn an_instance_that_is_gone_takes_its_bindings_along() {
        let ledger = CreatedResources::default();
        let instance = InstanceId::new();
        let made = [
            CreatedResource::Instance(instance.clone()),
            CreatedResource::Binding(BindingId::new(&instance)),
        ];
        for it in &made {
            ledger.may_exist(it.clone(), owner());
            ledger.answered(it, Some(201));
            ledger.answered(it, Some(200));
        }
        ledger.is_gone(&made[0]);
        assert_eq!(ledger.left_count(), 0);
        let one_each = Tally {
            instances: 1,
            bindings: 1,
        };
        assert_eq!(ledger.tally(), one_each);
    }
}
