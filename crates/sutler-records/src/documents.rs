//! Sealed documents and operations in one realm of a store: loading, writing, sealing.
//!
//! The types that are stored belong to the crate above: a document is a [`Resource`], and requests,
//! details and progress of operations are any serialisable types. Rules are not applied here: a
//! [`Decision`](crate::Decision) is written by `commit.rs`.

use crate::StoreClock;
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::{
    Commit, Key, KeyRing, Kind, Lost, Operation, OperationId, Realm, Run, SealContext, SealError,
    SealedWith, Store, StoreError, StoreTime, Term, Version, Write,
};

/// Pause before a run reads again from a store that does not answer.
const STORE_PAUSE: Duration = Duration::from_millis(200);
/// Pause before a run reads again what it cannot open: a key may be added to the ring.
const SEAL_PAUSE: Duration = Duration::from_secs(5);

/// Why a document or an operation cannot be read. The text is for operators.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The store does not answer.
    #[error("the store did not answer")]
    Store(#[from] StoreError),
    /// The key ring does not open it.
    #[error("a record cannot be opened")]
    Seal(#[from] SealError),
    /// It is not the JSON of the expected type.
    #[error("a record does not have the expected form")]
    Form(#[source] serde_json::Error),
}

/// A document with index terms that refers to operations.
pub trait Resource:
    Serialize + DeserializeOwned + Default + Clone + PartialEq + Send + 'static
{
    /// Plain index terms under which the document with this key is listed.
    fn terms(&self, key: &Key) -> Vec<Term>;

    /// More terms, which depend on the time of writing by the store's clock.
    fn dated_terms(&self, _written: StoreTime) -> Vec<Term> {
        Vec::new()
    }

    /// Operations that must not be swept while the document is in this state.
    fn referenced_operations(&self) -> Vec<OperationId>;
}

/// A document as it was read.
#[derive(Clone, Debug)]
pub struct LoadedDocument<S> {
    /// The opened state; the default state if there is no document.
    pub state: S,
    /// Version that was read; `None` if there is no document.
    pub version: Option<Version>,
    /// Whether the present key sealed it.
    pub sealed_with: SealedWith,
}

impl<S: Resource> LoadedDocument<S> {
    /// A document that does not exist.
    #[must_use]
    pub fn absent() -> Self {
        Self {
            state: S::default(),
            version: None,
            sealed_with: SealedWith::Current,
        }
    }

    /// A document that was just committed in this version.
    #[must_use]
    pub fn written(state: S, version: Version) -> Self {
        Self {
            state,
            version: Some(version),
            sealed_with: SealedWith::Current,
        }
    }
}

/// The sealed documents and operations of one realm.
pub struct Documents {
    /// Store that holds them.
    pub store: Arc<dyn Store>,
    /// Keys that seal them.
    pub keys: Arc<KeyRing>,
    /// Realm of every key.
    pub realm: Realm,
    /// The store's clock.
    pub clock: Arc<StoreClock>,
}

impl Documents {
    /// Key of a document with a single, valid id.
    ///
    /// # Panics
    /// `name` is empty, too long or contains NUL.
    #[must_use]
    pub fn key(&self, kind: Kind, name: &str) -> Key {
        Key::new(&self.realm, kind, &[name]).expect("names of singletons are valid ids")
    }

    /// Reads a document; one that does not exist is in its default state.
    ///
    /// # Errors
    /// The store does not answer, or the document cannot be opened.
    pub async fn load<S: Resource>(&self, key: &Key) -> Result<LoadedDocument<S>, RecordError> {
        match self.store.get(key).await? {
            None => Ok(LoadedDocument::absent()),
            Some(document) => {
                let (state, sealed_with) = self.open(SealContext::Document(key), &document.body)?;
                Ok(LoadedDocument {
                    state,
                    version: Some(document.version),
                    sealed_with,
                })
            }
        }
    }

    /// All terms of a document that is written now.
    #[must_use]
    pub fn terms_of<S: Resource>(&self, key: &Key, state: &S) -> Vec<Term> {
        let mut terms = state.terms(key);
        terms.extend(state.dated_terms(self.clock.now()));
        terms
    }

    /// Adds the next state of a document to a commit, and unpins the operations it no longer refers
    /// to.
    #[must_use]
    pub fn put<S: Resource>(
        &self,
        commit: Commit,
        key: &Key,
        was: &LoadedDocument<S>,
        next: &S,
    ) -> Commit {
        let body = self.seal(SealContext::Document(key), next);
        let terms = self.terms_of(key, next);
        let commit = match was.version {
            None => commit.insert(key.clone(), terms, body),
            Some(version) => commit.replace(key.clone(), version, terms, body),
        };
        let referenced = next.referenced_operations();
        let before = was.state.referenced_operations().into_iter();
        let freed = before.filter(|id| !referenced.contains(id));
        freed.fold(commit, |commit, id| commit.write(Write::Unpin(id)))
    }

    /// Seals a document again if a rotated-out key sealed it. Best effort: a concurrent write wins.
    pub async fn refresh<S: Resource>(&self, key: &Key, loaded: &LoadedDocument<S>) {
        if loaded.sealed_with == SealedWith::Older {
            let commit = self.put(Commit::new(), key, loaded, &loaded.state);
            if let Err(error) = self.store.commit(&commit).await {
                tracing::debug!(%error, "a record was not sealed again this time");
            }
        }
    }

    /// Reads a document for a run: waits for a store that does not answer while the claim lasts.
    ///
    /// # Errors
    /// The claim was lost.
    pub async fn load_for_run<S: Resource>(
        &self,
        run: &Run,
        key: &Key,
    ) -> Result<LoadedDocument<S>, Lost> {
        loop {
            match self.load::<S>(key).await {
                Ok(loaded) => return Ok(loaded),
                Err(error) => wait_to_read(run, "a record cannot be read", error).await?,
            }
        }
    }

    /// Opens the request of a run's operation; waits while it cannot be opened.
    ///
    /// # Errors
    /// The claim was lost.
    pub async fn request_of_run<Q: DeserializeOwned>(&self, run: &Run) -> Result<Q, Lost> {
        loop {
            match self.open_request(run.operation()) {
                Ok(request) => return Ok(request),
                Err(error) => wait_to_read(run, "a request cannot be read", error).await?,
            }
        }
    }

    /// Opens the progress of a run's operation; waits while it cannot be opened.
    ///
    /// # Errors
    /// The claim was lost.
    pub async fn progress_of_run<P: DeserializeOwned + Default>(
        &self,
        run: &Run,
    ) -> Result<P, Lost> {
        loop {
            match self.open_progress(run.operation()) {
                Ok(progress) => return Ok(progress),
                Err(error) => wait_to_read(run, "progress cannot be read", error).await?,
            }
        }
    }

    /// Seals the detail of an operation. The default detail is stored as no bytes, so that most polls
    /// have nothing to open.
    #[must_use]
    pub fn seal_detail<D: Serialize + Default + PartialEq>(
        &self,
        id: OperationId,
        detail: &D,
    ) -> Bytes {
        if *detail == D::default() {
            return Bytes::new();
        }
        self.seal(SealContext::Detail(id), detail)
    }

    /// Opens the detail of an operation.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open_detail<D: DeserializeOwned + Default>(
        &self,
        id: OperationId,
        sealed: &[u8],
    ) -> Result<D, RecordError> {
        if sealed.is_empty() {
            return Ok(D::default());
        }
        self.open(SealContext::Detail(id), sealed)
            .map(|(detail, _)| detail)
    }

    /// Seals the progress of an operation.
    #[must_use]
    pub fn seal_progress<P: Serialize>(&self, id: OperationId, progress: &P) -> Bytes {
        self.seal(SealContext::Progress(id), progress)
    }

    /// Opens the progress of an operation; the default if nothing was saved.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open_progress<P: DeserializeOwned + Default>(
        &self,
        operation: &Operation,
    ) -> Result<P, RecordError> {
        if operation.progress.is_empty() {
            return Ok(P::default());
        }
        self.open(SealContext::Progress(operation.row.id), &operation.progress)
            .map(|(progress, _)| progress)
    }

    /// Seals the request of an operation.
    #[must_use]
    pub fn seal_request<Q: Serialize>(&self, id: OperationId, request: &Q) -> Bytes {
        self.seal(SealContext::Request(id), request)
    }

    /// Opens the request of an operation.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open_request<Q: DeserializeOwned>(
        &self,
        operation: &Operation,
    ) -> Result<Q, RecordError> {
        self.open(SealContext::Request(operation.row.id), &operation.request)
            .map(|(request, _)| request)
    }

    /// Seals the request of one operation for another operation.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn copy_request(
        &self,
        operation: &Operation,
        copy: OperationId,
    ) -> Result<Bytes, RecordError> {
        let sealed_at = SealContext::Request(operation.row.id);
        let (plain, _) = self.keys.open(sealed_at, &operation.request)?;
        Ok(self.keys.seal(SealContext::Request(copy), &plain))
    }

    /// Seals a value as JSON.
    ///
    /// # Panics
    /// The type does not serialise.
    #[must_use]
    pub fn seal<T: Serialize>(&self, place: SealContext<'_>, value: &T) -> Bytes {
        let plain = serde_json::to_vec(value).expect("stored types serialise");
        self.keys.seal(place, &plain)
    }

    /// Opens a sealed value. Also returns which key sealed it.
    ///
    /// # Errors
    /// It cannot be opened, or does not have the form of `T`.
    pub fn open<T: DeserializeOwned>(
        &self,
        place: SealContext<'_>,
        sealed: &[u8],
    ) -> Result<(T, SealedWith), RecordError> {
        let (plain, with) = self.keys.open(place, sealed)?;
        let value = serde_json::from_slice(&plain).map_err(RecordError::Form)?;
        Ok((value, with))
    }
}

/// Waits before a run reads again. Giving up would lose the operation.
pub(crate) async fn wait_to_read(
    run: &Run,
    failure: &'static str,
    error: RecordError,
) -> Result<(), Lost> {
    match error {
        RecordError::Store(cause) => run.wait_for_store(&cause, STORE_PAUSE).await,
        error => {
            let cause = StoreError::caused(failure, error);
            run.wait_for_store(&cause, SEAL_PAUSE).await
        }
    }
}
