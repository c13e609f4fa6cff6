//! Replicas whose clocks differ: leases expire by the clock of the store, which they share.

use super::ServerKind;
use super::fixture::Fixture;
use std::process::Command;
use std::time::{Duration, Instant};
use sutler_servers::{MissingServer, find_programs};

const LEASE: Duration = Duration::from_secs(2);
/// A minute ahead. The monotonic clock is not changed: it cannot be set.
const AHEAD: [&str; 3] = ["--exclude-monotonic", "-f", "+60s"];
/// Maximum delay of a takeover, on a busy machine.
const LATE: Duration = Duration::from_secs(30);

/// Variables that change the clock of a program. Started by the tool itself, the program would be a child
/// that signals do not reach.
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

pub(super) fn a_minute_between_the_clocks_of_replicas_is_harmless(kind: &ServerKind) {
    if find_programs(&["faketime"], &[]).is_none() {
        let missing = MissingServer {
            name: "faketime",
            program: "faketime",
            how: "apt-get install faketime",
            may_be: false,
        };
        return missing.report();
    }
    let Some(server) = (kind.shared)() else {
        return;
    };
    let lease = format!("timeouts: {{lease: {}s}}\n", LEASE.as_secs());
    let fixture = Fixture::over(&server.fresh_database(), &lease);
    let (now, ahead) = (fixture.replica(), fixture.replica_with(ahead()));
    // Each operation takes far longer than a lease. By the clock that is ahead, leases of the other replica
    // expired long ago; by the other clock, those of the first last a minute longer.
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
