//! The journal: documents and operations in a store, and the engine that runs the operations.
//!
//! Reading order: [`Key`] names a resource, [`Document`] and [`Operation`] are stored, [`Commit`] is
//! the only way to change either, [`Store`] is the interface of a database, [`Engine`] runs
//! operations. It knows nothing of service brokers: the crates above decide what an operation means, in
//! pure functions.

mod clock;
mod commit;
mod commit_retry;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
pub mod copy;
mod document;
mod engine;
pub mod inspect;
mod key;
mod key_file;
mod memory;
mod metered;
pub mod metrics;
mod nondeterminism;
mod operation;
mod operation_transitions;
mod printable;
mod query;
pub mod rekey;
mod seal;
mod store;

pub use clock::{Clock, ManualClock, StoreTime, SystemClock};
pub use commit::{
    BYTES_MAX, Commit, CommitError, CommitId, CommitSizeError, Due, EXPECTS_MAX, Expect,
    NewOperation, Next, StaleItem, Start, WRITES_MAX, Write,
};
pub use commit_retry::commit_until_known;
pub use document::{Document, IndexedDocument, TERMS_MAX, Term, Version};
pub use engine::{
    CommitRejectedError, Engine, EngineSettings, Executor, ExpectedClaim, Lost, Permit,
    QueueSettings, Run, RunCommitError, RunCompletion, RunResult, catch_panic,
};
pub use key::{ID_BYTES_MAX, Key, KeyError, Kind, Realm};
pub use key_file::{EditKeyFileError, KeyFileEdit, KeyFileError};
pub use memory::MemoryStore;
pub use metered::MeteredStore;
pub use nondeterminism::wall_clock;
#[cfg(any(test, feature = "testing"))]
pub use nondeterminism::{DelayedTask, NondeterminismSource, simulate};
pub use operation::{
    Fence, Operation, OperationId, OperationRow, Outcome, PolledOperation, Queue, State, WorkerId,
};
pub use query::{
    Change, Changes, Cursor, Layout, List, LogChunk, OperationFilter, OperationList, Page,
    Position, QueueStats, Renewal, Stats, StoreInfo, Subject, Sweep,
};
pub use seal::{KeyId, KeyIdError, KeyRing, KeyRingError, SealContext, SealError, SealedWith};
pub use store::{
    CLAIM_TIME_MAX, LOG_BYTES_MAX, LOG_CHUNK_BYTES_MAX, LeaseError, Store, StoreError,
    lease_call_within,
};
