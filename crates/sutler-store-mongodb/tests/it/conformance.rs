//! The MongoDB store passes the conformance suite of stores.
//!
//! Every test has its own database and proxy: the proxy cuts connections, and a commit in progress is an
//! open transaction whose commit the proxy holds. Time is the server's, so tests must wait for it.

use async_trait::async_trait;
use secrecy::SecretString;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use sutler_journal::conformance::{Candidate, Cut, StalledCommit, samples};
use sutler_journal::{Commit, Store};
use sutler_servers::{HeldCommit, MongoDialect, Proxy, Server, ServerUrl, mongodb};
use sutler_store_mongodb::MongoStore;

/// A store behind a proxy.
pub(crate) struct Mongo {
    pub(crate) proxy: Proxy,
    /// The database, without the proxy.
    pub(crate) place: ServerUrl,
    store: Mutex<Arc<MongoStore>>,
}

impl Mongo {
    /// An empty store on the shared server; `None`, with a message, if there is no server.
    pub(crate) async fn fresh() -> Option<Self> {
        Some(Self::on(mongodb::shared()?).await)
    }

    /// An empty store on this server.
    pub(crate) async fn on(server: &Server) -> Self {
        let place = server.fresh_database();
        let proxy = Proxy::to::<MongoDialect>(server.address()).await;
        let store = open(&place.through(proxy.port()).url()).await;
        Self {
            proxy,
            place,
            store: Mutex::new(store),
        }
    }

    pub(crate) fn current(&self) -> Arc<MongoStore> {
        Arc::clone(&self.store.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Another replica over the same data, without the proxy.
    pub(crate) async fn replica(&self) -> Arc<MongoStore> {
        open(&self.place.url()).await
    }
}

pub(crate) async fn open(url: &str) -> Arc<MongoStore> {
    let opened = MongoStore::open(&SecretString::from(url)).await;
    Arc::new(opened.expect("a store"))
}

#[async_trait]
impl Candidate for Mongo {
    async fn store(&self) -> Arc<dyn Store> {
        self.current()
    }

    async fn pass(&self, time: Duration) {
        samples::wait_until_passed(time).await;
    }

    async fn reopen(&self) -> Arc<dyn Store> {
        let store = open(&self.place.through(self.proxy.port()).url()).await;
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&store);
        store
    }

    async fn open_again(&self) -> Result<Arc<dyn Store>, String> {
        Ok(self.replica().await)
    }

    async fn cut(&self, cut: Cut) {
        self.proxy.cut(match cut {
            Cut::BeforeCommit => sutler_servers::CutPoint::Before,
            Cut::DuringCommit => sutler_servers::CutPoint::During,
            Cut::AfterCommit => sutler_servers::CutPoint::After,
        });
    }

    async fn stall(&self, commit: Commit) -> Box<dyn StalledCommit> {
        let HeldCommit { arrived, go } = self.proxy.hold();
        samples::stall_at_proxy(self.current(), commit, arrived, go).await
    }

    async fn set_stalled(&self, stalled: bool) {
        self.proxy.set_stalled(stalled);
    }
}

mod suite {
    use super::Mongo;

    sutler_journal::store_conformance!(match Mongo::fresh().await {
        Some(candidate) => candidate,
        None => return,
    });
}
