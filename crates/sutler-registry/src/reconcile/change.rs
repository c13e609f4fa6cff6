//! One change of what is known, and how it is said in a line.

use super::{ClaimedNames, SpecName, WithdrawalMark};
use jiff::Timestamp;
use serde::Serialize;
use std::fmt;

/// How many characters of a digest are shown.
const DIGEST_CHARS: usize = 19;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum RegistryChange {
    /// A registry was listed completely.
    Listed {
        /// Which.
        registry: String,
        /// How many items it has.
        items: usize,
        /// When.
        at: Timestamp,
    },
    /// A registry could not be listed: everything of it stays.
    Failed {
        /// Which.
        registry: String,
        /// How often in a row by now.
        failures: u32,
        /// Why.
        why: String,
    },
    /// A new spec.
    Add {
        /// Which.
        spec: SpecName,
        /// Names its content.
        digest: String,
        /// What no other offering may have.
        wants: ClaimedNames,
    },
    /// A spec has another content.
    Replace {
        /// Which.
        spec: SpecName,
        /// The content that was offered.
        from: String,
        /// The content that is offered from now on.
        to: String,
        /// What no other offering may have.
        wants: ClaimedNames,
    },
    /// A spec cannot be read: its last good version stays.
    Keep {
        /// Which.
        spec: SpecName,
        /// Why it cannot be read.
        why: String,
    },
    /// A spec can be read again, and is what it was.
    Mend {
        /// Which.
        spec: SpecName,
    },
    /// An item cannot be read, and no good version of it is known.
    Skip {
        /// Which.
        spec: SpecName,
        /// Why it cannot be read.
        why: String,
    },
    /// A spec is withdrawn.
    Mark {
        /// Which.
        spec: SpecName,
        /// Why, and until when it is kept at least.
        mark: WithdrawalMark,
    },
    /// A spec is there again.
    Unmark {
        /// Which.
        spec: SpecName,
    },
    /// A spec is deleted: withdrawn long enough, and nobody needs it.
    Delete {
        /// Which.
        spec: SpecName,
        /// Names its content.
        digest: String,
    },
    /// A registry that is not configured any more, and has no spec left, is forgotten.
    Forget {
        /// Which.
        registry: String,
    },
}

impl RegistryChange {
    /// One word, for metrics and logs.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Listed { .. } => "listed",
            Self::Failed { .. } => "failed",
            Self::Add { .. } => "add",
            Self::Replace { .. } => "replace",
            Self::Keep { .. } => "keep",
            Self::Mend { .. } => "mend",
            Self::Skip { .. } => "skip",
            Self::Mark { .. } => "mark",
            Self::Unmark { .. } => "unmark",
            Self::Delete { .. } => "delete",
            Self::Forget { .. } => "forget",
        }
    }

    /// The registry it is about.
    #[must_use]
    pub fn registry(&self) -> &str {
        match self {
            Self::Listed { registry, .. }
            | Self::Failed { registry, .. }
            | Self::Forget { registry } => registry,
            _ => self.spec().map_or("", |spec| spec.registry.as_str()),
        }
    }

    /// The spec it is about, if it is about one.
    #[must_use]
    pub fn spec(&self) -> Option<&SpecName> {
        match self {
            Self::Listed { .. } | Self::Failed { .. } | Self::Forget { .. } => None,
            Self::Add { spec, .. }
            | Self::Replace { spec, .. }
            | Self::Keep { spec, .. }
            | Self::Mend { spec }
            | Self::Skip { spec, .. }
            | Self::Mark { spec, .. }
            | Self::Unmark { spec }
            | Self::Delete { spec, .. } => Some(spec),
        }
    }

    /// Whether it changes what platforms are offered.
    #[must_use]
    pub fn is_seen_by_platforms(&self) -> bool {
        match self {
            Self::Add { .. } | Self::Replace { .. } | Self::Mark { .. } | Self::Unmark { .. } => {
                true
            }
            Self::Listed { .. }
            | Self::Failed { .. }
            | Self::Keep { .. }
            | Self::Mend { .. }
            | Self::Skip { .. }
            | Self::Delete { .. }
            | Self::Forget { .. } => false,
        }
    }

    /// Whether something is wrong that an operator should know.
    #[must_use]
    pub fn is_trouble(&self) -> bool {
        matches!(
            self,
            Self::Failed { .. } | Self::Keep { .. } | Self::Skip { .. }
        )
    }
}

impl fmt::Display for RegistryChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listed {
                registry, items, ..
            } => write!(f, "listed    {registry}: {items} items"),
            Self::Failed {
                registry,
                failures,
                why,
            } => write!(
                f,
                "failed    {registry} (refresh {failures} in a row), all of it stays: {why}"
            ),
            Self::Add { spec, digest, .. } => write!(f, "add       {spec} {}", short(digest)),
            Self::Replace { spec, from, to, .. } => {
                write!(f, "replace   {spec} {} -> {}", short(from), short(to))
            }
            Self::Keep { spec, why } => {
                write!(f, "keep      {spec}, its last good version: {why}")
            }
            Self::Mend { spec } => write!(f, "mend      {spec}: it can be read again"),
            Self::Skip { spec, why } => write!(f, "skip      {spec}, it is not offered: {why}"),
            Self::Mark { spec, mark } => write!(
                f,
                "withdraw  {spec}: {}; kept until {} at least",
                mark.reason, mark.until
            ),
            Self::Unmark { spec } => write!(f, "return    {spec}: it is there again"),
            Self::Delete { spec, digest } => write!(
                f,
                "delete    {spec} {}: withdrawn, and no instance needs it",
                short(digest)
            ),
            Self::Forget { registry } => write!(
                f,
                "forget    {registry}: it is not configured, and nothing of it is left"
            ),
        }
    }
}

fn short(digest: &str) -> &str {
    digest.get(..DIGEST_CHARS).unwrap_or(digest)
}
