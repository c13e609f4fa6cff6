//! The store in PostgreSQL passes the conformance suite of stores.
//!
//! Each test has its own schema on the shared server, and a proxy that can cut connections. The
//! clock is the server's, moved forward in the schema where the suite lets time pass.

use super::cluster::{self, TestDatabase};
use crate::fixture::point_of;
use async_trait::async_trait;
use secrecy::SecretString;
use sqlx::Executor as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use sutler_journal::conformance::{Candidate, Cut, StalledCommit};
use sutler_journal::{Commit, CommitError, Store};
use sutler_servers::{PostgresDialect, Proxy, Server};
use sutler_store_sql::PostgresStore;
use sutler_store_sql::faults::OpenCommit;

/// Replaces the store's clock in this schema.
const CLOCK: &str = "
    CREATE TABLE IF NOT EXISTS put_forward (micros bigint NOT NULL);
    INSERT INTO put_forward VALUES (0);
    CREATE OR REPLACE FUNCTION sutler_now() RETURNS bigint LANGUAGE sql VOLATILE AS $$
        SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + micros FROM put_forward
    $$";

/// A store in its own schema.
pub(crate) struct Postgres {
    pub(crate) proxy: Proxy,
    pub(crate) place: tokio::sync::Mutex<TestDatabase>,
    pub(crate) url: SecretString,
    direct: SecretString,
    store: Mutex<Arc<PostgresStore>>,
}

impl Postgres {
    /// `None`, after a message, if there is no server.
    pub(crate) async fn fresh() -> Option<Self> {
        Some(Self::on(cluster::shared()?).await)
    }

    pub(crate) async fn on(server: &Server) -> Self {
        let mut place = TestDatabase::on(server).await;
        let proxy = Proxy::to::<PostgresDialect>(server.address()).await;
        let url = cluster::url(server, &place.schema, proxy.port());
        let direct = cluster::url(server, &place.schema, server.address().port());
        let store = open(&url).await;
        let schema = sqlx::AssertSqlSafe(format!("SET search_path TO {}", place.schema));
        place.db.execute(schema).await.expect("the schema");
        place
            .db
            .execute(sqlx::raw_sql(CLOCK))
            .await
            .expect("a clock");
        Self {
            proxy,
            place: tokio::sync::Mutex::new(place),
            url,
            direct,
            store: Mutex::new(store),
        }
    }

    pub(crate) fn current(&self) -> Arc<PostgresStore> {
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&store)
    }
}

pub(crate) async fn open(url: &SecretString) -> Arc<PostgresStore> {
    Arc::new(PostgresStore::open(url).await.expect("a store"))
}

#[async_trait]
impl Candidate for Postgres {
    async fn store(&self) -> Arc<dyn Store> {
        self.current()
    }

    async fn pass(&self, time: Duration) {
        let micros = i64::try_from(time.as_micros()).expect("a short time");
        let forward = sqlx::query("UPDATE put_forward SET micros = micros + $1").bind(micros);
        let mut place = self.place.lock().await;
        forward.execute(&mut place.db).await.expect("a clock");
    }

    async fn reopen(&self) -> Arc<dyn Store> {
        let store = open(&self.url).await;
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&store);
        store
    }

    async fn open_again(&self) -> Result<Arc<dyn Store>, String> {
        Ok(open(&self.direct).await)
    }

    async fn cut(&self, cut: Cut) {
        self.proxy.cut(point_of(cut));
    }

    async fn stall(&self, commit: Commit) -> Box<dyn StalledCommit> {
        Box::new(OpenTransaction(
            OpenCommit::begin(&self.direct, &commit).await,
        ))
    }

    async fn set_stalled(&self, stalled: bool) {
        self.proxy.set_stalled(stalled);
    }
}

/// An open transaction.
struct OpenTransaction(OpenCommit);

#[async_trait]
impl StalledCommit for OpenTransaction {
    async fn finish(self: Box<Self>) -> Result<(), CommitError> {
        self.0.finish().await;
        Ok(())
    }
}

mod suite {
    use super::Postgres;

    sutler_journal::store_conformance!(match Postgres::fresh().await {
        Some(candidate) => candidate,
        None => return,
    });
}
