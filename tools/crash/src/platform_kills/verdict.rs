//! The verdict about one run: what the recording broker wrote down, what it has, and what the platform's store has. Pure.
//!
//! `verdict/requests.rs` judges requests, `verdict/remains.rs` what is left, `verdict/ends.rs` how orders ended.

mod ends;
mod remains;
mod requests;
#[cfg(test)]
mod tests;

use super::known_state::KnownState;
use super::people::Acknowledged;
use crate::recording_broker::{BrokerState, ReceivedRequest};
use crate::violation::{CheckResult, Violation};

/// Verb of the deletes of the ledger.
const MITIGATE: &str = "mitigate";

/// What is known of a run that is over.
pub(crate) struct Evidence<'a> {
    /// What the recording broker wrote down.
    pub(crate) requests: &'a [ReceivedRequest],
    /// What it has.
    pub(crate) broker: &'a BrokerState,
    /// Ids of the plans that it offers.
    pub(crate) plans: Vec<String>,
    /// What the platform has written down.
    pub(crate) known: &'a KnownState,
    /// Orders with an intent.
    pub(crate) acknowledged: &'a [Acknowledged],
    /// How often one request may have been sent.
    pub(crate) sends_max: usize,
    /// How many attempts may have had no answer: deaths, and answers that the broker did not give.
    pub(crate) silences: u64,
    /// Intents that may exist though their orders were not acknowledged.
    pub(crate) unacknowledged_max: usize,
    /// Whether creates without an identity's delete are expected.
    pub(crate) mitigates: bool,
}

impl Evidence<'_> {
    /// The first violation, if there is one.
    ///
    /// # Errors
    /// See `verdict/`.
    pub(crate) fn judge(&self) -> CheckResult<()> {
        let mut faults = requests::check(self);
        faults.extend(remains::check(self));
        faults.extend(ends::check(self));
        match faults.is_empty() {
            true => Ok(()),
            false => Err(Violation::new(faults.join("; "))),
        }
    }
}

/// I-5 at the moment of a death: what the broker has is known to the platform.
///
/// # Errors
/// Something is not.
pub(crate) fn check_known(broker: &BrokerState, known: &KnownState) -> CheckResult<()> {
    let mut resources = broker.resources.keys();
    match resources.find(|id| !known.knows(id)) {
        None => Ok(()),
        Some(id) => Err(Violation::new(format!(
            "the broker has {id}, and the platform does not know it when it dies"
        ))),
    }
}
