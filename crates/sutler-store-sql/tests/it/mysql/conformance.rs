//! The store in MySQL or MariaDB passes the conformance suite of stores.
//!
//! Each test has its own database on the shared server, and a proxy that can cut connections. The
//! clock is the server's, moved forward in the database where the suite lets time pass. Commits take their
//! number one after the other, inside one call: a stalled commit is held back before it is sent.

use super::cluster::{self, TestDatabase};
use crate::fixture::point_of;
use async_trait::async_trait;
use secrecy::SecretString;
use sqlx::Executor as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use sutler_journal::conformance::{Candidate, Cut, StalledCommit};
use sutler_journal::{Commit, CommitError, Store};
use sutler_servers::{MySqlDialect, Proxy, Server};
use sutler_store_sql::MySqlStore;

/// Replaces the store's clock in this database.
const CLOCK: &str = "
    CREATE TABLE put_forward (micros BIGINT NOT NULL);
    INSERT INTO put_forward VALUES (0);
    CREATE OR REPLACE VIEW sutler_clock AS
        SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED) + micros AS micros
        FROM put_forward";

/// A store in its own database.
pub(crate) struct MySql {
    pub(crate) proxy: Proxy,
    pub(crate) place: tokio::sync::Mutex<TestDatabase>,
    pub(crate) url: SecretString,
    store: Mutex<Arc<MySqlStore>>,
}

impl MySql {
    /// `None`, after a message, if there is no server.
    pub(crate) async fn fresh() -> Option<Self> {
        Some(Self::on(cluster::shared()?).await)
    }

    pub(crate) async fn on(server: &Server) -> Self {
        let mut place = TestDatabase::on(server).await;
        let proxy = Proxy::to::<MySqlDialect>(server.address()).await;
        let url = cluster::url(server, &place.name, proxy.port());
        let store = open(&url).await;
        place
            .db
            .execute(sqlx::raw_sql(CLOCK))
            .await
            .expect("a clock");
        Self {
            proxy,
            place: tokio::sync::Mutex::new(place),
            url,
            store: Mutex::new(store),
        }
    }

    pub(crate) fn current(&self) -> Arc<MySqlStore> {
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&store)
    }
}

pub(crate) async fn open(url: &SecretString) -> Arc<MySqlStore> {
    Arc::new(MySqlStore::open(url).await.expect("a store"))
}

#[async_trait]
impl Candidate for MySql {
    async fn store(&self) -> Arc<dyn Store> {
        self.current()
    }

    async fn pass(&self, time: Duration) {
        let micros = i64::try_from(time.as_micros()).expect("a short time");
        let forward = sqlx::query("UPDATE put_forward SET micros = micros + ?").bind(micros);
        let mut place = self.place.lock().await;
        forward.execute(&mut place.db).await.expect("a clock");
    }

    async fn reopen(&self) -> Arc<dyn Store> {
        let store = open(&self.url).await;
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&store);
        store
    }

    async fn open_again(&self) -> Result<Arc<dyn Store>, String> {
        Ok(open(&self.url).await)
    }

    async fn cut(&self, cut: Cut) {
        self.proxy.cut(point_of(cut));
    }

    async fn stall(&self, commit: Commit) -> Box<dyn StalledCommit> {
        Box::new(HeldBack {
            store: self.current(),
            commit,
        })
    }

    async fn set_stalled(&self, stalled: bool) {
        self.proxy.set_stalled(stalled);
    }
}

/// A commit that is not sent yet.
struct HeldBack {
    store: Arc<MySqlStore>,
    commit: Commit,
}

#[async_trait]
impl StalledCommit for HeldBack {
    async fn finish(self: Box<Self>) -> Result<(), CommitError> {
        self.store.commit(&self.commit).await
    }
}

mod suite {
    use super::MySql;

    sutler_journal::store_conformance!(match MySql::fresh().await {
        Some(candidate) => candidate,
        None => return,
    });
}
