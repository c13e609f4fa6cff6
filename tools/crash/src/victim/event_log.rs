//! Log of a victim: of a single process, or shared by replicas.
//!
//! Hooks (`service.rs`) log steps, the store (`instrumented_store.rs`) commits and claims.

use super::effect_log::{EffectEntry, EffectLog};
use super::replica_log::{ReplicaBoot, ReplicaEvent, now_us};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use sutler_broker::Cx;
use sutler_journal::{Commit, CommitId, Expect, Fence, Next, Operation, OperationId, Start, Write};

/// The victim's event log.
#[derive(Debug)]
pub(super) enum EventLog {
    /// Of a platform: its broker is the recording broker, and nothing is logged here.
    Nothing,
    /// Of the only process on its file.
    Alone(EffectLog),
    /// Of one of several replicas.
    Shared(SharedEventLog),
}

/// One replica's writer of the shared log.
#[derive(Debug)]
pub(super) struct SharedEventLog {
    file: File,
    by: ReplicaBoot,
    /// Time of the first attempt of commits without a known outcome.
    tried: Mutex<HashMap<CommitId, u64>>,
}

impl SharedEventLog {
    /// Appends to a log, or creates it.
    pub(super) fn open(path: &Path, by: ReplicaBoot) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        let tried = Mutex::default();
        Ok(Self { file, by, tried })
    }

    fn tried(&self) -> MutexGuard<'_, HashMap<CommitId, u64>> {
        self.tried.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, event: &ReplicaEvent) -> io::Result<()> {
        let mut line = serde_json::to_string(event)?;
        line.push('\n');
        // One call, so that a kill leaves all of it or nothing, and lines of others stay intact.
        (&self.file).write_all(line.as_bytes())
    }

    fn must_note(&self, event: &ReplicaEvent) {
        self.note(event).expect("the ledger takes a line");
    }

    fn claimed(&self, operation: OperationId, fence: Fence) {
        self.must_note(&ReplicaEvent::Claimed {
            operation: operation.to_string(),
            fence: fence.0,
            at: now_us(),
            by: self.by,
        });
    }

    fn committed(&self, commit: &Commit) {
        let began = self.tried().remove(&commit.id()).unwrap_or_default();
        let by = self.by;
        for write in commit.writes() {
            if let Write::Start(new) = write
                && matches!(new.start, Start::Claimed(_))
            {
                self.claimed(new.id, Fence(1));
            }
        }
        let fenced = commit.expects().iter().find_map(|expect| match expect {
            Expect::Fence(operation, fence) => Some((*operation, fence.0)),
            _ => None,
        });
        let Some((id, fence)) = fenced else { return };
        let operation = id.to_string();
        self.must_note(&ReplicaEvent::Wrote {
            operation: operation.clone(),
            fence,
            began,
            by,
        });
        let next = commit.writes().iter().find_map(|write| match write {
            Write::Advance {
                operation, next, ..
            } if *operation == id => Some(next),
            _ => None,
        });
        match next {
            Some(Next::Done(_)) => self.must_note(&ReplicaEvent::Ended {
                operation,
                commit: commit.id().0.to_string(),
                fence,
                by,
            }),
            Some(Next::PutBack(_) | Next::Ready(_) | Next::Retry(_) | Next::Waiting) => {
                self.must_note(&ReplicaEvent::Released {
                    operation,
                    fence,
                    by,
                });
            }
            Some(Next::Same) | None => {}
        }
    }
}

impl EventLog {
    /// A step has its external effect: this log line is the effect.
    pub(super) fn ran(&self, cx: &Cx, verb: &str, step: u32) -> io::Result<()> {
        let operation = cx.operation_id().to_string();
        let (verb, attempt) = (verb.to_owned(), cx.attempt());
        match self {
            Self::Nothing => Ok(()),
            Self::Alone(ledger) => ledger.effect(&EffectEntry::Effect {
                operation,
                verb,
                step,
                attempt,
                boot: ledger.boot(),
            }),
            Self::Shared(shared) => shared.note(&ReplicaEvent::Ran {
                operation,
                lane: lane_of(cx),
                verb,
                step,
                attempt,
                fence: cx.fence(),
                by: shared.by,
            }),
        }
    }

    /// The memo of a step was stored.
    pub(super) fn kept(&self, cx: &Cx, step: u32) -> io::Result<()> {
        match self {
            // The store logs it in this case.
            Self::Nothing | Self::Alone(_) => Ok(()),
            Self::Shared(shared) => shared.note(&ReplicaEvent::Kept {
                operation: cx.operation_id().to_string(),
                step,
                fence: cx.fence(),
                by: shared.by,
            }),
        }
    }

    /// A commit is attempted.
    pub(super) fn tries(&self, commit: &Commit) {
        if let Self::Shared(shared) = self {
            shared.tried().entry(commit.id()).or_insert_with(now_us);
        }
    }

    /// A commit is durable.
    pub(super) fn committed(&self, commit: &Commit) {
        match self {
            Self::Nothing => {}
            Self::Alone(ledger) => alone(ledger, commit),
            Self::Shared(shared) => shared.committed(commit),
        }
    }

    /// A commit is known not to be applied.
    pub(super) fn refused(&self, commit: &Commit) {
        if let Self::Shared(shared) = self {
            shared.tried().remove(&commit.id());
        }
    }

    /// The store returned these from a claim.
    pub(super) fn claimed(&self, operations: &[Operation]) {
        if let Self::Shared(shared) = self {
            for operation in operations {
                shared.claimed(operation.row.id, operation.row.fence);
            }
        }
    }
}

fn lane_of(cx: &Cx) -> String {
    let instance = cx.instance_id().as_str();
    match cx.binding_id() {
        Some(binding) => format!("{instance}/{}", binding.as_str()),
        None => instance.to_owned(),
    }
}

fn alone(ledger: &EffectLog, commit: &Commit) {
    let boot = ledger.boot();
    for write in commit.writes() {
        let Write::Advance {
            operation,
            next,
            progress,
            ..
        } = write
        else {
            continue;
        };
        let operation = operation.to_string();
        let mut entries = Vec::new();
        if progress.is_some() {
            entries.push(EffectEntry::Memo {
                operation: operation.clone(),
                boot,
            });
        }
        if matches!(next, Next::Done(_)) {
            entries.push(EffectEntry::Done { operation, boot });
        }
        for entry in entries {
            ledger.note(&entry).expect("the ledger takes a line");
        }
    }
}
