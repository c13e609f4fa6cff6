//! Which flaws a broker has. A flaw is known by the name of the case that must notice it.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Every name that a decision has asked for, in this process.
static ASKED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The flaws that are switched on, and the liberties: what a broker may do in another way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flaws {
    on: BTreeSet<String>,
    liberties: BTreeSet<&'static str>,
}

impl Flaws {
    /// A broker as it should be.
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

    /// No flaw, but something is done in another way that is right too.
    pub(crate) fn liberty(name: &'static str) -> Self {
        Self {
            on: BTreeSet::new(),
            liberties: BTreeSet::from([name]),
        }
    }

    /// Whether this liberty is taken.
    pub(crate) fn takes(&self, liberty: &str) -> bool {
        self.liberties.contains(liberty)
    }

    /// Whether this flaw is switched on; its name is the name of a case.
    pub(crate) fn has(&self, case: &str) -> bool {
        let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
        if !asked.contains(case) {
            asked.insert(case.to_owned());
        }
        drop(asked);
        self.on.contains(case)
    }
}

/// The names of all flaws that decisions have asked for until now.
pub(crate) fn asked_for() -> BTreeSet<String> {
    ASKED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
