//! `sutler broker`: starts a broker from a configuration and serves it until it is stopped.
//!
//! The configuration is read by the library (`sutler::load`); `broker/` converts it into a broker.

mod access;
mod build;
mod bundles;
mod reload;

use super::CommandResult;
use crate::telemetry;
use clap::Args;
use reload::ReloadTask;
use std::path::PathBuf;
use std::sync::Arc;
use sutler::FlagValue;
use sutler_broker::BuildError;
use tokio::net::TcpListener;

/// Serve a catalog as a service broker.
#[derive(Args)]
pub(crate) struct BrokerArgs {
    #[command(flatten)]
    config: ConfigArgs,
}

/// The configuration: a file, and flags that override it.
#[derive(Args)]
pub(crate) struct ConfigArgs {
    /// The configuration: YAML, or an `application.yaml` of Spring Cloud Open Service Broker
    #[arg(long, value_name = "FILE", env = "SUTLER_CONFIG")]
    pub(crate) config: Option<PathBuf>,

    /// The catalog: YAML with `services:`, or an `application.yaml` of Spring Cloud Open Service Broker [default: a demo catalog]
    #[arg(long, value_name = "FILE")]
    catalog: Option<PathBuf>,

    /// A bundle, or a folder of bundles, to offer instead of a catalog
    #[arg(long, value_name = "DIR", conflicts_with = "catalog")]
    bundles: Option<PathBuf>,

    /// Address to listen on [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,

    /// The database; created if missing [default: sutler.db]
    #[arg(long, value_name = "FILE", conflicts_with = "in_memory")]
    db: Option<PathBuf>,

    /// The key file that seals the database; created if missing [default: the database's name with .key]
    #[arg(long, value_name = "FILE", conflicts_with = "in_memory")]
    key_file: Option<PathBuf>,

    /// Keep everything in memory; nothing is left when the process ends
    #[arg(long)]
    in_memory: bool,

    /// Serve without authentication; otherwise the configuration must have users, or BROKER_USERNAME and BROKER_PASSWORD must be set
    #[arg(long)]
    no_auth: bool,

    /// Answer 412 instead of 400 when X-Broker-API-Version is missing, as before OSB 2.16
    #[arg(long)]
    compat_missing_version: bool,

    /// Answer 410 at once when a finished delete is polled
    #[arg(long)]
    compat_deleted_gone: bool,

    /// Log level: error, warn, info, debug, trace, or several such as info,sutler_broker=debug [default: info]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,

    /// Format of the log on standard error: text or json [default: text]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,

    /// The file that audit lines are appended to; without it they are part of the log
    #[arg(long, value_name = "FILE")]
    audit_file: Option<PathBuf>,

    /// Serve metrics at /metrics without authentication
    #[arg(long)]
    public_metrics: bool,
}

impl ConfigArgs {
    /// The flags as values of the configuration.
    pub(crate) fn flags(&self) -> Vec<FlagValue> {
        let file = |path: &Option<PathBuf>| path.as_ref().map(|it| it.display().to_string());
        let word = |given: bool, word: &str| given.then(|| word.to_owned());
        let database = file(&self.db).map(|path| format!("sqlite:{path}"));
        let all = [
            ("--catalog", "catalog.file", file(&self.catalog)),
            ("--bundles", "bundles.folder", file(&self.bundles)),
            ("--listen", "listen", self.listen.clone()),
            ("--db", "store.url", database),
            ("--key-file", "store.key_file", file(&self.key_file)),
            ("--in-memory", "store.url", word(self.in_memory, "memory:")),
            ("--no-auth", "auth", word(self.no_auth, "none")),
            (
                "--compat-missing-version",
                "compat.missing_version",
                word(self.compat_missing_version, "412"),
            ),
            (
                "--compat-deleted-gone",
                "compat.deleted_poll",
                word(self.compat_deleted_gone, "gone"),
            ),
            ("--log-level", "log.level", self.log_level.clone()),
            ("--log-format", "log.format", self.log_format.clone()),
            ("--audit-file", "audit.file", file(&self.audit_file)),
            (
                "--public-metrics",
                "metrics.public",
                word(self.public_metrics, "true"),
            ),
        ];
        let given = all.into_iter();
        given
            .filter_map(|(name, path, value)| value.map(|value| FlagValue { name, path, value }))
            .collect()
    }
}

pub(crate) async fn run(args: BrokerArgs) -> CommandResult {
    let hang_ups = reload::hang_ups()?;
    let flags = args.config.flags();
    let file = args.config.config;
    let loaded = sutler::load(file.as_deref(), &flags)?;
    let telemetry = telemetry::start(&loaded.config.log, &loaded.config.audit)?;
    let telemetry = Arc::new(telemetry);
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    sutler_broker::raise_descriptor_limit();
    let address = loaded.config.listen.to_string();
    let listen = |error| BuildError::Listen(address.clone(), error);
    let listener = TcpListener::bind(&address).await.map_err(listen)?;
    let operators = access::operators(&loaded.config).map_err(|fault| fault.to_string())?;
    let mut bundles = bundles::open(&loaded.config)?;
    let broker = build::broker(&loaded, bundles.as_mut(), operators.clone()).await?;
    let broker = broker.metrics_page(telemetry.metrics_page());
    let running = broker.start().await?;
    if let Some(bundles) = &mut bundles {
        bundles.start_publishing(&running).await?;
    }
    if let Some(bundles) = bundles {
        tokio::spawn(bundles.run_background(running.clone()));
    }
    let reloads = ReloadTask {
        file,
        flags,
        running: running.clone(),
        operators,
        telemetry: telemetry.clone(),
        store: reload::store_now(&loaded),
        started: loaded,
    };
    tokio::spawn(reloads.at_every(hang_ups));
    running.serve_until_signalled(listener).await;
    telemetry.finish().await;
    Ok(())
}
