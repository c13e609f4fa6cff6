//! What no row of the breaker's table shows: pauses, counts, limits, and what an answer says about a broker.

use super::fixtures::{STATES, in_seconds, named, now, operator, seconds_ago, statement};
use crate::lifecycle::breaker::{
    Breaker, BreakerEffect, BreakerEvent, ExchangeOutcome, HALVED_FOR, LocalCount, MAX_IN_FLIGHT,
    OpenCause, PROBE_PAUSE_MAX, PROBE_PAUSE_MIN, ProbeResult, QueueLimit, Recovery, StopReason,
    UNANSWERED_MAX, decide, queue_share,
};
use std::num::NonZeroU32;
use std::time::Duration;
use sutler_client::wire::{Answer, TransportError};
use sutler_client::{classify_read, decode};

fn after(breaker: Breaker, event: BreakerEvent) -> (Breaker, Vec<BreakerEffect>) {
    let decision = decide(breaker, event, now(), 0).expect("it is not refused");
    (decision.next, decision.effects)
}

#[test]
fn the_pauses_between_probes_double_from_five_seconds_to_five_minutes() {
    let (mut breaker, _) = after(Breaker::default(), BreakerEvent::Trip(OpenCause::Silence));
    let mut seconds = Vec::new();
    for _ in 0..8 {
        let silent = BreakerEvent::Probed(ProbeResult::Unanswered(statement()));
        let (next, effects) = after(breaker, silent);
        match effects[..] {
            [BreakerEffect::ProbeAfter(pause)] => seconds.push(pause.as_secs()),
            ref other => panic!("no probe is planned: {other:?}"),
        }
        breaker = next;
    }
    assert_eq!(seconds, [10, 20, 40, 80, 160, 300, 300, 300]);
}

#[test]
fn chance_shortens_a_pause_by_up_to_a_quarter_and_never_below_the_shortest() {
    let pause = |failed_probes, jitter| {
        let recovery = Some(Recovery {
            at: now(),
            failed_probes,
        });
        let trip = BreakerEvent::Trip(OpenCause::Silence);
        let decision = decide(Breaker::Closed { recovery }, trip, now(), jitter);
        match decision.expect("it opens").effects[1] {
            BreakerEffect::StartProbe(pause) => pause,
            other => panic!("no probe: {other:?}"),
        }
    };
    assert_eq!(pause(2, 0), Duration::from_secs(40));
    assert_eq!(pause(2, u32::MAX), Duration::from_secs(30));
    assert_eq!(pause(u32::MAX, 0), PROBE_PAUSE_MAX);
    assert_eq!(pause(u32::MAX, u32::MAX), PROBE_PAUSE_MAX * 3 / 4);
    let first = decide(
        Breaker::default(),
        BreakerEvent::Trip(OpenCause::Silence),
        now(),
        u32::MAX,
    );
    let first = first.expect("it opens").effects;
    assert_eq!(first[1], BreakerEffect::StartProbe(PROBE_PAUSE_MIN));
}

#[test]
fn a_breaker_that_opens_again_later_begins_with_the_shortest_pause() {
    let closed = |seconds| Breaker::Closed {
        recovery: Some(Recovery {
            at: seconds_ago(seconds),
            failed_probes: 5,
        }),
    };
    let trip = || BreakerEvent::Trip(OpenCause::Unauthorized);
    let (_, effects) = after(closed(600), trip());
    assert_eq!(effects[1], BreakerEffect::StartProbe(PROBE_PAUSE_MIN));
    let (_, effects) = after(closed(599), trip());
    assert_eq!(effects[1], BreakerEffect::StartProbe(PROBE_PAUSE_MAX));
}

#[test]
fn who_waits_sees_since_when_and_why() {
    assert_eq!(Breaker::default().stop(), None);
    let stop = named("open after 401").stop().expect("it is open");
    assert_eq!(stop.since, seconds_ago(60));
    assert_eq!(stop.reason, StopReason::Open(OpenCause::Unauthorized));
    let stop = named("paused while open").stop().expect("it is paused");
    assert_eq!(stop.since, seconds_ago(10));
    assert_eq!(stop.reason, StopReason::Paused(operator()));
}

#[test]
fn a_breaker_is_the_same_after_it_was_stored() {
    for state in STATES {
        let stored = serde_json::to_string(&named(state)).expect("JSON");
        let read: Breaker = serde_json::from_str(&stored).expect("a breaker");
        assert_eq!(read, named(state), "{state}");
    }
}

#[test]
fn five_unanswered_exchanges_in_a_row_are_a_cause() {
    let mut count = LocalCount::default();
    let mut counted = |outcome| count.count(now(), outcome);
    for _ in 1..UNANSWERED_MAX {
        assert_eq!(counted(ExchangeOutcome::Unanswered), None);
    }
    assert_eq!(counted(ExchangeOutcome::Overloaded), None);
    for _ in 1..UNANSWERED_MAX {
        assert_eq!(counted(ExchangeOutcome::Unanswered), None);
    }
    let silence = Some(OpenCause::Silence);
    assert_eq!(counted(ExchangeOutcome::Unanswered), silence);
    // A proposal that was not committed is made again.
    assert_eq!(counted(ExchangeOutcome::Unanswered), silence);
    assert_eq!(counted(ExchangeOutcome::Answered), None);
    assert_eq!(counted(ExchangeOutcome::Unanswered), None);
}

/// D-37.
#[test]
fn one_401_is_a_cause() {
    let mut count = LocalCount::default();
    let cause = count.count(now(), ExchangeOutcome::Unauthorized);
    assert_eq!(cause, Some(OpenCause::Unauthorized));
}

#[test]
fn exchanges_that_began_before_the_breaker_closed_are_not_counted() {
    let mut count = LocalCount::default();
    count.restart(now());
    for _ in 0..40 {
        let late = count.count(seconds_ago(1), ExchangeOutcome::Unanswered);
        assert_eq!(late, None);
        let late = count.count(seconds_ago(1), ExchangeOutcome::Unauthorized);
        assert_eq!(late, None);
    }
    let fresh = count.count(now(), ExchangeOutcome::Unauthorized);
    assert_eq!(fresh, Some(OpenCause::Unauthorized));
}

fn probed(outcome: decode::WireResult) -> &'static str {
    match ProbeResult::of(&classify_read(decode::catalog(outcome))) {
        ProbeResult::Answered => "answered",
        ProbeResult::Unauthorized(_) => "unauthorized",
        ProbeResult::Unanswered(_) => "unanswered",
        ProbeResult::Refused(_) => "refused",
    }
}

#[test]
fn only_a_catalog_closes_an_open_breaker() {
    let answer = |status, body: &str| probed(Ok(Answer::new(status, &[], body.to_owned())));
    assert_eq!(answer(200, r#"{"services":[]}"#), "answered");
    assert_eq!(answer(200, "not JSON"), "answered");
    assert_eq!(answer(304, ""), "answered");
    assert_eq!(answer(401, "{}"), "unauthorized");
    for status in [
        201, 202, 204, 302, 400, 403, 404, 408, 410, 422, 429, 500, 502, 503,
    ] {
        assert_eq!(answer(status, "{}"), "refused", "{status}");
    }
    let busy = r#"{"error":"ConcurrencyError"}"#;
    assert_eq!(answer(422, busy), "refused");
    let timed_out = TransportError::TimedOut(Duration::from_secs(1));
    assert_eq!(probed(Err(timed_out)), "unanswered");
    let not_sent = TransportError::NotSent("refused".to_owned());
    assert_eq!(probed(Err(not_sent)), "unanswered");
}

/// D-38.
#[test]
fn every_reply_says_something_about_the_broker() {
    let reply = |status, headers: &[(&str, &str)]| {
        let answer = Answer::new(status, headers, "{}");
        ExchangeOutcome::of(&decode::delete(Ok(answer)))
    };
    let retry_after: &[(&str, &str)] = &[("retry-after", "7")];
    assert_eq!(reply(401, &[]), ExchangeOutcome::Unauthorized);
    assert_eq!(reply(429, &[]), ExchangeOutcome::Overloaded);
    assert_eq!(reply(503, retry_after), ExchangeOutcome::Overloaded);
    for status in [200, 202, 204, 302, 400, 408, 410, 422, 500, 503] {
        assert_eq!(reply(status, &[]), ExchangeOutcome::Answered, "{status}");
    }
    let malformed = decode::delete(Ok(Answer::new(200, &[], "[")));
    assert_eq!(ExchangeOutcome::of(&malformed), ExchangeOutcome::Answered);
    for error in [
        TransportError::TimedOut(Duration::from_secs(1)),
        TransportError::NotSent("refused".to_owned()),
    ] {
        let reply = decode::delete(Err(error));
        assert_eq!(ExchangeOutcome::of(&reply), ExchangeOutcome::Unanswered);
    }
}

#[test]
fn a_request_without_a_place_in_this_process_says_nothing_of_the_broker() {
    let no_place = TransportError::NoPlace("busy".to_owned());
    let outcome = ExchangeOutcome::of(&decode::delete(Err(no_place)));
    assert_eq!(outcome, ExchangeOutcome::NotTried);
    let mut count = LocalCount::default();
    for _ in 0..2 * UNANSWERED_MAX {
        assert_eq!(count.count(now(), outcome), None);
    }
    for _ in 1..UNANSWERED_MAX {
        assert_eq!(count.count(now(), ExchangeOutcome::Unanswered), None);
        assert_eq!(count.count(now(), outcome), None);
    }
    let fifth = count.count(now(), ExchangeOutcome::Unanswered);
    assert_eq!(fifth, Some(OpenCause::Silence), "it interrupts no row");
}

fn limit(max_in_flight: u32) -> QueueLimit {
    QueueLimit::new(NonZeroU32::new(max_in_flight).expect("not zero"))
}

#[test]
fn replicas_share_the_limit_of_a_broker() {
    assert_eq!(QueueLimit::default().at(1, now()), MAX_IN_FLIGHT);
    let shares = [0, 1, 2, 3, 32, 1_000].map(|replicas| limit(32).at(replicas, now()).get());
    assert_eq!(shares, [32, 32, 16, 11, 1, 1]);
}

#[test]
fn a_broker_occupies_an_eighth_of_a_replica_and_so_do_all_of_a_namespace_together() {
    for (runs_max, of_namespace, share) in [
        (512, None, 64),
        (513, None, 65),
        (1, None, 1),
        (0, None, 1),
        (512, Some(0), 64),
        (512, Some(1), 64),
        (512, Some(2), 32),
        (512, Some(20), 3),
        (512, Some(64), 1),
        (512, Some(1_000), 1),
    ] {
        let found = queue_share(runs_max, of_namespace).get();
        assert_eq!(found, share, "{runs_max} {of_namespace:?}");
    }
}

#[test]
fn a_broker_that_is_overloaded_gets_half_for_a_minute() {
    let mut limit = limit(32);
    for outcome in [
        ExchangeOutcome::Answered,
        ExchangeOutcome::Unauthorized,
        ExchangeOutcome::Unanswered,
    ] {
        limit.count(outcome, now());
        assert_eq!(limit.halved_until(now()), None);
    }
    limit.count(ExchangeOutcome::Overloaded, now());
    limit.count(ExchangeOutcome::Overloaded, now());
    assert_eq!(limit.at(2, now()).get(), 8);
    assert_eq!(limit.at(1_000, now()).get(), 1);
    let over = in_seconds(HALVED_FOR.as_secs());
    assert_eq!(limit.halved_until(now()), Some(over));
    assert_eq!(limit.at(2, in_seconds(59)).get(), 8);
    assert_eq!(limit.at(2, over).get(), 16);
}
