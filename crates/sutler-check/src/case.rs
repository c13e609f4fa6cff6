//! Cases: a case is one rule of the checklist, checked from outside of a broker.
//!
//! Defines the type only. `cases.rs` lists all cases; the files below `cases/` own them.

use std::fmt;

/// Requirement level of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// A broker that breaks it is not conformant.
    Must,
    /// A broker that breaks it causes problems for its platforms.
    Should,
    /// Both behaviours are conformant; the report shows which one was observed.
    May,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Must => "MUST",
            Self::Should => "SHOULD",
            Self::May => "MAY",
        })
    }
}

/// Subject of a case: the broker or each plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Once for the broker.
    Broker,
    /// Once for each tested plan.
    Plan,
}

/// One rule, and the name of its verdict.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Case {
    /// Unique name for people and machines: `provision-repeat-running`.
    pub name: &'static str,
    /// The line of the checklist: `B-087`.
    pub line: &'static str,
    /// Requirement level.
    pub level: Level,
    /// Subject of the case.
    pub scope: Scope,
    /// The rule in one sentence, for the broker's author.
    pub rule: &'static str,
}

impl Case {
    /// A case of plans, at level MUST.
    pub(crate) const fn must(name: &'static str, line: &'static str, rule: &'static str) -> Self {
        Self::of_plans(name, line, Level::Must, rule)
    }

    /// A case of plans, at level SHOULD.
    pub(crate) const fn should(name: &'static str, line: &'static str, rule: &'static str) -> Self {
        Self::of_plans(name, line, Level::Should, rule)
    }

    /// A case of plans, at level MAY.
    pub(crate) const fn may(name: &'static str, line: &'static str, rule: &'static str) -> Self {
        Self::of_plans(name, line, Level::May, rule)
    }

    const fn of_plans(
        name: &'static str,
        line: &'static str,
        level: Level,
        rule: &'static str,
    ) -> Self {
        let scope = Scope::Plan;
        Self {
            name,
            line,
            level,
            scope,
            rule,
        }
    }
}
