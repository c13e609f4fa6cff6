//! A requested sync of a broker's catalog, whose end the request may wait for.

use super::answer::tagged;
use super::entity_tag::tag_of_broker;
use super::problem::Problem;
use super::views::BrokerDocument;
use crate::platform::Platform;
use crate::records::{BrokerRegistration, BrokerState};
use axum::body::Body;
use axum::http::{Response, StatusCode};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often the state of the broker is read by a caller that waits.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A sync.
pub(super) struct RequestedSync {
    /// The broker.
    pub registration: BrokerRegistration,
    /// Number of the request.
    pub number: u64,
}

impl RequestedSync {
    /// The answer to a caller that does not wait: the broker as it is now.
    pub(super) async fn pending(&self, platform: &Platform) -> Result<Response<Body>, Problem> {
        Ok(self.response(&self.state(platform).await?))
    }

    /// The answer to a caller that waits for so long at most.
    pub(super) async fn waited(
        &self,
        platform: &Platform,
        within: Duration,
    ) -> Result<Response<Body>, Problem> {
        let until = Instant::now() + within;
        loop {
            let state = self.state(platform).await?;
            if self.is_served(&state) || Instant::now() >= until {
                return Ok(self.response(&state));
            }
            sleep(LOOK_EVERY).await;
        }
    }

    async fn state(&self, platform: &Platform) -> Result<BrokerState, Problem> {
        let state = platform.brokers().state(self.registration.uid).await?;
        Ok(state.unwrap_or_default())
    }

    /// The catalog was read after the request, or could not be read: the document says which.
    fn is_served(&self, state: &BrokerState) -> bool {
        state.sync.served >= self.number
    }

    fn response(&self, state: &BrokerState) -> Response<Body> {
        let status = match self.is_served(state) {
            true => StatusCode::OK,
            false => StatusCode::ACCEPTED,
        };
        let document = BrokerDocument::of(&self.registration, state);
        tagged(status, &document, tag_of_broker(&self.registration))
    }
}
