//! Tests of the table: when suspects start, and what a renewal does to claims.

use super::{
    ClaimOrigin, Incarnation, RunHandle, RunTable, SUSPECT_TAKEOVERS, StartDecision,
    UnstartedOperation, put_back_wait, sort_for_start,
};
use crate::commit::{NewOperation, Start};
use crate::key::{Key, Kind, Realm};
use crate::operation::{Fence, Operation, OperationId, Queue};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

const LEASE: Duration = Duration::from_secs(30);
const TAKEOVERS_MAX: u32 = 5;

fn claimed(name: &str, fence: u64, takeovers: u32) -> Operation {
    let realm = Realm::new("engine").unwrap();
    let mut operation = Operation::just_claimed(&NewOperation {
        id: OperationId::fresh(),
        lane: Key::new(&realm, Kind::new("thing"), &[name]).unwrap(),
        verb: "provision",
        queue: Queue::named("work"),
        start: Start::Waiting,
        detail: "".into(),
        request: "".into(),
    });
    operation.row.fence = Fence(fence);
    operation.row.takeovers = takeovers;
    operation
}

#[test]
fn a_suspect_that_was_put_back_starts_before_others() {
    let mut all = vec![
        claimed("new", 1, 0),
        claimed("polled", 90, 0),
        claimed("innocent", 3, SUSPECT_TAKEOVERS),
        claimed("put back", 12, SUSPECT_TAKEOVERS),
    ];
    sort_for_start(&mut all);
    let order: Vec<&str> = all.iter().map(|it| it.row.lane.id(0)).collect();
    assert_eq!(order, ["put back", "innocent", "new", "polled"]);
}

/// Whether a suspect starts, some leases after another one began to run.
fn starts_beside(running: u32, new: u32, leases: u32) -> bool {
    let mut table = RunTable::new(Incarnation::fresh(), LEASE, TAKEOVERS_MAX);
    let claim = (table.incarnation().worker, ClaimOrigin::Response);
    let begin = Instant::now();
    let first = table.start(&claimed("first", 5, running), claim, begin);
    assert!(matches!(first, StartDecision::Started(_)));
    let second = table.start(&claimed("second", 5, new), claim, begin + LEASE * leases);
    matches!(second, StartDecision::Started(_))
}

#[test]
fn operations_that_are_not_suspected_run_together() {
    assert!(starts_beside(SUSPECT_TAKEOVERS, SUSPECT_TAKEOVERS - 1, 0));
    assert!(starts_beside(SUSPECT_TAKEOVERS - 1, 5, 0));
}

#[test]
fn a_suspect_runs_without_another_for_longer_with_each_takeover_of_either() {
    for (takeovers, leases) in [(2, 1), (3, 4), (4, 16), (5, 64)] {
        for (running, new) in [(takeovers, 2), (2, takeovers)] {
            assert!(!starts_beside(running, new, leases - 1), "{running} {new}");
            assert!(starts_beside(running, new, leases), "{running} {new}");
        }
    }
}

#[test]
fn a_suspect_that_is_put_back_does_not_keep_others_from_running() {
    let mut table = RunTable::new(Incarnation::fresh(), LEASE, TAKEOVERS_MAX);
    let claim = (table.incarnation().worker, ClaimOrigin::Response);
    let (now, running) = (Instant::now(), claimed("running", 9, 2));
    let started = table.start(&running, claim, now);
    assert!(matches!(started, StartDecision::Started(_)));
    let put_back = table.start(&claimed("put back", 5, 2), claim, now);
    assert!(matches!(put_back, StartDecision::PutBack(..)));
    table.ended(running.row.id, running.row.fence);
    let next = table.start(&claimed("next", 5, 2), claim, now);
    assert!(matches!(next, StartDecision::Started(_)));
}

#[test]
fn an_operation_that_is_given_up_does_not_wait_for_suspects_and_they_not_for_it() {
    assert!(starts_beside(TAKEOVERS_MAX, TAKEOVERS_MAX + 1, 0));
    assert!(starts_beside(TAKEOVERS_MAX + 1, TAKEOVERS_MAX, 0));
}

#[test]
fn a_suspect_that_wrote_progress_does_not_keep_others_from_running() {
    let mut table = RunTable::new(Incarnation::fresh(), LEASE, TAKEOVERS_MAX);
    let claim = (table.incarnation().worker, ClaimOrigin::Response);
    let now = Instant::now();
    let StartDecision::Started(run) = table.start(&claimed("first", 9, 5), claim, now) else {
        panic!("the first suspect starts");
    };
    run.counters.suspicion.store(0, Ordering::SeqCst);
    let next = table.start(&claimed("next", 5, 2), claim, now);
    assert!(matches!(next, StartDecision::Started(_)));
}

/// Whether an operation whose caller left runs after the second of two renewals, of which the first does not
/// list it.
fn runs_after_renewals(first_sent: Duration, left: Duration) -> bool {
    let mut table = RunTable::new(Incarnation::fresh(), LEASE, TAKEOVERS_MAX);
    let begin = Instant::now();
    let operation = claimed("without caller", 1, 0);
    let id = operation.row.id;
    let worker = table.expect(id).unwrap();
    let unstarted = UnstartedOperation {
        operation,
        permit: None,
    };
    table.caller_left(unstarted, worker, begin + left);
    table.renewed(worker, &[], begin + first_sent);
    let steps = table.renewed(worker, &[id], begin + LEASE);
    !steps.run.is_empty()
}

#[test]
fn a_renewal_that_was_sent_before_a_caller_left_does_not_discard_its_claim() {
    let (earlier, later) = (Duration::from_secs(1), Duration::from_secs(2));
    assert!(runs_after_renewals(earlier, later));
    assert!(!runs_after_renewals(later, earlier));
}

#[test]
fn an_operation_that_is_put_back_waits_a_quarter_to_a_whole_lease() {
    let waits = [0, 1, 50, 1000].map(|waiting| put_back_wait(LEASE, waiting).as_millis());
    assert_eq!(waits, [7500, 7800, 22500, 30000]);
}

#[test]
fn takeovers_after_a_few_lost_leases_that_the_process_survived_make_no_suspect() {
    for (takeovers, losses, is_suspect) in [
        (2, 0, true),
        (2, 1, false),
        (3, 3, false),
        (4, 2, true),
        // Probably its own doing.
        (4, 3, true),
        (5, 5, true),
    ] {
        let mut table = RunTable::new(Incarnation::fresh(), LEASE, TAKEOVERS_MAX);
        let now = Instant::now();
        let mut survivor = claimed("survivor", 1, 0);
        for _ in 0..losses {
            let claim = (table.incarnation().worker, ClaimOrigin::Response);
            let started = table.start(&survivor, claim, now);
            assert!(matches!(started, StartDecision::Started(_)));
            let lost = table.incarnation().clone();
            table.lose_lease(&lost, now);
            table.ended(survivor.row.id, survivor.row.fence);
            table.begin(Incarnation::fresh());
            survivor.row.fence.0 += 1;
            survivor.row.takeovers += 1;
        }
        let claim = (table.incarnation().worker, ClaimOrigin::Response);
        let suspect = table.start(&claimed("suspect", 5, 2), claim, now);
        assert!(matches!(suspect, StartDecision::Started(_)));
        survivor.row.takeovers = takeovers;
        let again = table.start(&survivor, claim, now);
        let put_back = matches!(again, StartDecision::PutBack(..));
        assert_eq!(
            put_back, is_suspect,
            "{takeovers} takeovers, {losses} losses"
        );
    }
}

/// A table with one run, and its operation.
fn table_with_run(takeovers: u32, now: Instant) -> (RunTable, Operation, RunHandle) {
    let mut table = RunTable::new(Incarnation::fresh(), LEASE, TAKEOVERS_MAX);
    let claim = (table.incarnation().worker, ClaimOrigin::Response);
    let operation = claimed("one", 5, takeovers);
    let StartDecision::Started(run) = table.start(&operation, claim, now) else {
        panic!("it starts");
    };
    (table, operation, run)
}

fn end_claim(run: &RunHandle) {
    run.counters.claim_ended.store(true, Ordering::SeqCst);
}

/// Seconds after which a run is stopped that gave its claim back, by renewals at these seconds.
fn stopped_at(renewals: &[u64], is_claimed_again: bool) -> Option<u64> {
    let begin = Instant::now();
    let (mut table, operation, run) = table_with_run(0, begin);
    end_claim(&run);
    let held = match is_claimed_again {
        true => vec![operation.row.id],
        false => Vec::new(),
    };
    let worker = table.incarnation().worker;
    renewals.iter().copied().find(|at| {
        let steps = table.renewed(worker, &held, begin + Duration::from_secs(*at));
        assert!(steps.read.is_empty() && steps.run.is_empty());
        run.lost.is_cancelled()
    })
}

#[test]
fn a_run_that_gave_its_claim_back_is_stopped_after_a_third_of_a_lease() {
    for is_claimed_again in [false, true] {
        let stopped = |renewals: &[u64]| stopped_at(renewals, is_claimed_again);
        assert_eq!(stopped(&[0, 10, 20, 30]), Some(10));
        assert_eq!(stopped(&[1, 2, 3, 4, 10, 11, 12]), Some(11));
    }
}

#[test]
fn a_run_that_another_commit_ended_is_stopped_by_the_next_renewal() {
    let begin = Instant::now();
    let (mut table, _, run) = table_with_run(0, begin);
    let worker = table.incarnation().worker;
    table.renewed(worker, &[], begin);
    assert!(!run.lost.is_cancelled(), "it may be newer than the renewal");
    table.renewed(worker, &[], begin + Duration::from_secs(1));
    assert!(run.lost.is_cancelled());
}

#[test]
fn an_operation_that_is_claimed_again_starts_after_the_run_that_gave_it_back() {
    let now = Instant::now();
    let (mut table, mut operation, run) = table_with_run(0, now);
    let claim = (table.incarnation().worker, ClaimOrigin::Response);
    end_claim(&run);
    let first = operation.row.fence;
    operation.row.fence = Fence(first.0 + 1);
    let after = table.start(&operation, claim, now);
    assert!(matches!(after, StartDecision::After(_)));
    table.ended(operation.row.id, first);
    let next = table.start(&operation, claim, now);
    let StartDecision::Started(next) = next else {
        panic!("it starts");
    };
    table.ended(operation.row.id, first);
    assert_eq!(
        table.len(),
        1,
        "the end of the first is not that of the next"
    );
    assert!(!next.counters.claim_ended.load(Ordering::SeqCst));
}

#[test]
fn a_suspect_that_gave_its_claim_back_does_not_keep_others_from_running() {
    let now = Instant::now();
    let (mut table, _, run) = table_with_run(3, now);
    let claim = (table.incarnation().worker, ClaimOrigin::Response);
    end_claim(&run);
    let next = table.start(&claimed("next", 5, 3), claim, now);
    assert!(matches!(next, StartDecision::Started(_)));
}

/// A lost lease is the reason of a takeover only of what this process held.
#[test]
fn a_run_that_gave_its_claim_back_survives_a_lost_lease_only_if_it_is_claimed_again() {
    for is_claimed_again in [false, true] {
        let now = Instant::now();
        let (mut table, mut operation, run) = table_with_run(1, now);
        let claim = (table.incarnation().worker, ClaimOrigin::Response);
        end_claim(&run);
        if is_claimed_again {
            operation.row.fence = Fence(operation.row.fence.0 + 1);
            table.start(&operation, claim, now);
        }
        let lost = table.incarnation().clone();
        table.lose_lease(&lost, now);
        table.ended(operation.row.id, run.fence);
        table.begin(Incarnation::fresh());
        let claim = (table.incarnation().worker, ClaimOrigin::Response);
        let other = table.start(&claimed("other", 5, 2), claim, now);
        assert!(matches!(other, StartDecision::Started(_)));
        operation.row.takeovers = 2;
        operation.row.fence = Fence(operation.row.fence.0 + 1);
        let again = table.start(&operation, claim, now);
        let is_suspect = matches!(again, StartDecision::PutBack(..));
        assert_eq!(is_suspect, !is_claimed_again);
    }
}
