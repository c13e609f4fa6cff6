//! How often a request waits for the store, counted on the wire.
//!
//! A broker also asks by itself: it renews its lease, looks for work, looks at its health. So every
//! request is made several times, and the one that met the least of that counts.

use super::Sort;
use super::fixture::{Fixture, ParsedResponse, Replica, RunningProxy};
use sutler_servers::print_line;

/// How often each request is made.
const TIMES: usize = 9;
/// Long enough that no hook ends while it is counted.
const SLOW_MS: u64 = 60_000;

/// Asks, and keeps what went over the wire until the answer came.
fn counted(
    wire: &RunningProxy,
    request: impl FnOnce() -> ParsedResponse,
    status: u16,
) -> Vec<String> {
    let before = wire.proxy.round_trips();
    let response = request();
    let messages = wire.proxy.messages_since(before);
    assert_eq!(response.status, status, "{response:?}");
    messages
}

/// The fewest of several.
fn fewest(all: Vec<Vec<String>>) -> Vec<String> {
    let fewest = all.into_iter().min_by_key(Vec::len);
    fewest.expect("it was done several times")
}

fn count(replica: &Replica, wire: &RunningProxy) -> [(&'static str, Vec<String>); 3] {
    let (mut provisions, mut repeats, mut polls) = (Vec::new(), Vec::new(), Vec::new());
    // The first of each prepares what is said to the server.
    let operation = replica.provision("warm", SLOW_MS).operation();
    replica.until_it_works("warm", &operation);
    for n in 0..TIMES {
        let id = format!("i-{n}");
        // Its hook may write its progress before the answer is here: one more, not the request's own.
        provisions.push(counted(wire, || replica.provision(&id, SLOW_MS), 202));
        let operation = replica.provision(&id, SLOW_MS).operation();
        replica.until_it_works(&id, &operation);
        repeats.push(counted(wire, || replica.provision(&id, SLOW_MS), 202));
        polls.push(counted(wire, || replica.poll(&id, &operation), 200));
    }
    [
        ("async provision", fewest(provisions)),
        ("identical repeat", fewest(repeats)),
        ("poll", fewest(polls)),
    ]
}

pub(super) fn round_trips_of_requests_are_few(sort: &Sort) {
    let Some(server) = (sort.shared)() else {
        return;
    };
    let wire = (sort.wire)(server);
    let place = server.fresh_database().through(wire.proxy.port());
    let fixture = Fixture::over(&place, "workers: 64\n");
    let replica = fixture.replica();
    for ((what, messages), most) in count(&replica, &wire).into_iter().zip(sort.trips) {
        print_line(&format!(
            "{}: {what}: {} round trips",
            server.name(),
            messages.len()
        ));
        assert!(messages.len() <= most, "{what}: {messages:#?}");
    }
    replica.0.signal("KILL");
}
