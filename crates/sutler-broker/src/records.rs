//! Documents and operations as the broker keeps them: keys, terms, sealing.
//!
//! The only file that knows both the journal's bytes and the broker's types. It decides nothing:
//! `lifecycle/` does, `desk.rs` and `executor.rs` ask it.

use crate::lifecycle::binding::{self, Binding};
use crate::lifecycle::instance::{self, Instance};
use crate::lifecycle::{AuthorState, Decision};
use crate::operation_log::Origin;
use crate::refusal::Refusal;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use sutler_journal::{
    Commit, CommitRejected, Key, KeyRing, Kind, Lost, Operation, OperationId, Realm, Run,
    SealContext, SealError, SealedWith, Store, StoreError, Term, Version, Write,
};
use sutler_osb::{BindingId, InstanceId, OriginatingIdentity, RequestIdentity};

pub(crate) const INSTANCE: Kind = Kind::new("instance");
pub(crate) const BINDING: Kind = Kind::new("binding");
pub(crate) const PLAN: Kind = Kind::new("plan");
pub(crate) const SINGLETON: Kind = Kind::new("singleton");

/// Terms. A binding is listed by its instance under these two.
pub(crate) const OF: &str = "of";
pub(crate) const BUSY: &str = "busy";
/// When something went; tombstones are swept by it.
pub(crate) const GONE: &str = "gone";
pub(crate) const PLAN_TERM: &str = "plan";
/// The plan that an instance is being moved to, if that is another.
pub(crate) const NEXT_PLAN_TERM: &str = "next_plan";
pub(crate) const LIFECYCLE: &str = "lifecycle";
/// Accepted before its plan was offered; the value is always the same.
pub(crate) const WAITS: &str = "waits";
pub(crate) const WAITS_FOR_PLAN: &[u8] = b"plan";

/// Why a record cannot be had. Its text is for operators.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    #[error("the store did not answer")]
    Store(#[from] StoreError),
    #[error("a record cannot be opened")]
    Seal(#[from] SealError),
    #[error("a record does not have the expected form")]
    Form(#[source] serde_json::Error),
}

/// What a poll is told, and what a caller that waits is told in the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Detail {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_usable: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_repeatable: Option<bool>,
    /// When a poll should come again, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// The hook refused: which refusal a waiting caller is answered with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedAs>,
}

/// A hook's refusal, as kept with the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RefusedAs {
    Invalid,
    Unsupported,
    RequiresApp,
}

/// What was asked, by whom. Never changes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    /// The body as understood.
    pub asked: Box<RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<OriginatingIdentity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_identity: Option<RequestIdentity>,
    /// The request it goes back to.
    #[serde(default)]
    pub origin: Origin,
}

/// What was asked, as text.
pub(crate) fn asked(what: &impl Serialize) -> Box<RawValue> {
    serde_json::value::to_raw_value(what).expect("our own types serialise")
}

/// What an operation did so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Steps {
    /// Results of the author's steps.
    #[serde(default)]
    pub memos: BTreeMap<String, Value>,
    /// Unbinds that a deprovision started, by binding.
    #[serde(default)]
    pub cascade: BTreeMap<String, OperationId>,
}

/// Whether a state could be saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Saved {
    Kept,
    TooLarge,
}

impl Saved {
    /// What a hook is told of a state that could not be saved.
    pub(crate) fn into_error(self) -> crate::error::Error {
        crate::error::Error::failed("The state of the operation is too large to be kept.")
    }
}

/// A document as read.
#[derive(Clone, Debug)]
pub(crate) struct Loaded<S> {
    pub state: S,
    /// `None`: there is no document.
    pub version: Option<Version>,
    /// Sealed by a key that is rotated out: worth writing anew.
    pub sealed_with: SealedWith,
}

impl<S: Kept> Loaded<S> {
    /// What was never written.
    pub(crate) fn absent() -> Self {
        Self {
            state: S::default(),
            version: None,
            sealed_with: SealedWith::Current,
        }
    }
}

/// A resource the broker keeps.
pub(crate) trait Kept:
    Serialize + DeserializeOwned + Default + Clone + PartialEq + Send + 'static
{
    fn terms(&self, key: &Key) -> Vec<Term>;
    fn pins(&self) -> Vec<OperationId>;
    /// What saving the author's state means for it.
    fn saved(self, operation: OperationId, state: AuthorState) -> Result<Decision<Self>, Refusal>;
}

impl Kept for Instance {
    fn terms(&self, _key: &Key) -> Vec<Term> {
        match self.thing() {
            Some(thing) => {
                let mut terms = vec![
                    Term::new(PLAN_TERM, thing.spec.plan_id.as_str()),
                    Term::new(LIFECYCLE, self.lifecycle()),
                ];
                if let Some(next) = self.next_plan() {
                    terms.push(Term::new(NEXT_PLAN_TERM, next.as_str()));
                }
                if thing.spec.waits_for_plan() {
                    terms.push(Term::new(WAITS, WAITS_FOR_PLAN));
                }
                terms
            }
            None => vec![gone_term()],
        }
    }

    fn pins(&self) -> Vec<OperationId> {
        Instance::pins(self)
    }

    fn saved(self, operation: OperationId, state: AuthorState) -> Result<Decision<Self>, Refusal> {
        instance::decide(self, instance::Event::Saved { operation, state })
    }
}

impl Kept for Binding {
    fn terms(&self, key: &Key) -> Vec<Term> {
        if self.bond().is_none() {
            return vec![gone_term()];
        }
        let mut terms = vec![
            Term::new(OF, key.id(0)),
            Term::new(LIFECYCLE, self.lifecycle()),
        ];
        if self.is_busy() {
            terms.push(Term::new(BUSY, key.id(0)));
        }
        terms
    }

    fn pins(&self) -> Vec<OperationId> {
        Binding::pins(self)
    }

    fn saved(self, operation: OperationId, state: AuthorState) -> Result<Decision<Self>, Refusal> {
        binding::decide(self, binding::Event::Saved { operation, state })
    }
}

fn gone_term() -> Term {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Term::new(GONE, moment_bytes(now))
}

/// Sorts as the moments do.
pub(crate) fn moment_bytes(since_epoch: Duration) -> Vec<u8> {
    since_epoch.as_secs().to_be_bytes().to_vec()
}

/// The broker's shelf in the store.
pub(crate) struct Records {
    pub store: Arc<dyn Store>,
    pub keys: Arc<KeyRing>,
    pub realm: Realm,
}

impl Records {
    pub(crate) fn instance_key(&self, id: &InstanceId) -> Key {
        Key::new(&self.realm, INSTANCE, &[id.as_str()]).expect("an InstanceId is a valid id")
    }

    pub(crate) fn binding_key(&self, instance: &InstanceId, id: &BindingId) -> Key {
        Key::new(&self.realm, BINDING, &[instance.as_str(), id.as_str()])
            .expect("both are valid ids")
    }

    pub(crate) fn key(&self, kind: Kind, name: &str) -> Key {
        Key::new(&self.realm, kind, &[name]).expect("the broker's own names are valid")
    }

    /// Reads a resource; one that was never written is in its default state.
    pub(crate) async fn load<S: Kept>(&self, key: &Key) -> Result<Loaded<S>, RecordError> {
        match self.store.get(key).await? {
            None => Ok(Loaded::absent()),
            Some(document) => {
                let (state, sealed_with) = self.open(SealContext::Document(key), &document.body)?;
                Ok(Loaded {
                    state,
                    version: Some(document.version),
                    sealed_with,
                })
            }
        }
    }

    /// Adds a resource's next state to a commit, and frees operations it no longer points to.
    pub(crate) fn put<S: Kept>(
        &self,
        commit: Commit,
        key: &Key,
        was: &Loaded<S>,
        next: &S,
    ) -> Commit {
        let body = self.seal(SealContext::Document(key), next);
        let terms = next.terms(key);
        let commit = match was.version {
            None => commit.insert(key.clone(), terms, body),
            Some(version) => commit.replace(key.clone(), version, terms, body),
        };
        let kept = next.pins();
        let freed = was.state.pins().into_iter().filter(|id| !kept.contains(id));
        freed.fold(commit, |commit, id| commit.write(Write::Unpin(id)))
    }

    /// Writes a record anew that a rotated-out key sealed. Best effort: whoever writes first wins.
    pub(crate) async fn refresh<S: Kept>(&self, key: &Key, loaded: &Loaded<S>) {
        if loaded.sealed_with == SealedWith::Older {
            let commit = self.put(Commit::new(), key, loaded, &loaded.state);
            if let Err(error) = self.store.commit(&commit).await {
                tracing::debug!(%error, "a record was not sealed anew this time");
            }
        }
    }

    /// Saves an author's state in the middle of an operation.
    pub(crate) async fn save_state(
        &self,
        run: &Run,
        lane: &Key,
        state: AuthorState,
    ) -> Result<Saved, Lost> {
        if lane.kind() == BINDING.as_str() {
            self.save_state_of::<Binding>(run, lane, state).await
        } else {
            self.save_state_of::<Instance>(run, lane, state).await
        }
    }

    async fn save_state_of<S: Kept>(
        &self,
        run: &Run,
        lane: &Key,
        state: AuthorState,
    ) -> Result<Saved, Lost> {
        loop {
            let was = self.load_for_run::<S>(run, lane).await?;
            let Ok(decision) = was.state.clone().saved(run.id(), state.clone()) else {
                return Ok(Saved::Kept);
            };
            let commit = self.put(Commit::new(), lane, &was, &decision.next);
            match run.commit(commit).await? {
                Ok(()) => return Ok(Saved::Kept),
                Err(CommitRejected::Stale(_)) => {}
                Err(CommitRejected::TooLarge(_)) => return Ok(Saved::TooLarge),
            }
        }
    }

    /// Reads for a run: waits for a store that does not answer, as long as the claim lasts.
    pub(crate) async fn load_for_run<S: Kept>(
        &self,
        run: &Run,
        key: &Key,
    ) -> Result<Loaded<S>, Lost> {
        loop {
            match self.load::<S>(key).await {
                Ok(loaded) => return Ok(loaded),
                Err(RecordError::Store(cause)) => {
                    run.wait_for_store(&cause, Duration::from_millis(200))
                        .await?;
                }
                Err(error) => {
                    // A key may be added back to the ring; giving up would lose the operation.
                    let cause = StoreError::caused("a record cannot be read", error);
                    run.wait_for_store(&cause, Duration::from_secs(5)).await?;
                }
            }
        }
    }

    /// Nothing to say is kept as nothing: most polls then have nothing to open.
    pub(crate) fn seal_detail(&self, id: OperationId, detail: &Detail) -> Bytes {
        if *detail == Detail::default() {
            return Bytes::new();
        }
        self.seal(SealContext::Detail(id), detail)
    }

    pub(crate) fn open_detail(
        &self,
        id: OperationId,
        sealed: &[u8],
    ) -> Result<Detail, RecordError> {
        if sealed.is_empty() {
            return Ok(Detail::default());
        }
        self.open(SealContext::Detail(id), sealed)
            .map(|(detail, _)| detail)
    }

    pub(crate) fn seal_steps(&self, id: OperationId, steps: &Steps) -> Bytes {
        self.seal(SealContext::Progress(id), steps)
    }

    pub(crate) fn open_steps(&self, operation: &Operation) -> Result<Steps, RecordError> {
        if operation.progress.is_empty() {
            return Ok(Steps::default());
        }
        self.open(SealContext::Progress(operation.row.id), &operation.progress)
            .map(|(steps, _)| steps)
    }

    pub(crate) fn seal_request(&self, id: OperationId, request: &Request) -> Bytes {
        self.seal(SealContext::Request(id), request)
    }

    pub(crate) fn open_request(&self, operation: &Operation) -> Result<Request, RecordError> {
        self.open(SealContext::Request(operation.row.id), &operation.request)
            .map(|(request, _)| request)
    }

    pub(crate) fn seal<T: Serialize>(&self, place: SealContext<'_>, value: &T) -> Bytes {
        let plain = serde_json::to_vec(value).expect("our own types serialise");
        self.keys.seal(place, &plain)
    }

    pub(crate) fn open<T: DeserializeOwned>(
        &self,
        place: SealContext<'_>,
        sealed: &[u8],
    ) -> Result<(T, SealedWith), RecordError> {
        let (plain, with) = self.keys.open(place, sealed)?;
        let value = serde_json::from_slice(&plain).map_err(RecordError::Form)?;
        Ok((value, with))
    }
}
