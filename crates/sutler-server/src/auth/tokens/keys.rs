//! Cache of an issuer's keys. `schedule.rs` decides when they are fetched, `fetch.rs` fetches them.
//!
//! One fetch serves all tokens that wait for keys. A fetch that fails leaves the present keys in place.

use super::fetch::KeySource;
use super::key_set::KeySet;
use super::schedule::{FetchTimes, FetchVerdict, KeyDecision, RefreshSchedule, after_fetch, step};
use crate::metrics::{self, Success};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;

/// Maximum requests that wait for keys at a time.
const WAITING_MAX: usize = 64;

pub(super) struct IssuerKeys {
    source: KeySource,
    schedule: RefreshSchedule,
    kept: RwLock<CachedKeys>,
    /// Held during a fetch.
    fetching: Mutex<()>,
    waiting: Semaphore,
    renewed: AtomicBool,
}

#[derive(Clone, Default)]
struct CachedKeys {
    keys: Arc<KeySet>,
    times: FetchTimes,
}

/// Why there is no key for a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyLookupError {
    Unknown,
    Unavailable,
}

impl IssuerKeys {
    pub(super) fn new(source: KeySource, schedule: RefreshSchedule) -> Arc<Self> {
        Arc::new(Self {
            source,
            schedule,
            kept: RwLock::default(),
            fetching: Mutex::new(()),
            waiting: Semaphore::new(WAITING_MAX),
            renewed: AtomicBool::new(false),
        })
    }

    /// Finds keys for which `check` returns a result. `check` returns `None` if newer keys may give one.
    pub(super) async fn find<T>(
        self: &Arc<Self>,
        check: impl Fn(&KeySet) -> Option<T>,
    ) -> Result<T, KeyLookupError> {
        if let KeySource::Fixed(keys) = &self.source {
            return check(keys).ok_or(KeyLookupError::Unknown);
        }
        self.renew_in_background();
        let kept = self.kept();
        let found = check(&kept.keys);
        match step(found.is_some(), kept.times, self.schedule, Instant::now()) {
            KeyDecision::Use => found.ok_or(KeyLookupError::Unknown),
            KeyDecision::UseAndRefresh => {
                let keys = self.clone();
                tokio::spawn(async move { keys.fetch(kept.times.tried).await });
                found.ok_or(KeyLookupError::Unknown)
            }
            KeyDecision::Fetch => {
                self.wait_for_fetch(kept.times.tried).await?;
                let kept = self.kept();
                let found = check(&kept.keys).ok_or(KeyLookupError::Unknown);
                match after_fetch(found.is_ok(), kept.times, self.schedule, Instant::now()) {
                    FetchVerdict::Decide => found,
                    FetchVerdict::Unavailable => Err(KeyLookupError::Unavailable),
                }
            }
            KeyDecision::Unknown => Err(KeyLookupError::Unknown),
            KeyDecision::Unavailable => Err(KeyLookupError::Unavailable),
        }
    }

    /// Fetches keys now and at every interval, for as long as this is in use, so that they are fresh even after a long time
    /// without a token.
    pub(super) fn renew_in_background(self: &Arc<Self>) {
        let fixed = matches!(self.source, KeySource::Fixed(_));
        if fixed || self.renewed.swap(true, Ordering::Relaxed) {
            return;
        }
        let (weak, refresh): (Weak<Self>, _) = (Arc::downgrade(self), self.schedule.refresh);
        tokio::spawn(async move {
            while let Some(keys) = weak.upgrade() {
                let times = keys.kept().times;
                keys.fetch(times.tried).await;
                drop(keys);
                tokio::time::sleep(refresh).await;
            }
        });
    }

    /// Takes over keys that another one fetched from the same URL, so that a reload keeps them.
    pub(super) fn take_over(&self, other: &Self) {
        if self.source.is_as(&other.source) {
            let kept = other.kept();
            *self.kept.write().unwrap_or_else(PoisonError::into_inner) = kept;
        }
    }

    fn kept(&self) -> CachedKeys {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        kept.clone()
    }

    /// Waits for a fetch, which continues if the caller disconnects.
    async fn wait_for_fetch(
        self: &Arc<Self>,
        tried: Option<Instant>,
    ) -> Result<(), KeyLookupError> {
        let Ok(_place) = self.waiting.try_acquire() else {
            return Err(KeyLookupError::Unavailable);
        };
        let keys = self.clone();
        let fetched = tokio::spawn(async move { keys.fetch(tried).await }).await;
        fetched.map_err(|_| KeyLookupError::Unavailable)
    }

    /// Fetches, unless there was a fetch since `tried`.
    async fn fetch(&self, tried: Option<Instant>) {
        let _turn = self.fetching.lock().await;
        if self.kept().times.tried != tried {
            return;
        }
        let answer = self.source.fetch().await;
        metrics::jwks_refreshed(Success::from(&answer));
        let now = Instant::now();
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        kept.times.tried = Some(now);
        kept.times.failed = answer.is_err();
        match answer {
            Ok(keys) => {
                tracing::debug!(
                    issuer = self.source.name(),
                    keys = keys.len(),
                    "fetched the keys of a token issuer"
                );
                kept.keys = Arc::new(keys);
                kept.times.fetched = Some(now);
            }
            Err(fault) => {
                tracing::warn!(issuer = self.source.name(), %fault, "the keys of a token issuer could not be fetched; those that are known go on working");
            }
        }
    }
}
