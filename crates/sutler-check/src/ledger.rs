//! What a check has made and must remove. Only ids minted here are ever sent: a check cannot touch
//! what it did not create.

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
pub(crate) enum Made {
    // Bindings first: they are removed before their instances.
    Binding(BindingId),
    Instance(InstanceId),
}

impl fmt::Display for Made {
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

/// Everything that may still be there.
#[derive(Default)]
pub(crate) struct Ledger {
    made: Mutex<BTreeMap<Made, Owner>>,
}

impl Ledger {
    /// Written before the request that creates it is sent.
    pub(crate) fn may_exist(&self, made: Made, owner: Owner) {
        self.lock().insert(made, owner);
    }

    /// The service and the plan that requests about it have to name, if it may be there.
    pub(crate) fn owner(&self, made: &Made) -> Option<Owner> {
        self.lock().get(made).cloned()
    }

    /// The broker said that it is gone.
    pub(crate) fn is_gone(&self, made: &Made) {
        let mut all = self.lock();
        all.remove(made);
        if let Made::Instance(instance) = made {
            all.retain(|other, _| !matches!(other, Made::Binding(it) if it.instance == *instance));
        }
    }

    /// What may still be there, bindings first.
    pub(crate) fn left(&self) -> Vec<(Made, Owner)> {
        let all = self.lock();
        all.iter()
            .map(|(made, owner)| (made.clone(), owner.clone()))
            .collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Made, Owner>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
