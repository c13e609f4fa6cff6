//! Outage of the server: callers get 503 with `Retry-After`, readiness reports it, and operations continue as
//! soon as the server is back.

use super::ServerKind;
use super::fixture::{Fixture, ParsedResponse, until};
use sutler_servers::Demands;

#[track_caller]
fn comes_back_later(response: ParsedResponse) -> Result<(), ParsedResponse> {
    let refused = response.status == 503 && response.retry_after.is_some();
    if refused { Ok(()) } else { Err(response) }
}

pub(super) fn an_outage_of_the_server_is_reported_and_everything_resumes_afterwards(
    kind: &ServerKind,
) {
    let Some(server) = (kind.own)(Demands::default()) else {
        return;
    };
    let fixture = Fixture::over(&server.fresh_database(), "");
    let (one, other) = (fixture.replica(), fixture.replica());
    let before = one.provision("before", 0).operation();
    assert_eq!(one.until_it_ends("before", &before), "succeeded");
    // Its hook ends during the outage.
    let running = one.provision("running", 1500).operation();
    server.kill();
    for replica in [&one, &other] {
        until("a change is sent away", || {
            comes_back_later(replica.provision("new", 0))
        });
        until("a poll is sent away", || {
            comes_back_later(replica.poll("running", &running))
        });
        replica.until_ready_is(503);
    }
    server.start();
    for replica in [&one, &other] {
        replica.until_ready_is(200);
    }
    assert_eq!(other.until_it_ends("running", &running), "succeeded");
    // The request was refused, so it was not started; it is started once, on any replica.
    until("a change is taken again", || {
        let new = one.provision("new", 0);
        if new.status == 202 || new.status == 200 {
            Ok(())
        } else {
            Err(new)
        }
    });
    for id in ["before", "running", "new"] {
        until("it is there for everybody", || {
            let repeat = other.provision(id, if id == "running" { 1500 } else { 0 });
            if repeat.status == 200 {
                Ok(())
            } else {
                Err(repeat)
            }
        });
        assert_eq!(other.delete_small(id).status, 200);
    }
    let history = one.admin("operations?verb=provision");
    let ran = history["items"].as_array().expect("operations").len();
    assert_eq!(ran, 3, "{history}");
}
