//! Keeps the view of one replica up to date: reads everything once, then follows the watch.
//!
//! A read that must include everything acknowledged before gets the revision of the head from etcd and
//! waits until the view has reached it ([`WatchFollower::catch_up`]). A watch that does not deliver
//! changes that etcd has is closed and opened again at the next member. If etcd has compacted the needed
//! revision, the view is read again. Hints for workers come from here too, for changes of any replica.

use crate::client::{Client, EtcdError};
use crate::keys::{KeyTarget, Keys};
use crate::rows::read_time;
use crate::view::{View, ViewChange};
use crate::watch::Watch;
use crate::wire::{Event, EventKind, Range};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};
use sutler_journal::{StoreError, StoreTime};
use tokio::sync::watch;

/// Keys per read at the start: first, minimum and maximum. etcd 3.4 visits every
/// key after a page to count it, so pages are as large as their contents allow.
const PAGE: usize = 500;
const PAGE_MIN: usize = 50;
const PAGE_MAX: usize = 10_000;
/// Approximate size in bytes of one of these responses.
const PAGE_BYTES: usize = 16 * 1024 * 1024;
/// Attempts to read everything while etcd is compacted.
const LOADS_MAX: usize = 10;
/// Wait before a watch is opened again: first, and maximum.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The view of one replica, and its waiters.
pub(crate) struct WatchFollower {
    pub(crate) client: Arc<Client>,
    pub(crate) keys: Keys,
    view: RwLock<View>,
    reached: watch::Sender<i64>,
    hints: watch::Sender<u64>,
    feed_hints: watch::Sender<u64>,
    /// Start of the longest wait for the watch to deliver.
    stalled_since: watch::Sender<Option<Instant>>,
    deliver_within: Duration,
}

impl WatchFollower {
    /// Reads the whole store.
    pub(crate) async fn load(
        client: Arc<Client>,
        keys: Keys,
        deliver_within: Duration,
    ) -> Result<Self, StoreError> {
        let view = read_all(&client, &keys).await?;
        Ok(Self {
            reached: watch::Sender::new(view.revision),
            view: RwLock::new(view),
            client,
            keys,
            hints: watch::Sender::new(0),
            feed_hints: watch::Sender::new(0),
            stalled_since: watch::Sender::new(None),
            deliver_within,
        })
    }

    /// The current view; the lock is never held across a wait.
    pub(crate) fn view(&self) -> Result<RwLockReadGuard<'_, View>, StoreError> {
        self.view.read().map_err(|_| {
            StoreError::new("this replica's view of etcd is half changed: restart the process")
        })
    }

    /// Changes local knowledge of the view; for deleted overflow values.
    pub(crate) fn amend(&self, change: impl FnOnce(&mut View)) {
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut view);
    }

    pub(crate) fn hints(&self) -> watch::Receiver<u64> {
        self.hints.subscribe()
    }

    pub(crate) fn feed_hints(&self) -> watch::Receiver<u64> {
        self.feed_hints.subscribe()
    }

    /// Waits until the view includes everything acknowledged before: one round trip. Returns the current
    /// revision of etcd; from the head's to this one no document, operation or commit changed.
    pub(crate) async fn catch_up(&self) -> Result<i64, StoreError> {
        let head = Range::one(self.keys.head());
        let answer = self.client.range(&head).await?;
        let revision = answer.kvs.first().map_or(0, |kv| kv.mod_revision.0);
        self.reach(revision).await?;
        Ok(answer.header.revision.0)
    }

    /// Reads from a view with everything acknowledged before. Rows named by the view are in etcd at the
    /// returned revision, which is as new as possible: other users of the same etcd may have compacted
    /// many revisions since this store last changed.
    pub(crate) async fn current<T>(
        &self,
        read: impl FnOnce(&View) -> Result<T, StoreError>,
    ) -> Result<(T, i64), StoreError> {
        let at = self.catch_up().await?;
        let view = self.view()?;
        Ok((read(&view)?, at.max(view.revision)))
    }

    /// Waits until the view has reached a revision.
    pub(crate) async fn reach(&self, revision: i64) -> Result<(), StoreError> {
        let began = Instant::now();
        let mut reached = self.reached.subscribe();
        let arrival = reached.wait_for(|reached| *reached >= revision);
        match tokio::time::timeout(self.deliver_within, arrival).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => {
                self.stalled_since.send_replace(Some(began));
                Err(StoreError::new(
                    "etcd's watch lags behind; it is opened again, so ask again",
                ))
            }
        }
    }

    /// Follows the store until the task is aborted.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut pause = PAUSE_MIN;
        loop {
            match self.follow(&mut pause).await {
                Ok(()) => {}
                Err(EtcdError::Compacted) => match read_all(&self.client, &self.keys).await {
                    Ok(view) => self.replace(view),
                    Err(error) => tracing::warn!(%error, "etcd could not be read anew"),
                },
                Err(EtcdError::NotDone(error) | EtcdError::Unanswered(error)) => {
                    tracing::debug!(%error, "the watch on etcd is opened again");
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Follows one watch to its end.
    async fn follow(&self, pause: &mut Duration) -> Result<(), EtcdError> {
        let next = *self.reached.borrow() + 1;
        let opening = Watch::open(&self.client, self.keys.followed(), next);
        let Ok(opened) = tokio::time::timeout(self.deliver_within, opening).await else {
            return self.switch_member().await;
        };
        let mut watch = opened?;
        let opened = Instant::now();
        let (mut received, mut stalled_since) = (opened, self.stalled_since.subscribe());
        loop {
            // A wait that started before the last message does not mean that this watch is stuck.
            let stalled = async {
                let after = |began: &Option<Instant>| began.is_some_and(|began| began > received);
                drop(stalled_since.wait_for(after).await);
            };
            let events = tokio::select! {
                events = watch.next() => events,
                () = stalled => break,
            };
            received = Instant::now();
            if opened.elapsed() > PAUSE_MAX {
                *pause = PAUSE_MIN;
            }
            let events = events?;
            if let Err(error) = self.apply_events(&events) {
                tracing::error!(%error, "a change in etcd cannot be taken in");
                return Err(EtcdError::NotDone(error));
            }
        }
        self.switch_member().await
    }

    /// Switches to another member after this one did not deliver.
    async fn switch_member(&self) -> Result<(), EtcdError> {
        let (member, _) = self.client.member().await?;
        self.client.leave(member);
        Ok(())
    }

    fn apply_events(&self, events: &[Event]) -> Result<(), StoreError> {
        for event in events {
            learn_time(&self.client, &self.keys, event);
        }
        let now = self.client.clock.now();
        let (mut claimable, mut commits) = (false, false);
        let revision = {
            let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
            for event in events {
                match view.apply(&self.keys, event, now)? {
                    ViewChange::Claimable => claimable = true,
                    ViewChange::Commit => commits = true,
                    ViewChange::Other => {}
                }
            }
            view.revision
        };
        self.reached.send_replace(revision);
        if commits {
            self.feed_hints.send_modify(|hints| *hints += 1);
        }
        if claimable {
            self.hints.send_modify(|hints| *hints += 1);
        }
        Ok(())
    }

    fn replace(&self, view: View) {
        let revision = view.revision;
        *self.view.write().unwrap_or_else(PoisonError::into_inner) = view;
        self.reached.send_replace(revision);
        self.feed_hints.send_modify(|hints| *hints += 1);
        self.hints.send_modify(|hints| *hints += 1);
    }
}

/// Adopts the lower bound of the time in the head: replicas agree on the latest of these, so an
/// operation that is due for one of them is due for all.
fn learn_time(client: &Client, keys: &Keys, event: &Event) {
    if let (EventKind::Put, Some(KeyTarget::Head)) = (event.kind, keys.place(&event.kv.key.0))
        && let Ok(time) = read_time(&event.kv.value.0)
    {
        client.clock.is_at_least(time);
    }
}

/// Reads everything; starts again if etcd is compacted meanwhile.
async fn read_all(client: &Client, keys: &Keys) -> Result<View, StoreError> {
    for _ in 0..LOADS_MAX {
        match read_once(client, keys).await {
            Err(EtcdError::Compacted) => {}
            read => return Ok(read?),
        }
    }
    Err(EtcdError::Compacted.into())
}

/// Reads all followed keys, and the list of overflow values, at one revision.
async fn read_once(client: &Client, keys: &Keys) -> Result<View, EtcdError> {
    let mut view = View::default();
    let (mut from, to) = keys.followed();
    let (mut revision, mut limit) = (None, PAGE);
    loop {
        let range = Range::between((from, to.clone())).limit(limit).at(revision);
        let page = client.range(&range).await?;
        let bytes: usize = page.kvs.iter().map(|kv| kv.value.0.len() + 100).sum();
        let each = (bytes / page.kvs.len().max(1)).max(1);
        limit = (PAGE_BYTES / each).clamp(PAGE_MIN, PAGE_MAX);
        let at = *revision.get_or_insert(page.header.revision.0);
        let last = page.kvs.last().map(|kv| kv.key.0.to_vec());
        for kv in page.kvs {
            let kind = EventKind::Put;
            let event = Event { kind, kv };
            learn_time(client, keys, &event);
            let applied = view.apply(keys, &event, StoreTime(i64::MIN));
            applied.map_err(EtcdError::NotDone)?;
        }
        match last {
            Some(mut last) if page.more => {
                last.push(0);
                from = last;
            }
            Some(_) | None => {
                view.revision = at;
                break;
            }
        }
    }
    let mut overflows = Range::between(keys.overflows()).at(revision);
    overflows.keys_only = true;
    for kv in client.range(&overflows).await?.kvs {
        if let Some(overflow) = keys.overflow_of(&kv.key.0) {
            view.operations.found_overflow(overflow);
        }
    }
    Ok(view)
}
