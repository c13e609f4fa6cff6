//! SIGHUP: the configuration is read again, and what a running broker can take over holds at once.
//!
//! A configuration with faults changes nothing. What changed and cannot be taken over is named.

use super::{access, build};
use crate::telemetry::Telemetry;
use secrecy::SecretString;
use std::path::PathBuf;
use std::sync::Arc;
use sutler::{FlagValue, ReloadInput, ResolveError, ResolvedConfig, restart_to_apply};
use sutler_broker::measure::{self, Reloaded, Success};
use sutler_broker::{Auth, Running};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a reload needs.
pub(super) struct ReloadTask {
    pub(super) file: Option<PathBuf>,
    pub(super) flags: Vec<FlagValue>,
    pub(super) running: Running,
    /// Who may use the operators' API.
    pub(super) operators: Option<Auth>,
    pub(super) telemetry: Arc<Telemetry>,
    /// What holds now.
    pub(super) current: ResolvedConfig,
    /// The URL of the server whose store is open.
    pub(super) store: Option<SecretString>,
}

/// From now on SIGHUP does not end the process, and those that come are not lost.
pub(super) fn hang_ups() -> std::io::Result<Signal> {
    signal(SignalKind::hangup())
}

impl ReloadTask {
    /// Reads everything again at every SIGHUP, one after the other.
    pub(super) async fn at_every(mut self, mut hang_ups: Signal) {
        while hang_ups.recv().await.is_some() {
            self.reload().await;
        }
    }

    async fn reload(&mut self) {
        // First, and whatever the configuration says: somebody may have moved the file away.
        if let Err(error) = self.telemetry.reopen_audit() {
            tracing::error!(%error, "the audit goes on in the file that was open");
        }
        let loaded = sutler::load(self.file.as_deref(), &self.flags);
        measure::reloaded(Reloaded::Configuration, Success::from(&loaded));
        let loaded = match loaded {
            Ok(loaded) => loaded,
            Err(faults) => {
                for fault in &faults.0 {
                    tracing::error!("{fault}");
                }
                let faults = faults.0.len();
                tracing::error!(
                    faults,
                    "not reloaded: the configuration has faults; all stays as it was"
                );
                return;
            }
        };
        for warning in &loaded.warnings {
            tracing::warn!("{warning}");
        }
        let store = store_now(&loaded);
        let (old, new) = (&self.current.config, &loaded.config);
        let held = |config, store| ReloadInput { config, store };
        let paths = restart_to_apply(&held(old, self.store.as_ref()), &held(new, store.as_ref()));
        if !paths.is_empty() {
            tracing::warn!("restart to apply: {}", paths.join(", "));
        }
        let whole = self.take_over(&loaded).await;
        if whole {
            tracing::info!("the configuration was reloaded");
        }
        self.current = loaded;
    }

    /// Each part by itself: one that cannot be taken over stays as it was.
    async fn take_over(&self, loaded: &ResolvedConfig) -> bool {
        let users = self.replace_users(loaded);
        let catalog = match &self.current.config.bundles {
            // Their folders are looked at all the time.
            Some(_) => Ok(()),
            None => {
                let catalog = loaded.catalog.catalog.clone();
                self.running.replace_catalog(catalog).await
            }
        };
        let tls = match build::tls(&loaded.config) {
            Some(tls) if self.current.config.tls.is_some() => self.running.replace_tls(tls),
            // Switching it on or off needs a restart, which has been said.
            Some(_) | None => Ok(()),
        };
        let level = self.telemetry.set_level(&loaded.config.log.level);
        told(Reloaded::Users, "users", users)
            & told(Reloaded::Catalog, "catalog", catalog)
            & told(Reloaded::Tls, "tls", tls)
            & told(Reloaded::LogLevel, "log level", level)
    }

    fn replace_users(&self, loaded: &ResolvedConfig) -> Result<(), ResolveError> {
        for (prefix, auth) in access::of(&loaded.config)? {
            // A platform that was not there at the start needs a restart, which has been said.
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

/// The URL of the store's server, as the configuration and what it points to say now.
pub(super) fn store_now(loaded: &ResolvedConfig) -> Option<SecretString> {
    let store = &loaded.config.store;
    store.server_url(&|name| std::env::var(name).ok())
}

fn told<E: std::fmt::Display>(what: Reloaded, name: &str, result: Result<(), E>) -> bool {
    measure::reloaded(what, Success::from(&result));
    match result {
        Ok(()) => true,
        Err(error) => {
            tracing::error!(%error, "{name}: not reloaded; what was so before goes on");
            false
        }
    }
}
