//! Work of whoever builds on this broker that is done again and again, once across replicas.
//!
//! A chore is an operation in a singleton lane, like scheduled clean-up (`cleanup.rs`): its document names
//! the one that waits or runs, and its end plans the next. A worker that dies is taken over. What it reads
//! and writes is in `ledger.rs`. Whoever wants it done now asks for it and is given a number; it was done
//! when that number was served.

use crate::aside::live_aside;
use crate::broker::{Broker, BuildError, Running};
use crate::canary::prove_keys;
use crate::cleanup;
use crate::error::{Error, Kind, Result};
use crate::handover::Handover;
use crate::ledger::{Batch, LEDGER_REALM, Ledger, LedgerFault};
use crate::lifecycle::{AuthorState, Decision};
use crate::records::{Detail, Kept, Loaded, Records, Request, SINGLETON, asked};
use crate::refusal::Refusal;
use crate::stock::{Stock, queue_of};
use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use sutler_journal::{
    Commit, CommitAborted, CommitError, CommitRejected, Due, Key, KeyRing, Lost, NewOperation,
    Next, OperationId, Outcome, Realm, Run, RunResult, Start, Store, Term, Write,
};
use tokio_util::sync::CancellationToken;

/// The word of these operations.
pub(crate) const VERB: &str = "chore";
/// How often it is tried to ask for one before the store is taken to be too busy.
const TRIES: u32 = 8;
/// How long after a turn that failed the next one is, where that is sooner than its usual time.
const AGAIN: Duration = Duration::from_secs(60);
/// Longest text of progress or failure that is kept, in characters.
const TEXT_CHARS_MAX: usize = 1000;

/// Something that is done again and again, by one replica at a time.
#[async_trait]
pub trait Chore: Send + Sync + 'static {
    /// Its name. Chores of one name are one, whatever replica does them.
    fn name(&self) -> &str;

    /// How long after a turn the next one is.
    fn every(&self) -> Duration;

    /// Does it once. May be called again after a crash, and goes on from what was written.
    ///
    /// # Errors
    /// It failed this time; it is told, and there is a next time.
    async fn turn(&self, cx: &ChoreCx) -> Result<()>;
}

/// What a chore is given.
pub struct ChoreCx {
    run: Arc<Run>,
    ledger: Ledger,
    /// How long a store is waited for that takes no write.
    patience: Duration,
}

impl ChoreCx {
    /// The records.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Fires when nothing can be written any more, because the claim was lost or the broker stops.
    #[must_use]
    pub fn lost(&self) -> &CancellationToken {
        self.run.lost()
    }

    /// Begins to write.
    pub fn batch(&self) -> Batch<'_> {
        Batch::new(&self.ledger)
    }

    /// Writes all of a batch, or nothing. `false`: somebody wrote first; read again and decide again.
    ///
    /// # Errors
    /// The claim was lost, the store takes no write, or no store would take this.
    pub async fn write(&self, batch: Batch<'_>) -> Result<bool> {
        if let Some(id) = batch.unnameable() {
            return Err(Error::failed(format!(
                "a record cannot be named {id:?}; rename it"
            )));
        }
        match self.commit(batch.commit).await? {
            Ok(()) => Ok(true),
            Err(CommitRejected::Stale(_)) => Ok(false),
            Err(CommitRejected::TooLarge(why)) => {
                Err(Error::failed("a record is too large to be kept; make it smaller").because(why))
            }
        }
    }

    /// Says how far it is, to whoever asks.
    ///
    /// # Errors
    /// The claim was lost, or the store takes no write.
    pub async fn progress(&self, text: &str) -> Result<()> {
        let detail = Detail {
            description: Some(text.chars().take(TEXT_CHARS_MAX).collect()),
            ..Detail::default()
        };
        let sealed = self.ledger.records.seal_detail(self.run.id(), &detail);
        let noted = Commit::new().advance(self.run.id(), Next::Same, Some(sealed), None);
        // Without other expectations only the end of the turn itself can come first.
        self.commit(noted).await?.map_err(|_| Error::lost())
    }

    async fn commit(&self, commit: Commit) -> Result<std::result::Result<(), CommitRejected>> {
        let committed = self.run.commit_within(commit, self.patience).await;
        committed.map_err(|stopped| match stopped {
            CommitAborted::Lost => Error::lost(),
            CommitAborted::Refused(why) => Error::failed(format!(
                "the store takes no write: {why}; see to it, the next turn does what this one could not"
            )),
        })
    }
}

/// How a chore stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChoreStatus {
    /// Since when it runs, if it does.
    #[serde(default)]
    pub running_since: Option<Timestamp>,
    /// How far it is.
    #[serde(default)]
    pub progress: Option<String>,
    /// When it last ended.
    #[serde(default)]
    pub ended: Option<Timestamp>,
    /// Why it failed, if it failed the last time.
    #[serde(default)]
    pub failure: Option<String>,
    /// How often somebody asked for it.
    #[serde(default)]
    pub asked: u64,
    /// The last of those that was served.
    #[serde(default)]
    pub served: u64,
}

/// The document of a chore's lane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct ChoreTurn {
    operation: Option<OperationId>,
    every: Duration,
    #[serde(flatten)]
    status: ChoreStatus,
    /// What had been asked for when the present turn began.
    #[serde(default)]
    serving: u64,
}

impl Kept for ChoreTurn {
    fn terms(&self, _key: &Key) -> Vec<Term> {
        Vec::new()
    }

    fn pins(&self) -> Vec<OperationId> {
        self.operation.into_iter().collect()
    }

    fn saved(self, _: OperationId, _: AuthorState) -> std::result::Result<Decision<Self>, Refusal> {
        Err(Refusal::Unsupported("a chore has no state".to_owned()))
    }
}

impl Broker {
    /// Does something again and again, once across replicas; its records are in a [`Ledger`].
    #[must_use]
    pub fn chore(mut self, chore: Arc<dyn Chore>) -> Self {
        self.chores.push(chore);
        self
    }
}

impl Running {
    /// The records of chores, where there are any.
    #[must_use]
    pub fn ledger(&self) -> Option<Ledger> {
        self.0.chores.as_ref().map(|it| it.ledger.clone())
    }

    /// How a chore stands; as if it had never run, where it is not known.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn chore_status(&self, name: &str) -> std::result::Result<ChoreStatus, LedgerFault> {
        match &self.0.chores {
            Some(chores) => chores.status(name).await,
            None => Ok(ChoreStatus::default()),
        }
    }

    /// Asks for a turn of a chore now; says the number that [`ChoreStatus::served`] must reach.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn ask_for(&self, name: &str) -> std::result::Result<u64, LedgerFault> {
        match &self.0.chores {
            Some(chores) => chores.ask(name).await,
            None => Ok(0),
        }
    }
}

/// The chores of a broker.
pub(crate) struct Chores {
    pub ledger: Ledger,
    /// What their realm has besides them: scheduled clean-up.
    pub stock: Arc<Stock>,
    all: Vec<Arc<dyn Chore>>,
    /// Why turns failed here that are not written down as failed yet, by name: the store may take no write.
    failing: Mutex<BTreeMap<String, String>>,
}

/// Opens the realm of chores, and plans them.
pub(crate) async fn open(
    all: Vec<Arc<dyn Chore>>,
    store: &Arc<dyn Store>,
    keys: &Arc<KeyRing>,
    platforms: &[Arc<Stock>],
) -> std::result::Result<Option<Arc<Chores>>, BuildError> {
    let (false, Some(first)) = (all.is_empty(), platforms.first()) else {
        return Ok(None);
    };
    let records = Arc::new(Records {
        store: store.clone(),
        keys: keys.clone(),
        realm: Realm::new(LEDGER_REALM)?,
    });
    prove_keys(&records).await?;
    let stock = Arc::new(Stock {
        queue: queue_of(&records.realm),
        records: records.clone(),
        plans: first.plans.clone(),
        settings: first.settings.clone(),
        handover: Handover::default(),
    });
    let ledger = Ledger { records };
    let chores = Chores {
        ledger,
        stock,
        all,
        failing: Mutex::default(),
    };
    let unwritten = |error: CommitError| BuildError::Store(error.into());
    cleanup::plan_all(&chores.stock).await.map_err(unwritten)?;
    chores.plan_all().await.map_err(unwritten)?;
    Ok(Some(Arc::new(chores)))
}

impl Chores {
    fn key(&self, name: &str) -> Key {
        self.ledger.records.key(SINGLETON, &format!("chore-{name}"))
    }

    /// Plans the first turn of every chore that has none, or another interval than before.
    pub(crate) async fn plan_all(&self) -> std::result::Result<(), CommitError> {
        for chore in &self.all {
            let key = self.key(chore.name());
            let was = self.ledger.records.load::<ChoreTurn>(&key).await;
            let was = was.map_err(cleanup::unreadable)?;
            // One that runs may not be planned anew: there would be two. Its end takes the new interval.
            let runs = was.state.status.running_since.is_some();
            let same = was.state.every == chore.every();
            if was.state.operation.is_some() && (same || runs) {
                continue;
            }
            let commit = self.next_turn(
                Commit::new(),
                &key,
                &was,
                was.state.clone(),
                chore,
                Due::Now,
            );
            match sutler_journal::commit_until_known(self.ledger.records.store.as_ref(), &commit)
                .await
            {
                // Another replica planned it first.
                Ok(()) | Err(CommitError::Stale(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn next_turn(
        &self,
        commit: Commit,
        key: &Key,
        was: &Loaded<ChoreTurn>,
        state: ChoreTurn,
        chore: &Arc<dyn Chore>,
        due: Due,
    ) -> Commit {
        let records = &self.ledger.records;
        let id = OperationId::fresh();
        let turn = ChoreTurn {
            operation: Some(id),
            every: chore.every(),
            ..state
        };
        let request = Request {
            asked: asked(&VERB),
            origin: Default::default(),
            identity: None,
            request_identity: None,
        };
        let new = NewOperation {
            id,
            lane: key.clone(),
            verb: VERB,
            queue: queue_of(&records.realm),
            start: Start::Ready(due),
            detail: records.seal_detail(id, &Detail::default()),
            request: records.seal_request(id, &request),
        };
        records.put(commit, key, was, &turn).start(new)
    }

    /// How a chore stands.
    pub(crate) async fn status(&self, name: &str) -> std::result::Result<ChoreStatus, LedgerFault> {
        let records = &self.ledger.records;
        let turn = records.load::<ChoreTurn>(&self.key(name)).await?.state;
        let mut status = turn.status;
        if let (Some(_), Some(id)) = (status.running_since, turn.operation)
            && let Some(operation) = records.store.operation(id).await?
        {
            let detail = records.open_detail(id, &operation.row.detail)?;
            status.progress = detail.description;
        }
        let here = self.failing().get(name).cloned();
        status.failure = here.or(status.failure);
        Ok(status)
    }

    /// Asks for a turn now; says the number to wait for.
    pub(crate) async fn ask(&self, name: &str) -> std::result::Result<u64, LedgerFault> {
        let key = self.key(name);
        let records = &self.ledger.records;
        for _ in 0..TRIES {
            let was = records.load::<ChoreTurn>(&key).await?;
            let mut turn = was.state.clone();
            turn.status.asked += 1;
            let number = turn.status.asked;
            let mut commit = records.put(Commit::new(), &key, &was, &turn);
            if let Some(id) = turn.operation {
                commit = commit.write(Write::Wake(id));
            }
            match sutler_journal::commit_until_known(records.store.as_ref(), &commit).await {
                Ok(()) => return Ok(number),
                Err(CommitError::Stale(_)) => {}
                Err(CommitError::NotWritten(error) | CommitError::Unknown(error)) => {
                    return Err(error.into());
                }
            }
        }
        Err(sutler_journal::StoreError::new("too many ask at once; ask again").into())
    }

    /// Runs one turn and plans the next.
    pub(crate) async fn run(&self, run: Arc<Run>) -> std::result::Result<RunResult, Lost> {
        let key = run.operation().row.lane.clone();
        let Some(chore) = self.named(&key) else {
            return self.end_unknown(&run).await;
        };
        let name = chore.name();
        if !self.begin(&run, &key).await? {
            return self.end_unknown(&run).await;
        }
        let cx = ChoreCx {
            run: run.clone(),
            ledger: self.ledger.clone(),
            // It must be told before the claim is lost, too.
            patience: self.stock.settings.lease / 2,
        };
        let own = chore.clone();
        // It may be at it for long, and requests are not to notice.
        let turned = live_aside(async move { sutler_journal::catch_panic(own.turn(&cx)).await });
        let turned = match turned.await {
            Ok(Ok(turned)) => turned,
            Ok(Err(())) => Err(Error::failed(
                "the chore panicked; the message is on standard error",
            )),
            // It was cut short: the process ends.
            Err(_) => return Err(Lost),
        };
        let failure = match turned {
            Ok(()) => None,
            Err(error) if error.kind == Kind::Lost => return Err(Lost),
            Err(error) => {
                tracing::error!(chore = %name, ?error, "a chore failed; it is done again at its next turn");
                let failure: String = error.message.chars().take(TEXT_CHARS_MAX).collect();
                self.failing().insert(name.to_owned(), failure.clone());
                Some(failure)
            }
        };
        let ended = self.end(&run, &key, chore, failure).await;
        self.failing().remove(name);
        ended
    }

    /// Ends a turn that was taken over too often.
    pub(crate) async fn give_up(&self, run: Arc<Run>) -> std::result::Result<(), Lost> {
        let key = run.operation().row.lane.clone();
        let failure = "it was interrupted too often; see why workers die".to_owned();
        match self.named(&key) {
            Some(chore) => self.end(&run, &key, chore, Some(failure)).await,
            None => self.end_unknown(&run).await,
        }?;
        Ok(())
    }

    fn failing(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn named(&self, key: &Key) -> Option<&Arc<dyn Chore>> {
        let name = key.id(0).trim_start_matches("chore-");
        self.all.iter().find(|it| it.name() == name)
    }

    /// Notes that the turn has begun. `false`: another turn is the one that counts.
    async fn begin(&self, run: &Run, key: &Key) -> std::result::Result<bool, Lost> {
        let records = &self.ledger.records;
        loop {
            let was = records.load_for_run::<ChoreTurn>(run, key).await?;
            if was.state.operation != Some(run.id()) {
                return Ok(false);
            }
            let mut turn = was.state.clone();
            turn.serving = turn.status.asked;
            turn.status.running_since = Some(Timestamp::now());
            let commit = records.put(Commit::new(), key, &was, &turn);
            if run.commit(commit).await?.is_ok() {
                return Ok(true);
            }
        }
    }

    async fn end(
        &self,
        run: &Run,
        key: &Key,
        chore: &Arc<dyn Chore>,
        failure: Option<String>,
    ) -> std::result::Result<RunResult, Lost> {
        let records = &self.ledger.records;
        let outcome = match failure {
            None => Outcome::Succeeded,
            Some(_) => Outcome::Failed,
        };
        loop {
            let was = records.load_for_run::<ChoreTurn>(run, key).await?;
            let commit = Commit::new().advance(run.id(), Next::Done(outcome), None, None);
            let mut turn = was.state.clone();
            turn.status = ChoreStatus {
                running_since: None,
                progress: None,
                ended: Some(Timestamp::now()),
                failure: failure.clone(),
                asked: was.state.status.asked,
                served: was.state.serving,
            };
            let due = match turn.status.asked > turn.status.served {
                true => Due::Now,
                false if failure.is_some() => Due::In(chore.every().min(AGAIN)),
                false => Due::In(chore.every()),
            };
            let commit = self.next_turn(commit, key, &was, turn, chore, due);
            if run.commit(commit).await?.is_ok() {
                return Ok(RunResult::Finished);
            }
        }
    }

    /// No longer configured here, or replaced by another turn.
    async fn end_unknown(&self, run: &Run) -> std::result::Result<RunResult, Lost> {
        let commit = Commit::new()
            .advance(run.id(), Next::Done(Outcome::Cancelled), None, None)
            .write(Write::Unpin(run.id()));
        run.commit(commit).await?.map_err(|_| Lost)?;
        Ok(RunResult::Finished)
    }
}
