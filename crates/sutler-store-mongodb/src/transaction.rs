//! One transaction: sends steps, inspects their results, commits; and aborts failed transactions.
//!
//! A transaction whose connection broke stays open on the server, and blocks the documents it wrote, until
//! the server aborts it (after a minute) or its session is ended: this is done here in the background,
//! with retries. Not here: the steps (`commit_steps.rs`), repeated attempts (`commit.rs`).

use crate::commands::{self, CommandClient};
use crate::commit_steps::StepResult;
use crate::error::MongoError;
use mongodb::ClientSession;
use mongodb::bson::{Document as Bsons, doc};
use mongodb::options::{Acknowledgment, ReadConcern, WriteConcern};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// How often a commit is sent when its response does not arrive; the driver sends each twice.
const SENDS: u32 = 2;
/// Attempts to end a session: the server itself aborts its transaction after a minute.
const ENDINGS: u32 = 60;
const BETWEEN_ENDINGS: Duration = Duration::from_secs(1);

/// Bits of a gate.
const SENT: u8 = 1;
const GIVEN_UP: u8 = 2;

/// Whether a commit was sent, and whether it was given up, which is final.
#[derive(Clone, Default)]
pub(crate) struct SendGate(Arc<AtomicU8>);

impl SendGate {
    /// Gives up: no further attempt is sent. Returns whether it is certain that none was.
    pub(crate) fn give_up(&self) -> bool {
        self.0.fetch_or(GIVEN_UP, Ordering::SeqCst) & SENT == 0
    }

    /// Whether it was given up.
    pub(crate) fn is_given_up(&self) -> bool {
        self.0.load(Ordering::SeqCst) & GIVEN_UP != 0
    }

    /// Marks an attempt as sent, unless the commit was given up.
    fn pass(&self) -> bool {
        let sent = |it: u8| (it & GIVEN_UP == 0).then_some(it | SENT);
        let passed = self
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, sent);
        passed.is_ok()
    }

    /// Marks an attempt as not sent after it is known to have had no effect.
    fn return_through(&self) {
        self.0.fetch_and(!SENT, Ordering::SeqCst);
    }
}

/// Result of a transaction.
#[derive(Debug)]
pub(crate) enum TransactionResult<T> {
    /// It is durable on a majority.
    Committed,
    /// The check of the results declined the commit.
    Declined(T),
    /// It was not committed, and will not be.
    Failed(MongoError),
    /// It may or may not have been committed.
    Unknown(MongoError),
}

/// Decision after the results of the steps.
pub(crate) enum CommitInspection<T> {
    /// Commit, after one more step.
    Commit(Option<Bsons>),
    /// Abort.
    Decline(T),
}

impl CommandClient {
    /// Runs a transaction: the steps in one round trip, its commit in another.
    pub(crate) async fn transact<T>(
        &self,
        steps: Vec<Bsons>,
        gate: &SendGate,
        inspect: impl FnOnce(&[StepResult]) -> CommitInspection<T>,
    ) -> TransactionResult<T> {
        let mut session = match self.begin().await {
            Ok(session) => session,
            Err(trouble) => return TransactionResult::Failed(trouble),
        };
        let found = match self.write_all(steps, &mut session).await {
            Ok(found) => found,
            Err(trouble) => return self.fail(session, trouble).await,
        };
        match inspect(&found) {
            CommitInspection::Decline(why) => return TransactionResult::Declined(why),
            CommitInspection::Commit(None) => {}
            CommitInspection::Commit(Some(more)) => {
                if let Err(trouble) = self.write_all(vec![more], &mut session).await {
                    return self.fail(session, trouble).await;
                }
            }
        }
        if !gate.pass() {
            return TransactionResult::Failed(MongoError::Lost("it took too long".to_owned()));
        }
        self.finish(session, gate).await
    }

    async fn begin(&self) -> Result<ClientSession, MongoError> {
        let concern = WriteConcern::builder()
            .w(Acknowledgment::Majority)
            .journal(true)
            .build();
        let begun = async {
            // Causal consistency would make each transaction wait for the latest read of this client.
            let session = self.client.start_session().causal_consistency(false);
            let mut session = session.await?;
            session
                .start_transaction()
                .read_concern(ReadConcern::snapshot())
                .write_concern(concern)
                .max_commit_time(self.settings.command_timeout)
                .await?;
            Ok::<_, mongodb::error::Error>(session)
        };
        self.bounded(begun).await
    }

    /// Fails before a commit was sent. A transaction that may be open on the server is aborted.
    async fn fail<T>(&self, session: ClientSession, trouble: MongoError) -> TransactionResult<T> {
        if matches!(trouble, MongoError::Lost(_) | MongoError::Odd(_)) {
            self.end(session).await;
        }
        TransactionResult::Failed(trouble)
    }

    async fn finish<T>(&self, mut session: ClientSession, gate: &SendGate) -> TransactionResult<T> {
        let mut sends = 0;
        loop {
            sends += 1;
            let answer = session.commit_transaction().into_future();
            match self.bounded(answer).await {
                Ok(()) => return TransactionResult::Committed,
                // Only for these does the server guarantee that it was not committed, and will not be.
                Err(
                    refused @ MongoError::Refused {
                        transient: true, ..
                    },
                ) => {
                    gate.return_through();
                    return TransactionResult::Failed(refused);
                }
                Err(_) if sends < SENDS => {}
                Err(trouble) => {
                    self.end(session).await;
                    return TransactionResult::Unknown(trouble);
                }
            }
        }
    }

    /// Ends a session and its transaction: now, or else in the background.
    async fn end(&self, session: ClientSession) {
        let command = doc! { "killSessions": [session.id().clone()] };
        let soon = Duration::from_millis(500);
        let admin = self.client.database("admin");
        let ended = admin.run_command(command.clone()).into_future();
        if commands::bounded(soon, ended).await.is_ok() {
            return;
        }
        tokio::spawn(async move {
            for _ in 0..ENDINGS {
                tokio::time::sleep(BETWEEN_ENDINGS).await;
                let ended = admin.run_command(command.clone()).into_future();
                if commands::bounded(BETWEEN_ENDINGS, ended).await.is_ok() {
                    return;
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::SendGate;

    #[test]
    fn a_given_up_commit_is_not_sent() {
        let gate = SendGate::default();
        assert!(gate.give_up());
        assert!(!gate.pass());
        assert!(gate.give_up(), "still");
    }

    #[test]
    fn a_sent_commit_cannot_be_given_up() {
        let gate = SendGate::default();
        assert!(gate.pass());
        assert!(!gate.give_up());
        gate.return_through();
        assert!(gate.give_up(), "it came to nothing");
    }

    #[test]
    fn a_commit_given_up_while_sending_is_not_sent_again() {
        let gate = SendGate::default();
        assert!(gate.pass());
        assert!(!gate.give_up());
        gate.return_through();
        assert!(gate.is_given_up(), "though it came to nothing");
        assert!(!gate.pass());
    }
}
