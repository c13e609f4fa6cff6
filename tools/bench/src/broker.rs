//! The broker under measurement: a real one, with hooks that do nothing.

use crate::load::BoxError;
use crate::subject::{PASSWORD, USER};
use async_trait::async_trait;
use bytes::Bytes;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use sutler_broker::{
    AuthorState, Broker, BrokerHandle, CatalogFile, Cx, Provisioned, Result, UntypedService,
};
use sutler_journal::KeyRing;
use sutler_osb::Parameters;
use sutler_store_sqlite::SqliteStore;
use tokio::net::TcpListener;

/// The offering's id.
pub(crate) const SERVICE: &str = "6a1f8a1e-5d3f-4b1c-9c5e-0d1f1f6f7a01";
/// The plan's id.
pub(crate) const PLAN: &str = "6a1f8a1e-5d3f-4b1c-9c5e-0d1f1f6f7a02";

const CATALOG: &str = include_str!("../catalog.yaml");

/// The serialized catalog.
pub(crate) static CATALOG_BYTES: LazyLock<Bytes> = LazyLock::new(|| {
    let file = CatalogFile::parse(CATALOG, None).expect("the bench's catalog is valid");
    serde_json::to_vec(&file.catalog)
        .expect("serialises")
        .into()
});

pub(crate) fn catalog_bytes() -> Bytes {
    CATALOG_BYTES.clone()
}

/// Whether a provision is synchronous.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ResponseMode {
    AtOnce,
    Never,
}

struct TrivialService(ResponseMode);

#[async_trait]
impl UntypedService for TrivialService {
    async fn provision(&self, _cx: &Cx, _: Parameters) -> Result<Provisioned<AuthorState>> {
        if let ResponseMode::Never = self.0 {
            std::future::pending::<()>().await;
        }
        Ok(Provisioned::new(AuthorState(serde_json::json!({}))))
    }

    async fn deprovision(&self, _cx: &Cx, _state: Option<AuthorState>) -> Result<()> {
        Ok(())
    }
}

/// A broker on the database in a directory.
pub(crate) async fn start(
    dir: &Path,
    pace: ResponseMode,
) -> std::result::Result<BrokerHandle, BoxError> {
    let store = SqliteStore::open(dir.join("broker.db")).await?;
    let keys = KeyRing::file(dir.join("broker.key"))?;
    let broker = Broker::new(CatalogFile::parse(CATALOG, None)?)
        .untyped_service(SERVICE, Arc::new(TrivialService(pace)))
        .store(store, keys)
        // One user sends all requests.
        .settings(|settings| {
            settings.limits.rate_per_caller = None;
            settings.limits.requests_per_caller = 4_096;
            settings.limits.changes_at_once = 4_096;
        })
        .basic_auth(USER, PASSWORD);
    Ok(broker.start().await?)
}

pub(crate) async fn serve(
    port: u16,
    dir: &Path,
    pace: ResponseMode,
) -> std::result::Result<(), BoxError> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let running = start(dir, pace).await?;
    running.serve(listener, std::future::pending()).await;
    Ok(())
}
