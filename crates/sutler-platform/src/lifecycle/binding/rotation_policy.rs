//! When a binding is rotated, and when what it replaced is unbound. Pure: moments are passed in.
//!
//! The expiry chore lists bindings by [`Binding::due`], and then asks for what is due; the rules are in `rotate.rs`.

use crate::lifecycle::binding::{Binding, BoundDetails, GENERATIONS_MAX};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use sutler_osb::BindingId;

/// Shortest time between two rotations.
pub const EVERY_MIN: Duration = Duration::from_secs(10 * 60);
/// Longest overlap.
pub const OVERLAP_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// How long before `renew_before` a binding is rotated at most.
const RENEWAL_MARGIN_MAX: Duration = Duration::from_secs(3600);
/// Pause after the first failure of a rotation or an unbind; it doubles with each.
const FAILURE_PAUSE: Duration = Duration::from_secs(3600);
/// Longest of these pauses.
const FAILURE_PAUSE_MAX: Duration = Duration::from_secs(24 * 3600);

/// When a binding is rotated without being asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedPolicy")]
pub struct RotationPolicy {
    every: Option<Duration>,
    overlap: Duration,
}

/// Times that cannot be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RotationPolicyError {
    /// More often than [`EVERY_MIN`].
    #[error("a binding must not be rotated more often than every {} minutes", EVERY_MIN.as_secs() / 60)]
    TooOften,
    /// Longer than [`OVERLAP_MAX`].
    #[error("the overlap must not be longer than {} days", OVERLAP_MAX.as_secs() / 86_400)]
    OverlapTooLong,
}

#[derive(Deserialize)]
struct UncheckedPolicy {
    every: Option<Duration>,
    overlap: Duration,
}

impl TryFrom<UncheckedPolicy> for RotationPolicy {
    type Error = RotationPolicyError;

    fn try_from(policy: UncheckedPolicy) -> Result<Self, RotationPolicyError> {
        Self::new(policy.every, policy.overlap)
    }
}

/// Rotations that failed one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedRotations {
    /// How many.
    pub count: u32,
    /// No rotation without a person before then.
    pub again_at: Timestamp,
}

impl RotationPolicy {
    /// Rotates so often, or only before the broker's credentials expire; what is replaced works for the overlap.
    ///
    /// # Errors
    /// More often than [`EVERY_MIN`], or an overlap longer than [`OVERLAP_MAX`].
    pub fn new(every: Option<Duration>, overlap: Duration) -> Result<Self, RotationPolicyError> {
        if every.is_some_and(|every| every < EVERY_MIN) {
            return Err(RotationPolicyError::TooOften);
        }
        if overlap > OVERLAP_MAX {
            return Err(RotationPolicyError::OverlapTooLong);
        }
        Ok(Self { every, overlap })
    }

    /// The time between two rotations, if it is fixed.
    pub fn every(&self) -> Option<Duration> {
        self.every
    }

    /// How long replaced credentials work.
    pub fn overlap(&self) -> Duration {
        self.overlap
    }

    /// When credentials are to be replaced.
    fn renewal(&self, bound: &BoundDetails) -> Option<Timestamp> {
        let by_age = self.every.map(|every| later(bound.bound_at, every));
        by_age.into_iter().chain(self.before_expiry(bound)).min()
    }

    /// Shortly before `renew_before`, or early enough for the overlap before the credentials expire; but never in the
    /// first half of their life (P-104).
    fn before_expiry(&self, bound: &BoundDetails) -> Option<Timestamp> {
        let (limit, needed) = match (bound.renew_before, bound.expires_at) {
            (Some(renew_before), _) => (renew_before, Duration::ZERO),
            (None, Some(expires_at)) => (expires_at, self.overlap),
            (None, None) => return None,
        };
        let life = bound.bound_at.duration_until(limit);
        let life = Duration::try_from(life).unwrap_or_default();
        let margin = (life / 10).min(RENEWAL_MARGIN_MAX).saturating_add(needed);
        let wait = life.saturating_sub(margin).max(life / 2);
        Some(later(bound.bound_at, wait))
    }
}

impl FailedRotations {
    /// One more.
    pub(super) fn after(earlier: Option<Self>, now: Timestamp) -> Self {
        let count = earlier.map_or(0, |it| it.count);
        Self {
            count: count.saturating_add(1),
            again_at: later(now, failure_pause(count)),
        }
    }
}

impl Binding {
    /// The next moment at which the expiry chore has something to do.
    pub fn due(&self) -> Option<Timestamp> {
        let retirement = self.next_retirement().map(|(until, _)| until);
        self.renewal_due().into_iter().chain(retirement).min()
    }

    /// When it is to be rotated. Never while a bind is pending, or while there are too many generations.
    pub fn renewal_due(&self) -> Option<Timestamp> {
        let is_free = self.tombstone.is_none()
            && self.deletion.is_none()
            && self.pending_bind().is_none()
            && self.bound_generations() < GENERATIONS_MAX;
        let policy = self.rotation.filter(|_| is_free)?;
        let due = policy.renewal(self.current()?)?;
        let paused = self.failed_rotations.map(|failed| failed.again_at);
        Some(paused.map_or(due, |paused| due.max(paused)))
    }

    /// The next retiring generation to unbind, and when.
    pub fn next_retirement(&self) -> Option<(Timestamp, &BindingId)> {
        if self.tombstone.is_some() || self.deletion.is_some() {
            return None;
        }
        let retiring = self.generations.iter().filter_map(|generation| {
            let retirement = generation.retirement()?;
            let is_pending = self.unbind_of(&generation.osb_id).is_some();
            (!is_pending).then_some((retirement.until, &generation.osb_id))
        });
        retiring.min_by_key(|(until, _)| *until)
    }
}

/// The pause after so many earlier failures.
pub(super) fn failure_pause(earlier: u32) -> Duration {
    FAILURE_PAUSE
        .saturating_mul(2_u32.saturating_pow(earlier))
        .min(FAILURE_PAUSE_MAX)
}

/// The moment after a pause.
pub(super) fn later(now: Timestamp, pause: Duration) -> Timestamp {
    now.checked_add(pause).unwrap_or(Timestamp::MAX)
}
