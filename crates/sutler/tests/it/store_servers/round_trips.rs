//! Number of round trips of a request to the store, counted on the wire.
//!
//! A broker also has background requests: lease renewals, claims, health checks. So every request is
//! repeated, and the one with the fewest round trips counts.

use super::ServerKind;
use super::fixture::{Fixture, ParsedResponse, Replica, RunningProxy};
use sutler_servers::print_line;

/// Number of repeats of each request.
const TIMES: usize = 9;
/// Long enough that no hook ends during the count.
const SLOW_MS: u64 = 60_000;

/// Sends a request, and returns the messages on the wire until its response.
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
    // The first request of each kind prepares statements on the server.
    let operation = replica.provision("warm", SLOW_MS).operation();
    replica.until_it_works("warm", &operation);
    for n in 0..TIMES {
        let id = format!("i-{n}");
        // Its hook may write its progress before the response arrives: one more message, which is not part of
        // the request.
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

pub(super) fn round_trips_of_requests_are_few(kind: &ServerKind) {
    let Some(server) = (kind.shared)() else {
        return;
    };
    let wire = (kind.wire)(server);
    let server_url = server.fresh_database().through(wire.proxy.port());
    let fixture = Fixture::over(&server_url, "workers: 64\n");
    let replica = fixture.replica();
    for ((what, messages), most) in count(&replica, &wire).into_iter().zip(kind.trips) {
        print_line(&format!(
            "{}: {what}: {} round trips",
            server.name(),
            messages.len()
        ));
        assert!(messages.len() <= most, "{what}: {messages:#?}");
    }
    replica.0.signal("KILL");
}
