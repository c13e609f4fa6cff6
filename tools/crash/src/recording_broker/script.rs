//! How the recording broker answers: rules in order, the first one that fits a request. Without any, everything is done
//! at once.

use super::broker_state::BrokerState;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A script.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Script {
    /// The catalog.
    pub catalog: Value,
    /// What the broker has at first.
    pub begins_with: BrokerState,
    /// How it answers.
    pub rules: Vec<Rule>,
    /// Where requests are written down; a line each.
    pub log: PathBuf,
    /// Time before each answer, in milliseconds.
    #[serde(default)]
    pub delay_ms: u64,
}

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RequestKind {
    /// Read of the catalog.
    Catalog,
    /// PUT of an instance.
    Provision,
    /// PATCH of an instance.
    Update,
    /// DELETE of an instance.
    Deprovision,
    /// PUT of a binding.
    Bind,
    /// DELETE of a binding.
    Unbind,
    /// A poll of either.
    Poll,
    /// A fetch of either.
    Fetch,
}

/// A rule.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rule {
    /// Requests that it is about.
    pub verb: RequestKind,
    /// How often it holds.
    pub scope: RuleScope,
    /// How they are answered.
    pub reply: Reply,
    /// Operations that it was used for so far.
    #[serde(default)]
    pub operations: BTreeSet<String>,
    /// Requests that it was used for so far.
    #[serde(default)]
    pub requests: u32,
    /// Requests of its verb so far.
    #[serde(default)]
    pub seen: u64,
}

/// How often a rule holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RuleScope {
    /// Always.
    Always,
    /// For the first operations, with all their requests: what is rejected stays rejected when it is sent again.
    Operations(u32),
    /// For the first requests.
    Requests(u32),
    /// For every n-th operation, with all its requests.
    EveryOperation(u64),
    /// For every n-th request.
    EveryRequest(u64),
}

/// How a request is answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// It is done at once.
    Done,
    /// It is accepted, and ends after so many polls.
    Accepted {
        /// Polls that find it in progress.
        polls: u32,
        /// Whether it succeeds then.
        succeeds: bool,
    },
    /// It is not done; this is the answer.
    Refused(u16, Value),
    /// It is done, and this is the answer.
    DoneAndAnswered(u16, Value),
    /// It is done, and the connection is closed without an answer.
    DoneAndClosed,
    /// It is done, and there is never an answer.
    DoneAndSilent,
    /// It is not done, and the connection is closed.
    Closed,
    /// It is not done, and there is never an answer.
    Silent,
}

impl Rule {
    /// A rule that was not used yet.
    pub fn new(verb: RequestKind, scope: RuleScope, reply: Reply) -> Self {
        Self {
            verb,
            scope,
            reply,
            operations: BTreeSet::new(),
            requests: 0,
            seen: 0,
        }
    }

    fn holds_for(&mut self, verb: RequestKind, operation: &str) -> bool {
        if self.verb != verb {
            return false;
        }
        self.seen += 1;
        match self.scope {
            RuleScope::Always => true,
            RuleScope::Requests(count) => self.requests < count,
            RuleScope::Operations(count) => {
                let used = u32::try_from(self.operations.len()).unwrap_or(u32::MAX);
                self.operations.contains(operation) || used < count
            }
            RuleScope::EveryRequest(count) => self.seen.is_multiple_of(count),
            RuleScope::EveryOperation(count) => digest(operation).is_multiple_of(count),
        }
    }
}

/// A number of an operation by chance: the same for all its requests.
fn digest(operation: &str) -> u64 {
    let bytes = operation.bytes();
    let mixed = bytes.fold(7_u64, |sum, byte| {
        sum.wrapping_mul(0x0000_0100_0000_01b3) ^ u64::from(byte)
    });
    mixed >> 17
}

impl Script {
    /// The reply to a request, which is counted.
    pub(super) fn reply(&mut self, verb: RequestKind, operation: &str) -> Reply {
        let mut found = None;
        for rule in &mut self.rules {
            if rule.holds_for(verb, operation) {
                found = Some(rule);
                break;
            }
        }
        let Some(rule) = found else {
            return Reply::Done;
        };
        rule.requests += 1;
        rule.operations.insert(operation.to_owned());
        rule.reply.clone()
    }
}
