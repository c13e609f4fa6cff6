//! The journal: nothing happens that is not first written down.
//!
//! Reading order: [`Key`] names a thing, [`Document`] and [`Operation`] are what is kept, [`Commit`]
//! is the only way to change either, [`Store`] is what a database must do, [`Engine`] carries
//! operations out. It knows nothing of service brokers: what an operation *means* is decided by the
//! crate above, in pure functions.

mod clock;
mod commit;
pub mod conformance;
pub mod copy;
mod document;
mod engine;
pub mod examine;
mod key;
mod key_file;
pub mod measure;
mod memory;
mod observed;
mod operation;
mod query;
mod seal;
mod settle;
mod store;

pub use clock::{Clock, ManualClock, StoreTime, SystemClock};
pub use commit::{
    BYTES_MAX, Commit, CommitError, CommitId, Due, EXPECTS_MAX, Expect, NewOperation, Next, Start,
    TooLarge, WRITES_MAX, Which, Write,
};
pub use document::{Document, Filed, TERMS_MAX, Term, Version};
pub use engine::{
    Ended, Engine, EngineSettings, Executor, Finished, Lost, Permit, QueueSettings, Run, Stopped,
    Unwritten, catch_panic,
};
pub use key::{ID_BYTES_MAX, InvalidKey, Key, Kind, Realm};
pub use key_file::KeyFileError;
pub use memory::MemoryStore;
pub use observed::ObservedStore;
pub use operation::{
    Fence, Operation, OperationId, OperationRow, Outcome, Polled, Queue, State, WorkerId,
};
pub use query::{
    Change, Changes, Cursor, Layout, List, LogChunk, OperationFilter, OperationList, Page,
    Position, QueueStats, Renewal, Stats, Subject, Survey, Sweep,
};
pub use seal::{KeyId, KeyRing, KeyRingError, Place, SealError, SealedWith};
pub use settle::settle;
pub use store::{LOG_BYTES_MAX, LOG_CHUNK_BYTES_MAX, LeaseError, Store, StoreError};
