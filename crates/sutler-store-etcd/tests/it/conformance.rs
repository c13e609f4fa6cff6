//! The etcd store passes the conformance suite of stores.
//!
//! Every test has its own prefix and proxy: the proxy cuts connections, and a commit in progress is one
//! whose transaction the proxy holds. Time is the server's, so tests must wait for it.

use crate::server::settings_of;
use async_trait::async_trait;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use sutler_journal::conformance::{Candidate, Cut, StalledCommit, samples};
use sutler_journal::{Commit, Store};
use sutler_servers::{EtcdDialect, HeldCommit, Proxy, Server, etcd};
use sutler_store_etcd::{EtcdSettings, EtcdStore};

/// A store behind a proxy.
pub(crate) struct Etcd {
    pub(crate) proxy: Proxy,
    pub(crate) settings: EtcdSettings,
    store: Mutex<Arc<EtcdStore>>,
    behind: Vec<String>,
}

impl Etcd {
    /// An empty store on the shared server; `None`, with a message, if there is no server.
    pub(crate) async fn fresh() -> Option<Self> {
        Some(Self::on(etcd::shared()?).await)
    }

    /// An empty store on this server.
    pub(crate) async fn on(server: &Server) -> Self {
        let mut settings = settings_of(server);
        let behind = settings.endpoints.clone();
        let proxy = Proxy::to::<EtcdDialect>(server.address()).await;
        settings.endpoints = vec![endpoint(&proxy)];
        settings.prefix = format!("test/{}", uuid::Uuid::now_v7());
        let store = Mutex::new(open(&settings).await);
        Self {
            proxy,
            settings,
            store,
            behind,
        }
    }

    /// The server itself, without the proxy.
    pub(crate) fn behind(&self) -> Vec<String> {
        self.behind.clone()
    }

    pub(crate) fn current(&self) -> Arc<EtcdStore> {
        Arc::clone(&self.store.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The address of a proxy, in the form of the settings.
pub(crate) fn endpoint(proxy: &Proxy) -> String {
    format!("127.0.0.1:{}", proxy.port())
}

/// The cut of the proxy for a cut of the suite.
pub(crate) fn point_of(cut: Cut) -> sutler_servers::CutPoint {
    match cut {
        Cut::BeforeCommit => sutler_servers::CutPoint::Before,
        Cut::DuringCommit => sutler_servers::CutPoint::During,
        Cut::AfterCommit => sutler_servers::CutPoint::After,
    }
}

pub(crate) async fn open(settings: &EtcdSettings) -> Arc<EtcdStore> {
    let opened = EtcdStore::open_with(settings).await;
    Arc::new(opened.expect("a store"))
}

#[async_trait]
impl Candidate for Etcd {
    async fn store(&self) -> Arc<dyn Store> {
        self.current()
    }

    async fn pass(&self, time: Duration) {
        samples::wait_until_passed(time).await;
    }

    async fn reopen(&self) -> Arc<dyn Store> {
        let store = open(&self.settings).await;
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&store);
        store
    }

    async fn open_again(&self) -> Result<Arc<dyn Store>, String> {
        Ok(open(&self.settings).await)
    }

    async fn cut(&self, cut: Cut) {
        self.proxy.cut(point_of(cut));
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
    use super::Etcd;

    sutler_journal::store_conformance!(match Etcd::fresh().await {
        Some(candidate) => candidate,
        None => return,
    });
}
