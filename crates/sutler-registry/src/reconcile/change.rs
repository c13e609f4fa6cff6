//! Changes of the known state, and their texts.

use super::{ClaimedNames, SpecName, WithdrawalMark};
use jiff::Timestamp;
use serde::Serialize;
use std::fmt;

/// Number of characters of a digest in a text.
const DIGEST_CHARS: usize = 19;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum RegistryChange {
    /// A registry was listed completely.
    Listed {
        /// Registry.
        registry: String,
        /// Number of its items.
        items: usize,
        /// Time of the listing.
        at: Timestamp,
    },
    /// A registry could not be listed: all its specs stay.
    Failed {
        /// Registry.
        registry: String,
        /// Number of failures in a row.
        failures: u32,
        /// Cause.
        why: String,
    },
    /// A new spec.
    Add {
        /// Spec.
        spec: SpecName,
        /// Digest of the content.
        digest: String,
        /// Names that no other offering may have.
        wants: ClaimedNames,
    },
    /// A spec has other content.
    Replace {
        /// Spec.
        spec: SpecName,
        /// Digest of the previous content.
        from: String,
        /// Digest of the new content.
        to: String,
        /// Names that no other offering may have.
        wants: ClaimedNames,
    },
    /// A spec cannot be read: its last good version stays.
    Keep {
        /// Spec.
        spec: SpecName,
        /// Cause.
        why: String,
    },
    /// A spec can be read again, and is unchanged.
    Mend {
        /// Spec.
        spec: SpecName,
    },
    /// An item cannot be read, and no good version of it is known.
    Skip {
        /// Item.
        spec: SpecName,
        /// Cause.
        why: String,
    },
    /// A spec is withdrawn.
    Mark {
        /// Spec.
        spec: SpecName,
        /// Reason and times.
        mark: WithdrawalMark,
    },
    /// A withdrawn spec exists again.
    Unmark {
        /// Spec.
        spec: SpecName,
    },
    /// A spec is deleted: its grace period is over, and no instance uses it.
    Delete {
        /// Spec.
        spec: SpecName,
        /// Digest of the content.
        digest: String,
    },
    /// A registry that is no longer configured and has no specs is forgotten.
    Forget {
        /// Registry.
        registry: String,
    },
}

impl RegistryChange {
    /// Label for metrics and logs.
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

    /// Registry of the change.
    #[must_use]
    pub fn registry(&self) -> &str {
        match self {
            Self::Listed { registry, .. }
            | Self::Failed { registry, .. }
            | Self::Forget { registry } => registry,
            _ => self.spec().map_or("", |spec| spec.registry.as_str()),
        }
    }

    /// Spec of the change, if there is one.
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

    /// Whether the change affects the catalog of platforms.
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

    /// Whether the change is a problem that operators should see.
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
