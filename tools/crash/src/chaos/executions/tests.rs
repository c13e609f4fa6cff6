//! Handwritten events: each rule with a sequence that satisfies it and one that violates it.

use super::{Executions, KnownClaims, Pause, after_outages, check_executions};
use crate::victim::{ReplicaBoot, ReplicaEvent};
use crate::violation::CheckResult;

const LEASE: u64 = 2_000_000;
const FIRST: ReplicaBoot = ReplicaBoot {
    replica: 0,
    boot: 1,
};
const SECOND: ReplicaBoot = ReplicaBoot {
    replica: 1,
    boot: 1,
};

fn claimed(fence: u64, at: u64, by: ReplicaBoot) -> ReplicaEvent {
    let operation = "o".to_owned();
    ReplicaEvent::Claimed {
        operation,
        fence,
        at,
        by,
    }
}

fn ran(step: u32, fence: u64, by: ReplicaBoot) -> ReplicaEvent {
    ReplicaEvent::Ran {
        operation: "o".to_owned(),
        lane: "one".to_owned(),
        verb: "provision".to_owned(),
        step,
        attempt: 1,
        fence,
        by,
    }
}

fn kept(step: u32, fence: u64, by: ReplicaBoot) -> ReplicaEvent {
    let operation = "o".to_owned();
    ReplicaEvent::Kept {
        operation,
        step,
        fence,
        by,
    }
}

fn wrote(fence: u64, began: u64, by: ReplicaBoot) -> ReplicaEvent {
    let operation = "o".to_owned();
    ReplicaEvent::Wrote {
        operation,
        fence,
        began,
        by,
    }
}

fn released(fence: u64, by: ReplicaBoot) -> ReplicaEvent {
    let operation = "o".to_owned();
    ReplicaEvent::Released {
        operation,
        fence,
        by,
    }
}

fn ended(commit: &str, fence: u64, by: ReplicaBoot) -> ReplicaEvent {
    ReplicaEvent::Ended {
        operation: "o".to_owned(),
        commit: commit.to_owned(),
        fence,
        by,
    }
}

fn check(events: &[ReplicaEvent]) -> CheckResult<Executions> {
    check_executions(events, &[], LEASE)
}

#[track_caller]
fn bad(events: &[ReplicaEvent], culprit: &str) {
    let sentence = check(events).expect_err("a promise is broken").to_string();
    assert!(sentence.contains(culprit), "{sentence}");
}

#[test]
fn a_step_without_a_memo_may_run_again_under_the_next_claim() {
    let events = [
        claimed(1, 5, FIRST),
        ran(1, 1, FIRST),
        kept(1, 1, FIRST),
        ran(2, 1, FIRST),
        claimed(2, 9, SECOND),
        ran(2, 2, SECOND),
        kept(2, 2, SECOND),
        // The first one was paused, and continues: none of its writes is stored.
        ran(3, 1, FIRST),
        ran(3, 2, SECOND),
        kept(3, 2, SECOND),
        ended("c", 2, SECOND),
    ];
    let counted = check(&events).expect("that is how it should be");
    assert_eq!((counted.ran, counted.repeated), (5, 2));
    assert_eq!((counted.claimed_again, counted.ended.len()), (1, 1));
}

#[test]
fn a_step_repeated_after_its_memo_was_stored_is_noticed() {
    let events = [ran(1, 1, FIRST), ran(1, 2, SECOND), kept(1, 1, FIRST)];
    bad(&events, "its memo was kept");
}

#[test]
fn a_step_that_runs_twice_under_one_claim_is_noticed() {
    bad(&[ran(1, 1, FIRST), ran(1, 1, FIRST)], "ran again");
}

#[test]
fn a_memo_stored_twice_is_noticed() {
    bad(&[kept(1, 1, FIRST), kept(1, 2, SECOND)], "kept twice");
}

#[test]
fn a_claim_with_two_holders_is_noticed() {
    bad(&[claimed(1, 5, FIRST), claimed(1, 6, SECOND)], "claim 1");
    bad(&[claimed(1, 5, FIRST), ran(1, 1, SECOND)], "claim 1");
}

#[test]
fn an_operation_that_ends_twice_is_noticed() {
    let repeated = [ended("c", 1, FIRST), ended("c", 1, FIRST)];
    check(&repeated).expect("a repeated commit is one");
    bad(&[ended("c", 1, FIRST), ended("d", 1, FIRST)], "ended twice");
}

#[test]
fn an_operation_that_continues_after_its_end_is_noticed() {
    bad(&[ended("c", 1, FIRST), claimed(2, 9, SECOND)], "came after");
    bad(&[ran(1, 3, FIRST), ended("c", 2, SECOND)], "came after");
}

#[test]
fn a_write_under_a_claim_from_before_a_long_pause_is_noticed() {
    let pause = |length| Pause {
        replica_boot: FIRST,
        from: 10,
        until: 10 + length,
    };
    let after = 10 + LEASE + 3;
    let late = [claimed(1, 5, FIRST), wrote(1, after, FIRST)];
    let noticed = check_executions(&late, &[pause(LEASE + 1)], LEASE);
    let sentence = noticed.expect_err("it was too late").to_string();
    assert!(sentence.contains("stood still"), "{sentence}");
    check_executions(&late, &[pause(LEASE - 1)], LEASE).expect("the lease may have held");
    let others = [claimed(1, 5, SECOND), wrote(1, after, SECOND)];
    check_executions(&others, &[pause(LEASE + 1)], LEASE).expect("another one stood still");
    let begun = [claimed(1, 5, FIRST), wrote(1, 9, FIRST)];
    check_executions(&begun, &[pause(LEASE + 1)], LEASE).expect("it had begun before");
    let later_claim = [claimed(1, 10 + LEASE + 2, FIRST), wrote(1, after, FIRST)];
    check_executions(&later_claim, &[pause(LEASE + 1)], LEASE).expect("it was claimed afterwards");
}

#[test]
fn takeovers_are_claims_since_the_last_memo_that_were_not_released() {
    let events = [
        claimed(1, 5, FIRST),
        claimed(2, 6, SECOND),
        kept(1, 2, SECOND),
        claimed(3, 7, FIRST),
        released(3, FIRST),
        // The response to claim 4 was lost.
        claimed(5, 9, SECOND),
    ];
    let counted = check(&events).expect("that is how it should be");
    let takeovers = [1, 2, 3, 4, 5, 6].map(|last| counted.known_claims["o"].takeovers_max(last));
    assert_eq!(takeovers, [0, 0, 1, 1, 2, 3]);
    assert_eq!(KnownClaims::default().takeovers_max(7), 6);
    bad(&[claimed(1, 5, FIRST), released(1, SECOND)], "claim 1");
}

#[test]
fn a_pause_counts_from_the_return_of_a_server_that_renews_leases() {
    let pause = |from, until| Pause {
        replica_boot: FIRST,
        from,
        until,
    };
    let all = [pause(10, 20)];
    let check = |outages: &[(u64, u64)]| after_outages(&all, outages)[0].from;
    assert_eq!(check(&[]), 10);
    assert_eq!(check(&[(1, 5), (30, 40)]), 10);
    assert_eq!(check(&[(5, 12), (13, 15)]), 15);
    assert_eq!(check(&[(15, 99)]), 20);
}
