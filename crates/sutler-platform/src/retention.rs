//! How long the platform keeps what has ended. What runs, waits or needs a person is kept in any case.

use std::time::Duration;
use sutler_records::FeedRetention;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// How long the platform keeps what has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionSettings {
    /// Intents, with who asked for what and how it ended.
    pub journal: Duration,
    /// Instances and bindings that are gone: until then they are shown by their uid.
    pub tombstones: Duration,
    /// Orphans that are deleted. Others are kept until they are.
    pub orphans: Duration,
    /// The feed of changes. A watch that is older has to list again.
    pub feed: FeedRetention,
}

impl Default for RetentionSettings {
    fn default() -> Self {
        Self {
            journal: 400 * DAY,
            tombstones: 30 * DAY,
            orphans: 90 * DAY,
            feed: FeedRetention::default(),
        }
    }
}
