//! Records over the journal, for the broker and a later platform. Knows no Open Service Broker types.
//!
//! Reading order: [`Documents`] seals and loads what is stored, [`Decision`] is the result of a rule,
//! [`DecisionCommit`] is the only interpreter that turns it into a commit, [`InflightCache`] hands a
//! committed operation to the engine of the same process, `wait.rs` and `run_end.rs` are the two sides
//! of its end. [`RecordOpener`] opens records for checks of a store. [`PeriodicTask`] and [`Collections`] serve extensions; [`AuditRecord`] is the audit trail.

mod audit;
mod audit_log;
mod background;
mod collections;
mod commit;
mod cron;
mod decision;
mod documents;
mod inflight;
mod key_check;
mod periodic;
mod realms;
mod record_opener;
mod retention;
mod run_end;
mod store_clock;
mod wait;
mod wall_timestamp;

pub use audit::{AUDIT, AUDIT_CLOCK_MARGIN, Actor, AuditRecord, AuditResult, name_of_oldest_kept};
pub use audit_log::{
    AUDIT_TARGET, AuditLine, AuditOutcome, audit_enabled, log_audit, outcome_word,
};
pub use background::{run_blocking, run_in_background};
pub use collections::{
    BATCH_BYTES_MAX, BATCH_WRITES_MAX, Batch, COLLECTIONS_REALM, CollectionItem, Collections,
    CollectionsError, Revision,
};
pub use commit::{
    ClaimedOperation, CommitDecisionError, DecisionCommit, OperationContent, StartPlace,
    WrittenCommit, commit_decision,
};
pub use cron::{Schedule, ScheduleError};
pub use decision::{Decision, Effect, End};
pub use documents::{Documents, LoadedDocument, RecordError, Resource};
pub use inflight::{
    CommittedEnd, InflightCache, OperationEnd, ResultReceiver, ResultSender, StartedOperation,
};
pub use key_check::{VerifyKeysError, is_write_probe, keys_match, verify_keys};
pub use periodic::{
    NextRun, PeriodicTask, PeriodicTasks, PlannedOperation, SINGLETON, Scheduler, TASK_VERB,
    TaskContext, TaskDocument, TaskError, TaskResult, TaskStatus,
};
pub use realms::{realms, realms_with_same_keys};
pub use record_opener::{RecordOpener, read_contents, same_terms, unknown_form};
pub use retention::{FeedRetention, Retention};
pub use run_end::{EndContext, EndResult, EndedResource, RunEnd};
pub use store_clock::StoreClock;
pub use wait::WaitResult;
pub use wall_timestamp::wall_timestamp;
