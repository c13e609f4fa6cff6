//! A replica that is paused for longer than its lease, and continues: its operations belong to another
//! replica.

use super::ServerKind;
use super::fixture::Fixture;

const BRIEF: &str = "timeouts: {lease: 2s}\n";

pub(super) fn a_replica_that_was_paused_beyond_its_lease_writes_nothing(kind: &ServerKind) {
    let Some(server) = (kind.shared)() else {
        return;
    };
    let fixture = Fixture::over(&server.fresh_database(), BRIEF);
    let (paused, other) = (fixture.replica(), fixture.replica());
    let started = paused.provision("i", 3000).operation();
    paused.until_it_works("i", &started);
    paused.0.signal("STOP");
    assert_eq!(other.until_it_ends("i", &started), "succeeded");
    let taken_over = other.admin(&format!("operations/{started}"));
    assert_eq!(taken_over["claims"], 2, "{taken_over}");
    let instance = other.admin("instances/i");
    paused.0.signal("CONT");
    paused.0.until_logged("its claim was lost");
    // It works again, under a new name.
    paused.until_ready_is(200);
    let next = paused.provision("next", 0).operation();
    assert_eq!(other.until_it_ends("next", &next), "succeeded");
    for replica in [&paused, &other] {
        assert_eq!(
            replica.admin("instances/i"),
            instance,
            "nothing was written"
        );
        let now = replica.admin(&format!("operations/{started}"));
        assert_eq!(now, taken_over, "nothing was written");
    }
    let provisions = other.admin("operations?verb=provision");
    let count = provisions["items"].as_array().map(Vec::len);
    assert_eq!(count, Some(2), "{provisions}");
}
