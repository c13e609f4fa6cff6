//! Which operations this process runs, and under which lease: one table under one lock. Pure: no I/O, no clock.
//!
//! A run starts only if its claim was made under the lease that is held now, and if the operation does not run here
//! already. Every renewal compares the table with the operations that the store lists for this worker: a run that
//! is not listed is stopped, because another commit ended it; an operation that is listed and does not run was
//! claimed, and the response never arrived: it is run. A run whose own commit gave the claim back may go on for a while,
//! and the next run of its operation starts after it. The loops that act on this are in `loops.rs`.

#[cfg(test)]
mod tests;

use super::Permit;
use crate::operation::{Fence, Operation, OperationId, WorkerId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long this process remembers what ran here when it lost a lease.
const SURVIVED_WITHIN: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a recovered claim is remembered: far longer than a store takes for a claim (15 seconds) or a request for
/// its commit.
const RESPONSE_WITHIN: Duration = Duration::from_secs(120);

/// Takeovers from which an operation is suspected of ending its processes.
const SUSPECT_TAKEOVERS: u32 = 2;

/// Maximum lost leases that count as survived. An operation that stalls its process again and again, so that its lease is
/// lost and the process goes on, must be isolated before it is given up: its fourth and fifth takeover count.
const SURVIVED_MAX: u32 = 2;

/// Factor by which each further takeover extends the time for which a suspect runs without another suspect: an innocent
/// operation that was taken over together with a guilty one outlives it before both are given up.
const TIME_ALONE_FACTOR: u32 = 4;

/// A worker id and the token that is cancelled when its lease is lost.
#[derive(Clone)]
pub(super) struct Incarnation {
    pub(super) worker: WorkerId,
    pub(super) lost: CancellationToken,
}

impl Incarnation {
    pub(super) fn fresh() -> Self {
        Self {
            worker: WorkerId::fresh(),
            lost: CancellationToken::new(),
        }
    }
}

/// Control of one run.
#[derive(Clone)]
pub(super) struct RunHandle {
    pub(super) fence: Fence,
    pub(super) cancel: CancellationToken,
    pub(super) lost: CancellationToken,
    pub(super) finished: CancellationToken,
    pub(super) counters: Arc<RunCounters>,
    started: Instant,
    /// It is being put back without having run.
    put_back: bool,
    /// When the first renewal was sent that found it without its claim, though a commit of its own may be the reason.
    without_claim: Option<Instant>,
}

impl RunHandle {
    /// Takeovers of a suspect that runs and may end this process; else zero.
    fn suspicion(&self) -> u32 {
        match self.put_back || self.has_ended_claim() {
            true => 0,
            false => self.counters.suspicion.load(Ordering::SeqCst),
        }
    }

    fn has_ended_claim(&self) -> bool {
        self.counters.claim_ended.load(Ordering::SeqCst)
    }

    /// Whether this process holds the operation and runs it, or did until this run has ended.
    fn survives_lost_lease(&self) -> bool {
        let is_held = !self.has_ended_claim() || self.counters.claimed_again.load(Ordering::SeqCst);
        is_held && !self.put_back
    }
}

/// What a run counts and the table reads.
#[derive(Default)]
pub(super) struct RunCounters {
    /// Commits that are not answered yet: their answers decide about the run.
    pub(super) commits: AtomicUsize,
    /// Takeovers of a suspect since its last memo; zero if it is not suspected.
    pub(super) suspicion: AtomicU32,
    /// A commit of the run gave the claim back, or ended the operation.
    pub(super) claim_ended: AtomicBool,
    /// This process claimed the operation again before the run has ended.
    claimed_again: AtomicBool,
}

/// An operation that the store may hold for this worker and that does not run here.
enum PendingClaim {
    /// A commit that claims it has no answer yet.
    Committing,
    /// No caller waits for the answer to its commit any more, since a moment; it runs if a renewal lists it.
    WithoutCaller(Box<UnstartedOperation>, Instant),
    /// A renewal listed it, and it is being read.
    Listed(Option<Box<UnstartedOperation>>),
}

/// An operation that runs if a renewal lists it.
pub(super) struct UnstartedOperation {
    pub(super) operation: Operation,
    /// The slot of its queue that it takes, if its caller had one.
    pub(super) permit: Option<Permit>,
}

/// An operation that ran here while its lease was lost.
#[derive(Clone, Copy)]
struct SurvivedRun {
    /// Number of these losses.
    times: u32,
    last: Instant,
}

/// Whether an operation may start.
pub(super) enum StartDecision {
    /// It runs now.
    Started(RunHandle),
    /// It runs here already.
    Running(RunHandle),
    /// An earlier run of it has given its claim back and is about to end: this one starts after it.
    After(RunHandle),
    /// Nothing starts: the lease of the claim is lost, the engine shuts down, or this claim ran here already because a
    /// renewal listed it.
    Refused,
    /// Another operation runs that may end this process as well: it is put back, and claimed again after this time.
    PutBack(RunHandle, Duration),
}

/// How this process knows of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClaimOrigin {
    /// By the response to the claim, or to the commit that made it.
    Response,
    /// By a renewal: the response did not arrive, and may still.
    Renewal,
}

/// Steps that a renewal calls for.
#[derive(Default)]
pub(super) struct RenewalSteps {
    /// Operations to read; pass them to [`RunTable::was_read`].
    pub(super) read: Vec<OperationId>,
    /// Operations to run.
    pub(super) run: Vec<UnstartedOperation>,
}

/// Puts suspects first; among them the one with the most claims, because it was put back most often. Otherwise a long
/// innocent suspect could always start first, be joined by the guilty one when its time alone is over, and be given up
/// with it.
pub(super) fn sort_for_start(claimed: &mut [Operation]) {
    claimed.sort_by_key(|operation| {
        let row = &operation.row;
        let suspect = row.takeovers >= SUSPECT_TAKEOVERS;
        std::cmp::Reverse(suspect.then_some(row.fence))
    });
}

/// How long a suspect with so many takeovers runs without another suspect.
fn time_alone(lease: Duration, takeovers: u32) -> Duration {
    let further = takeovers.saturating_sub(SUSPECT_TAKEOVERS);
    lease.saturating_mul(TIME_ALONE_FACTOR.saturating_pow(further))
}

/// How long an operation waits that is put back, the `waiting`th of them. Most suspects are innocent and finish soon,
/// so the wait is short. But each put-back holds the operation for a moment: if the process ends then, its takeovers
/// grow, so put-backs must be rare.
fn put_back_wait(lease: Duration, waiting: usize) -> Duration {
    let waiting = u32::try_from(waiting).unwrap_or(u32::MAX);
    let wait = (lease / 4).saturating_add((lease / 100).saturating_mul(waiting));
    wait.min(lease)
}

/// Runs, claims and the lease of one process.
pub(super) struct RunTable {
    incarnation: Incarnation,
    lease: Duration,
    /// After more takeovers an operation is given up.
    takeovers_max: u32,
    runs: BTreeMap<OperationId, RunHandle>,
    claims: BTreeMap<OperationId, PendingClaim>,
    /// Claims under this lease that ran because a renewal listed them, and when: their own response may still
    /// arrive.
    recovered: BTreeMap<OperationId, (Fence, Instant)>,
    /// Operations that ran here while a lease was lost: this process goes on, so they did not end it.
    survived: BTreeMap<OperationId, SurvivedRun>,
    /// Nothing starts any more.
    closed: bool,
}

impl RunTable {
    pub(super) fn new(incarnation: Incarnation, lease: Duration, takeovers_max: u32) -> Self {
        Self {
            incarnation,
            lease,
            takeovers_max,
            runs: BTreeMap::new(),
            claims: BTreeMap::new(),
            recovered: BTreeMap::new(),
            survived: BTreeMap::new(),
            closed: false,
        }
    }

    /// Starts nothing any more, and stops all runs.
    pub(super) fn close(&mut self) {
        self.closed = true;
        for run in self.runs.values() {
            run.lost.cancel();
        }
    }

    pub(super) fn incarnation(&self) -> &Incarnation {
        &self.incarnation
    }

    /// The lease is lost: stops all runs, which another worker may claim.
    pub(super) fn lose_lease(&mut self, lost: &Incarnation, now: Instant) {
        self.survived
            .retain(|_, it| now.duration_since(it.last) < SURVIVED_WITHIN);
        let held = self
            .runs
            .iter()
            .filter(|(_, run)| run.survives_lost_lease());
        for (id, _) in held {
            let times = self.survived.get(id).map_or(0, |it| it.times);
            let times = times.saturating_add(1);
            self.survived.insert(*id, SurvivedRun { times, last: now });
        }
        lost.lost.cancel();
    }

    /// Continues under another lease; claims of the old one are void.
    pub(super) fn begin(&mut self, next: Incarnation) {
        self.incarnation = next;
        self.claims.clear();
        self.recovered.clear();
    }

    /// A commit is about to claim an operation under this worker. `None`: no lease is held.
    pub(super) fn expect(&mut self, id: OperationId) -> Option<WorkerId> {
        if self.closed || self.incarnation.lost.is_cancelled() {
            return None;
        }
        self.claims.insert(id, PendingClaim::Committing);
        Some(self.incarnation.worker)
    }

    /// The caller that expected a claim went away without starting it.
    pub(super) fn caller_left(
        &mut self,
        unstarted: UnstartedOperation,
        worker: WorkerId,
        now: Instant,
    ) {
        let id = unstarted.operation.row.id;
        if worker == self.incarnation.worker && !self.runs.contains_key(&id) {
            let claim = PendingClaim::WithoutCaller(Box::new(unstarted), now);
            self.claims.insert(id, claim);
        }
    }

    /// The commit certainly claimed nothing.
    pub(super) fn was_not_claimed(&mut self, id: OperationId, worker: WorkerId) {
        if worker == self.incarnation.worker {
            self.claims.remove(&id);
        }
    }

    /// Decides whether an operation claimed by this worker may start.
    pub(super) fn start(
        &mut self,
        operation: &Operation,
        (worker, origin): (WorkerId, ClaimOrigin),
        now: Instant,
    ) -> StartDecision {
        let row = &operation.row;
        let is_held = worker == self.incarnation.worker && !self.incarnation.lost.is_cancelled();
        if !is_held || self.closed {
            return StartDecision::Refused;
        }
        if let Some(run) = self.runs.get(&row.id) {
            if run.fence >= row.fence {
                return StartDecision::Running(run.clone());
            }
            run.counters.claimed_again.store(true, Ordering::SeqCst);
            return StartDecision::After(run.clone());
        }
        match origin {
            ClaimOrigin::Renewal => {
                self.recovered.insert(row.id, (row.fence, now));
            }
            ClaimOrigin::Response if self.has_recovered(row.id, row.fence) => {
                return StartDecision::Refused;
            }
            ClaimOrigin::Response => {}
        }
        self.claims.remove(&row.id);
        if let Some(survived) = self.survived.get_mut(&row.id) {
            // A memo has set the takeovers back.
            survived.times = survived.times.min(row.takeovers);
        }
        let suspicion = self.suspicion(row.id, row.takeovers);
        let is_accompanied = self.is_accompanied(suspicion, now);
        let run = RunHandle {
            fence: row.fence,
            cancel: CancellationToken::new(),
            lost: self.incarnation.lost.child_token(),
            finished: CancellationToken::new(),
            counters: Arc::new(RunCounters {
                suspicion: suspicion.into(),
                ..RunCounters::default()
            }),
            started: now,
            put_back: is_accompanied,
            without_claim: None,
        };
        if row.cancel {
            run.cancel.cancel();
        }
        self.runs.insert(row.id, run.clone());
        if is_accompanied {
            let waiting = self.runs.values().filter(|run| run.put_back).count();
            StartDecision::PutBack(run, put_back_wait(self.lease, waiting))
        } else {
            StartDecision::Started(run)
        }
    }

    /// The takeovers of an operation that may have been caused by it, if it is suspected; else zero. One that is given up
    /// calls nothing that could end this process.
    fn suspicion(&self, id: OperationId, takeovers: u32) -> u32 {
        if takeovers > self.takeovers_max {
            return 0;
        }
        let survived = self.survived.get(&id).map_or(0, |it| it.times);
        let suspicious = takeovers.saturating_sub(survived.min(SURVIVED_MAX));
        if suspicious >= SUSPECT_TAKEOVERS {
            suspicious
        } else {
            0
        }
    }

    /// Whether another suspect runs here that may end this process while a suspect with so many takeovers runs.
    fn is_accompanied(&self, suspicion: u32, now: Instant) -> bool {
        suspicion > 0
            && self.runs.values().any(|run| {
                let running = run.suspicion();
                let alone = time_alone(self.lease, suspicion.max(running));
                running > 0 && now.duration_since(run.started) < alone
            })
    }

    pub(super) fn run(&self, id: OperationId) -> Option<&RunHandle> {
        self.runs.get(&id)
    }

    pub(super) fn len(&self) -> usize {
        self.runs.len()
    }

    /// Removes a run, unless the next run of its operation has replaced it.
    pub(super) fn ended(&mut self, id: OperationId, fence: Fence) {
        if self.runs.get(&id).is_some_and(|run| run.fence == fence) {
            self.runs.remove(&id);
        }
    }

    /// Compares with the operations that the store listed for this worker in a renewal sent at a moment. Stops
    /// runs that are not listed.
    pub(super) fn renewed(
        &mut self,
        worker: WorkerId,
        held: &[OperationId],
        sent: Instant,
    ) -> RenewalSteps {
        let mut steps = RenewalSteps::default();
        if worker != self.incarnation.worker {
            return steps;
        }
        let held: BTreeSet<OperationId> = held.iter().copied().collect();
        self.recovered
            .retain(|_, (_, at)| sent.saturating_duration_since(*at) < RESPONSE_WITHIN);
        for (id, run) in &mut self.runs {
            let has_ended_claim = run.has_ended_claim();
            // What is listed for a run that has ended its claim is a later claim.
            let is_held = run.started >= sent || held.contains(id);
            if is_held && !has_ended_claim {
                continue;
            }
            let since = *run.without_claim.get_or_insert(sent);
            let is_first = since == sent;
            // The answer to a commit under way decides about its run, because the commit may have ended it. But an
            // answer that was lost is not waited for.
            let has_commit = run.counters.commits.load(Ordering::SeqCst) > 0;
            let may_go_on = match has_ended_claim {
                true => sent.saturating_duration_since(since) < self.lease / 3,
                false => has_commit && is_first,
            };
            if !may_go_on {
                run.cancel.cancel();
                run.lost.cancel();
            }
        }
        // The store may have listed the operations before the commit of such a claim.
        let may_be_newer = |claim: &PendingClaim| match claim {
            PendingClaim::Committing => true,
            PendingClaim::WithoutCaller(_, at) => *at >= sent,
            PendingClaim::Listed(_) => false,
        };
        self.claims
            .retain(|id, claim| held.contains(id) || may_be_newer(claim));
        for id in held.iter().filter(|id| !self.runs.contains_key(id)) {
            match self.claims.remove(id) {
                Some(PendingClaim::Committing) => {
                    self.claims.insert(*id, PendingClaim::Committing);
                }
                None | Some(PendingClaim::Listed(None)) => {
                    self.claims.insert(*id, PendingClaim::Listed(None));
                    steps.read.push(*id);
                }
                Some(
                    PendingClaim::WithoutCaller(unstarted, _)
                    | PendingClaim::Listed(Some(unstarted)),
                ) => steps.run.push(*unstarted),
            }
        }
        steps
    }

    /// Whether a claim ran already because a renewal listed it.
    fn has_recovered(&self, id: OperationId, fence: Fence) -> bool {
        let ran = self.recovered.get(&id);
        ran.is_some_and(|(ran, _)| *ran >= fence)
    }

    /// An operation that a renewal listed was read. It runs if the next renewal lists it too: until then the
    /// response to its claim may still arrive.
    pub(super) fn was_read(&mut self, operation: Operation) {
        let claim = self.claims.get_mut(&operation.row.id);
        if let Some(claim @ PendingClaim::Listed(None)) = claim {
            let unstarted = UnstartedOperation {
                operation,
                permit: None,
            };
            *claim = PendingClaim::Listed(Some(Box::new(unstarted)));
        }
    }
}
