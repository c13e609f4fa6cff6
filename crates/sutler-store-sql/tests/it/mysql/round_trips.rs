//! Round trips are counted by the proxy; see `round_trips.rs` above.

use super::conformance::MySql;
use crate::round_trips;

#[tokio::test(flavor = "multi_thread")]
async fn every_call_is_one_round_trip() {
    if let Some(candidate) = MySql::fresh().await {
        round_trips::every_call_is_one_round_trip(&*candidate.current(), &candidate.proxy).await;
    }
}
