//! SIGHUP: reads the configuration again and applies all settings that a running broker can change.
//!
//! A configuration with faults changes no setting. Changes that need a restart are logged by path, at every reload until
//! the restart. The key file is read again in any case, from the path that was opened at the start.

use super::{access, build};
use crate::BoxError;
use crate::telemetry::Telemetry;
use secrecy::SecretString;
use std::path::PathBuf;
use std::sync::Arc;
use sutler::{FlagValue, ReloadInput, ResolveError, ResolvedConfig, restart_to_apply};
use sutler_broker::metrics::{self, ReloadKind, Success};
use sutler_broker::{Auth, BrokerHandle};
use sutler_journal::KeyRing;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Everything that a reload reads or replaces.
pub(super) struct ReloadTask {
    pub(super) file: Option<PathBuf>,
    pub(super) flags: Vec<FlagValue>,
    pub(super) running: BrokerHandle,
    /// Authentication of operators.
    pub(super) operators: Option<Auth>,
    pub(super) telemetry: Arc<Telemetry>,
    /// The configuration of the start: it decides what a reload can change.
    pub(super) started: ResolvedConfig,
    /// The URL of the server whose store is open.
    pub(super) store: Option<SecretString>,
}

/// Registers the handler of SIGHUP: the signal no longer ends the process, and none is lost.
pub(super) fn hang_ups() -> std::io::Result<Signal> {
    signal(SignalKind::hangup())
}

impl ReloadTask {
    /// Reloads at every SIGHUP, one after the other.
    pub(super) async fn at_every(self, mut hang_ups: Signal) {
        while hang_ups.recv().await.is_some() {
            self.reload().await;
        }
    }

    async fn reload(&self) {
        // First, and independent of the configuration: log rotation may have moved the file, and a new key must be
        // known before another replica seals with it.
        if let Err(error) = self.telemetry.reopen_audit() {
            tracing::error!(%error, "the audit file cannot be reopened; the old one stays in use");
        }
        let keys = self.replace_keys();
        let keys = record(ReloadKind::Keys, "keys of the store", keys);
        let loaded = sutler::load(self.file.as_deref(), &self.flags);
        metrics::reloaded(ReloadKind::Configuration, Success::from(&loaded));
        let loaded = match loaded {
            Ok(loaded) => loaded,
            Err(faults) => {
                for fault in &faults.0 {
                    tracing::error!("{fault}");
                }
                let faults = faults.0.len();
                tracing::error!(
                    faults,
                    "not reloaded: the configuration has faults; no setting was changed"
                );
                return;
            }
        };
        for warning in &loaded.warnings {
            tracing::warn!("{warning}");
        }
        let store = store_now(&loaded);
        let (old, new) = (&self.started.config, &loaded.config);
        let held = |config, store| ReloadInput { config, store };
        let paths = restart_to_apply(&held(old, self.store.as_ref()), &held(new, store.as_ref()));
        if !paths.is_empty() {
            tracing::warn!("restart to apply: {}", paths.join(", "));
        }
        let whole = self.apply(&loaded).await;
        if whole && keys {
            tracing::info!("the configuration was reloaded");
        }
    }

    /// Applies each part separately; one that fails stays as it was. Returns whether all succeeded.
    async fn apply(&self, loaded: &ResolvedConfig) -> bool {
        let users = self.replace_users(loaded);
        let catalog = match &self.started.config.bundles {
            // Their folders are watched anyway.
            Some(_) => Ok(()),
            None => {
                let catalog = loaded.catalog.catalog.clone();
                self.running.replace_catalog(catalog).await
            }
        };
        let tls = match build::tls(&loaded.config) {
            Some(tls) if self.started.config.tls.is_some() => self.running.replace_tls(tls),
            // Switching TLS on or off needs a restart, which has been logged.
            Some(_) | None => Ok(()),
        };
        let level = self.telemetry.set_level(&loaded.config.log.level);
        record(ReloadKind::Users, "users", users)
            & record(ReloadKind::Catalog, "catalog", catalog)
            & record(ReloadKind::Tls, "tls", tls)
            & record(ReloadKind::LogLevel, "log level", level)
    }

    /// Reads the key file that is in use again; another path needs a restart, which is logged.
    fn replace_keys(&self) -> Result<(), BoxError> {
        let Some(path) = self.started.config.store.key_path()? else {
            return Ok(());
        };
        let ring = KeyRing::existing_file(path)?;
        self.running.replace_keys(&ring)?;
        let (seals, keys) = (ring.current(), ring.ids().len());
        tracing::info!(%seals, keys, "the keys of the store were read again");
        Ok(())
    }

    fn replace_users(&self, loaded: &ResolvedConfig) -> Result<(), ResolveError> {
        for (prefix, auth) in access::of(&loaded.config)? {
            // A new platform needs a restart, which has been logged.
            if let Some(current) = self.running.auth(&prefix) {
                current.replace(&auth);
            }
        }
        let operators = access::operators(&loaded.config)?;
        if let (Some(current), Some(operators)) = (&self.operators, operators) {
            current.replace(&operators);
        }
        Ok(())
    }
}

/// The current URL of the store's server.
pub(super) fn store_now(loaded: &ResolvedConfig) -> Option<SecretString> {
    let store = &loaded.config.store;
    store.server_url(&|name| std::env::var(name).ok())
}

fn record<E: std::fmt::Display>(what: ReloadKind, name: &str, result: Result<(), E>) -> bool {
    metrics::reloaded(what, Success::from(&result));
    match result {
        Ok(()) => true,
        Err(error) => {
            tracing::error!(%error, "{name}: not reloaded; the previous value stays in use");
            false
        }
    }
}
