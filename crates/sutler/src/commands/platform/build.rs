//! From a resolved configuration to a running platform and its server. Checks nothing: the configuration is checked when
//! it is loaded.

use crate::BoxError;
use crate::commands::CommandResult;
use crate::stores;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use sutler::{PlatformConfig, ResolvedPlatformConfig};
use sutler_journal::{KeyRing, MemoryStore, MeteredStore, Store};
use sutler_osb::NonEmptyText;
use sutler_platform::api::{AccessSettings, ApiSettings, PlatformServer};
use sutler_platform::brokers::{BrokersSettings, HttpConnector};
use sutler_platform::platform::{Platform, PlatformParts, PlatformSettings};
use sutler_server::{BodyLimits, TlsAcceptor};

/// Starts the configured platform.
pub(super) async fn platform(config: &PlatformConfig) -> Result<Platform, BoxError> {
    let (store, keys): (Arc<dyn Store>, KeyRing) = match stores::open(&config.store).await? {
        Some(persistent) => (persistent.store, persistent.keys),
        None => (Arc::new(MemoryStore::new()), KeyRing::ephemeral()),
    };
    let id = NonEmptyText::try_from(config.id.as_str())?;
    let settings = PlatformSettings {
        lease: config.timeouts.lease.0,
        drain: config.drain.0,
        replica: BrokersSettings {
            replica_name: std::env::var("HOSTNAME").unwrap_or_else(|_| config.listen.to_string()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
        ..PlatformSettings::of_cluster(id)
    };
    let platform = Platform::start(PlatformParts {
        store: Arc::new(MeteredStore::new(store)),
        keys: Arc::new(keys),
        connector: Arc::new(HttpConnector::new(config.egress.policy())),
        settings,
    });
    Ok(platform.await?)
}

/// The server of the API.
pub(super) fn server(
    config: &PlatformConfig,
    platform: Platform,
    metrics: impl Fn() -> String + Send + Sync + 'static,
) -> Result<PlatformServer, BoxError> {
    let auth = config.auth(&|name| std::env::var(name).ok());
    let auth = auth.map_err(|fault| fault.to_string())?;
    let tls = config.tls.as_ref().and_then(|it| it.resolve());
    let tls = tls.map(TlsAcceptor::new).transpose()?;
    let settings = ApiSettings {
        auth,
        access: AccessSettings {
            operators: config.operators.clone(),
            abandon: config.abandon.clone(),
            credentials: config.credentials.clone(),
            impersonators: config.impersonators.clone(),
        },
        server: config.server(),
        body: BodyLimits {
            bytes_max: config.limits.body.0,
            within: config.timeouts.body.0,
        },
        tls: tls.map(Arc::new),
        metrics: Some(Arc::new(metrics)),
        public_metrics: config.metrics.public,
    };
    Ok(PlatformServer::new(platform, settings))
}

/// Prints what there is to say about a configuration without faults.
pub(super) fn print_check(loaded: &ResolvedPlatformConfig, file: Option<&Path>) -> CommandResult {
    let mut text: String = loaded
        .warnings
        .iter()
        .map(|warning| format!("warning: {warning}\n"))
        .collect();
    let name = file.map_or_else(
        || "the configuration".to_owned(),
        |it| it.display().to_string(),
    );
    text.push_str(&format!("{name} has no fault\n"));
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}
