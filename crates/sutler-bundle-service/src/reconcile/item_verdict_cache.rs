//! Permanent verdicts on single versions of items, so that they are not read again.
//!
//! Filled and used by `refresh.rs`.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use sutler_registry::{Digest, ItemOutcome, SpecName};

/// Maximum verdicts; beyond that items are read again.
const VERDICTS_MAX: usize = 100_000;

/// Permanent verdict on one version of an item.
#[derive(Clone, Debug)]
pub(super) enum ItemVerdict {
    NotABundle(String),
    Faulty(String),
}

impl ItemVerdict {
    pub(super) fn outcome(self) -> ItemOutcome {
        match self {
            Self::NotABundle(why) => ItemOutcome::NotABundle(why),
            Self::Faulty(why) => ItemOutcome::Faulty(why),
        }
    }
}

/// The last verdict on each item.
#[derive(Debug, Default)]
pub(super) struct ItemVerdictCache(Mutex<HashMap<SpecName, (Digest, ItemVerdict)>>);

impl ItemVerdictCache {
    /// The verdict on this version, if there is one.
    pub(super) fn of(&self, name: &SpecName, digest: &Digest) -> Option<ItemVerdict> {
        let verdicts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (of, verdict) = verdicts.get(name)?;
        (of == digest).then(|| verdict.clone())
    }

    pub(super) fn add(&self, name: &SpecName, digest: &Digest, verdict: ItemVerdict) {
        let mut verdicts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if verdicts.len() >= VERDICTS_MAX {
            verdicts.clear();
        }
        verdicts.insert(name.clone(), (digest.clone(), verdict));
    }
}
