//! Flaws of a broker. A flaw has the name of the case that must detect it.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Every name that a decision has checked, in this process.
static CHECKED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The enabled flaws and allowed variants.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flaws {
    on: BTreeSet<String>,
    liberties: BTreeSet<&'static str>,
}

impl Flaws {
    /// A conformant broker.
    pub(crate) fn none() -> Self {
        Self::default()
    }

    /// One flaw.
    pub(crate) fn one(case: &str) -> Self {
        Self {
            on: BTreeSet::from([case.to_owned()]),
            liberties: BTreeSet::new(),
        }
    }

    /// No flaw, but an allowed variant.
    pub(crate) fn variant(name: &'static str) -> Self {
        Self {
            on: BTreeSet::new(),
            liberties: BTreeSet::from([name]),
        }
    }

    /// Whether this variant is enabled.
    pub(crate) fn has_variant(&self, variant: &str) -> bool {
        self.liberties.contains(variant)
    }

    /// Whether this flaw is enabled; its name is the name of a case.
    pub(crate) fn has(&self, case: &str) -> bool {
        let mut checked = CHECKED.lock().unwrap_or_else(PoisonError::into_inner);
        if !checked.contains(case) {
            checked.insert(case.to_owned());
        }
        drop(checked);
        self.on.contains(case)
    }
}

/// Names of all flaws that decisions have checked so far.
pub(crate) fn checked_flaws() -> BTreeSet<String> {
    CHECKED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}
