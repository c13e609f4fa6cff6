//! Round trips are counted on the wire; how: `trips.rs` above.

use super::candidate::MySql;
use crate::trips;

#[tokio::test(flavor = "multi_thread")]
async fn every_call_is_one_round_trip() {
    if let Some(candidate) = MySql::fresh().await {
        trips::every_call_is_one_round_trip(&*candidate.current(), &candidate.proxy).await;
    }
}
