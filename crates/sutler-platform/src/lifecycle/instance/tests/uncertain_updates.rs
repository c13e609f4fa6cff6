//! Updates that may have been applied or not.

use super::lane::Lane;
use crate::lifecycle::instance::{Basis, Event, Exposure, FetchedInstance, ResourceDetails};

/// Source: T-50, P-094.
/// Holds: P-094.
#[test]
fn a_fetch_after_an_uncertain_update_keeps_the_dashboard_that_the_broker_leaves_out() {
    let mut lane = Lane::in_state("live uncertain");
    let Basis::Confirmed(confirmed) = &mut lane.instance.basis else {
        panic!("it is not live");
    };
    confirmed.dashboard_url = Some("https://dashboard.example".to_owned());
    let found = FetchedInstance {
        spec: confirmed.spec.clone(),
        details: ResourceDetails::default(),
    };
    let before = confirmed.clone();
    lane.decide(Event::Fetched(Box::new(found)))
        .expect("it is uncertain");
    assert_eq!(lane.instance.exposure, Exposure::Confirmed);
    assert_eq!(lane.instance.confirmed(), Some(before.as_ref()));
}
