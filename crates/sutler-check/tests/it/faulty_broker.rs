//! A separate broker for tests of the check: in memory, of plain JSON, without any of Sutler's types.
//! Without a flaw it is conformant to every MUST and SHOULD; a flaw has the name of the case it breaks.
//!
//! To add a flaw, check `flaws.has("name-of-the-case")` at the decision that it breaks, or change the
//! outgoing answer in `faulty_broker/flaws_*.rs`. Operations end after a number of polls, never by
//! time. Reading order: `faulty_broker/routes.rs` (from bytes to a decision and back),
//! `faulty_broker/instances.rs`, `faulty_broker/bindings.rs` (the decisions), `faulty_broker/state.rs` (the
//! state), `faulty_broker/catalog.rs` (the catalogs), `faulty_broker/answers.rs` (the answers).

mod allowed_variants;
mod allowed_variants_bindings;
mod answers;
mod bindings;
mod catalog;
mod fetches;
mod flaws_bindings;
mod flaws_catalog;
mod flaws_instances;
mod flaws_protocol;
mod instances;
mod request;
mod routes;
mod state;
mod switches;
mod updates;

pub(crate) use allowed_variants::VARIANTS;
pub(crate) use allowed_variants_bindings::BINDING_VARIANTS;
pub(crate) use catalog::Kit;
pub(crate) use switches::{Flaws, checked_flaws};

use secrecy::SecretString;
use state::BrokerState;
use std::sync::{Arc, Mutex};
use sutler_client::wire::Connection;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

/// User and password of the broker.
pub(crate) const USER: &str = "kit";
pub(crate) const PASSWORD: &str = "kit-password";

/// Behaviour where the specification changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// As in 2.17.
    Now,
    /// 412 for a missing version, and 410 for polls after a delete.
    Compat,
}

/// A running broker; it stops when this is dropped.
pub(crate) struct FaultyBroker {
    url: String,
    world: Arc<Mutex<BrokerState>>,
    _stop: DropGuard,
}

impl FaultyBroker {
    /// Starts a broker with one of the catalogs and these flaws.
    pub(crate) async fn start(kit: Kit, flaws: Flaws) -> Self {
        Self::start_of(kit, flaws, Era::Now).await
    }

    /// Like `start`, with the behaviour of an era.
    pub(crate) async fn start_of(kit: Kit, flaws: Flaws, era: Era) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let world = Arc::new(Mutex::new(BrokerState::new(kit, flaws, era)));
        let router = routes::router(world.clone());
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                served = axum::serve(listener, router) => served.unwrap(),
                () = stopped.cancelled() => {}
            }
        });
        Self {
            url,
            world,
            _stop: stop.drop_guard(),
        }
    }

    /// A connection with the right credentials.
    pub(crate) fn connection(&self) -> Connection {
        Connection::to(&self.url)
            .basic(USER, SecretString::from(PASSWORD))
            .build()
            .unwrap()
    }

    /// Number of existing instances.
    pub(crate) fn instances(&self) -> usize {
        self.world.lock().unwrap().living()
    }

    /// Number of requests received.
    pub(crate) fn requests(&self) -> usize {
        self.world.lock().unwrap().requests
    }
}
