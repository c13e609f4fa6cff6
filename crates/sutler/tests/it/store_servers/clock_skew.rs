//! Replicas whose clocks differ: leases run out by the clock of the store, which they share.

use super::Sort;
use super::fixture::Fixture;
use std::process::Command;
use std::time::{Duration, Instant};
use sutler_servers::{MissingServer, find_programs};

const LEASE: Duration = Duration::from_secs(2);
/// A minute ahead. What only goes forward is left alone: nothing can set it.
const AHEAD: [&str; 3] = ["--exclude-monotonic", "-f", "+60s"];
/// How late a takeover may be, on a busy machine.
const LATE: Duration = Duration::from_secs(30);

/// The variables by which a program is told another time. By the tool itself it would be a child, which
/// signals do not reach.
fn ahead() -> Vec<(String, String)> {
    let output = Command::new("faketime").args(AHEAD).arg("env").output();
    let output = String::from_utf8(output.expect("faketime runs").stdout).expect("it prints text");
    let pairs = output.lines().filter_map(|line| line.split_once('='));
    pairs
        .filter(|(name, _)| *name == "LD_PRELOAD" || name.starts_with("FAKETIME"))
        .filter(|(name, _)| *name != "FAKETIME_SHARED")
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

pub(super) fn a_minute_between_the_clocks_of_replicas_is_harmless(sort: &Sort) {
    if find_programs(&["faketime"], &[]).is_none() {
        let missing = MissingServer {
            name: "faketime",
            program: "faketime",
            how: "apt-get install faketime",
            may_be: false,
        };
        return missing.report();
    }
    let Some(server) = (sort.shared)() else {
        return;
    };
    let lease = format!("timeouts: {{lease: {}s}}\n", LEASE.as_secs());
    let fixture = Fixture::over(&server.fresh_database(), &lease);
    let (now, ahead) = (fixture.replica(), fixture.replica_with(ahead()));
    // Each takes far longer than a lease lasts. By the clock of the one that is ahead, those of the other
    // ran out long ago; by that of the other, its own last a minute longer.
    let slow = (LEASE * 2).as_millis().try_into().expect("a short time");
    let (one, two) = (
        now.provision("one", slow).operation(),
        ahead.provision("two", slow).operation(),
    );
    for (id, operation) in [("one", &one), ("two", &two)] {
        assert_eq!(now.until_it_ends(id, operation), "succeeded");
        let ran = ahead.admin(&format!("operations/{operation}"));
        assert_eq!(ran["claims"], 1, "{ran}");
    }
    let orphan = ahead.provision("three", 2000).operation();
    ahead.until_it_works("three", &orphan);
    ahead.0.signal("KILL");
    let began = Instant::now();
    assert_eq!(now.until_it_ends("three", &orphan), "succeeded");
    assert!(began.elapsed() < LATE, "{:?}", began.elapsed());
    let ran = now.admin(&format!("operations/{orphan}"));
    assert_eq!(ran["claims"], 2, "{ran}");
}
