//! The platform under measurement: a real one over SQLite, with its API, as `sutler platform` starts it.

use super::counted_store::{CountedStore, StoreCounters};
use crate::load::BoxError;
use crate::subject::{PASSWORD, USER};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use sutler_client::wire::EgressPolicy;
use sutler_journal::{KeyRing, MeteredStore, Store};
use sutler_osb::NonEmptyText;
use sutler_platform::api::{AccessSettings, ApiSettings, PlatformServer};
use sutler_platform::brokers::{ConnectBroker, HttpConnector};
use sutler_platform::platform::{Platform, PlatformParts, PlatformSettings};
use sutler_server::{Auth, BodyLimits, ServerSettings};
use sutler_store_sqlite::SqliteStore;
use tokio::net::TcpListener;

/// Changes and callers of one user, who sends all requests.
const AT_ONCE: usize = 4_096;

/// Starts a platform on the database in a directory.
pub(super) async fn start(
    dir: &Path,
    connector: Arc<dyn ConnectBroker>,
    counters: Arc<StoreCounters>,
) -> Result<Platform, BoxError> {
    let store = SqliteStore::open(dir.join("platform.db")).await?;
    let store = Arc::new(CountedStore::new(Arc::new(store), counters));
    let keys = KeyRing::file(dir.join("platform.key"))?;
    let parts = PlatformParts {
        store: Arc::new(MeteredStore::new(store as Arc<dyn Store>)),
        keys: Arc::new(keys),
        connector,
        settings: PlatformSettings::of_cluster(NonEmptyText::try_from("bench")?),
    };
    Ok(Platform::start(parts).await?)
}

/// Serves a platform on the database in a directory.
pub(crate) async fn serve(port: u16, dir: &Path) -> Result<(), BoxError> {
    sutler_server::raise_descriptor_limit();
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let counters = Arc::<StoreCounters>::default();
    let connector = Arc::new(HttpConnector::new(EgressPolicy::Anywhere));
    let platform = start(dir, connector, counters.clone()).await?;
    let mut server = ServerSettings::default();
    server.limits.rate_per_caller = None;
    server.limits.requests_per_caller = AT_ONCE;
    server.limits.changes_at_once = AT_ONCE;
    let settings = ApiSettings {
        auth: Auth::basic(USER, &PASSWORD.into())?,
        access: AccessSettings {
            operators: vec![USER.to_owned()],
            ..AccessSettings::default()
        },
        server,
        body: BodyLimits {
            bytes_max: 1024 * 1024,
            within: Duration::from_secs(30),
        },
        tls: None,
        metrics: Some(Arc::new(move || counters.page())),
        public_metrics: true,
    };
    let server = PlatformServer::new(platform, settings);
    server.serve(listener, std::future::pending()).await;
    Ok(())
}
