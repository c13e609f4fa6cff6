//! The keys of an issuer, kept and renewed: when is decided in `schedule.rs`, how in `fetch.rs`.
//!
//! However many tokens wait for keys, one fetch serves all of them. A fetch that fails leaves the keys
//! that are there.

use super::fetch::Source;
use super::key_set::KeySet;
use super::schedule::{Fetched, Rhythm, Step, Times, after_fetch, step};
use crate::metrics::{self, Success};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;

/// Most requests that wait for keys at a time.
const WAITING_MAX: usize = 64;

pub(super) struct Keys {
    source: Source,
    rhythm: Rhythm,
    kept: RwLock<Kept>,
    /// Held by whoever fetches.
    fetching: Mutex<()>,
    waiting: Semaphore,
    renewed: AtomicBool,
}

#[derive(Clone, Default)]
struct Kept {
    keys: Arc<KeySet>,
    times: Times,
}

/// Why there are no keys for a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoKeys {
    Unknown,
    Unavailable,
}

impl Keys {
    pub(super) fn new(source: Source, rhythm: Rhythm) -> Arc<Self> {
        Arc::new(Self {
            source,
            rhythm,
            kept: RwLock::default(),
            fetching: Mutex::new(()),
            waiting: Semaphore::new(WAITING_MAX),
            renewed: AtomicBool::new(false),
        })
    }

    /// Finds keys with which `check` answers something. `None` of `check`: these keys are not the right
    /// ones, newer ones may be.
    pub(super) async fn find<T>(
        self: &Arc<Self>,
        check: impl Fn(&KeySet) -> Option<T>,
    ) -> Result<T, NoKeys> {
        if let Source::Fixed(keys) = &self.source {
            return check(keys).ok_or(NoKeys::Unknown);
        }
        self.renew_in_background();
        let kept = self.kept();
        let found = check(&kept.keys);
        match step(found.is_some(), kept.times, self.rhythm, Instant::now()) {
            Step::Use => found.ok_or(NoKeys::Unknown),
            Step::UseAndRefresh => {
                let keys = self.clone();
                tokio::spawn(async move { keys.fetch(kept.times.tried).await });
                found.ok_or(NoKeys::Unknown)
            }
            Step::Fetch => {
                self.wait_for_fetch(kept.times.tried).await?;
                let kept = self.kept();
                let found = check(&kept.keys).ok_or(NoKeys::Unknown);
                match after_fetch(found.is_ok(), kept.times, self.rhythm, Instant::now()) {
                    Fetched::Decide => found,
                    Fetched::Unavailable => Err(NoKeys::Unavailable),
                }
            }
            Step::Unknown => Err(NoKeys::Unknown),
            Step::Unavailable => Err(NoKeys::Unavailable),
        }
    }

    /// Fetches keys now, and again and again, for as long as anybody holds them: also after a long
    /// time without a token they are fresh.
    pub(super) fn renew_in_background(self: &Arc<Self>) {
        let fixed = matches!(self.source, Source::Fixed(_));
        if fixed || self.renewed.swap(true, Ordering::Relaxed) {
            return;
        }
        let (weak, refresh): (Weak<Self>, _) = (Arc::downgrade(self), self.rhythm.refresh);
        tokio::spawn(async move {
            while let Some(keys) = weak.upgrade() {
                let times = keys.kept().times;
                keys.fetch(times.tried).await;
                drop(keys);
                tokio::time::sleep(refresh).await;
            }
        });
    }

    /// Takes over what another one fetched from the same place: a reload forgets no keys.
    pub(super) fn take_over(&self, other: &Self) {
        if self.source.is_as(&other.source) {
            let kept = other.kept();
            *self.kept.write().unwrap_or_else(PoisonError::into_inner) = kept;
        }
    }

    fn kept(&self) -> Kept {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        kept.clone()
    }

    /// Waits for a fetch that goes on if the caller leaves.
    async fn wait_for_fetch(self: &Arc<Self>, tried: Option<Instant>) -> Result<(), NoKeys> {
        let Ok(_place) = self.waiting.try_acquire() else {
            return Err(NoKeys::Unavailable);
        };
        let keys = self.clone();
        let fetched = tokio::spawn(async move { keys.fetch(tried).await }).await;
        fetched.map_err(|_| NoKeys::Unavailable)
    }

    /// Fetches, unless somebody did since `tried`.
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
