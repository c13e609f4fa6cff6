//! `sutler platform`: starts a platform from a configuration and serves its API until it is stopped.
//!
//! The configuration is read by the library (`sutler::load_platform`); `platform/build.rs` converts it into a platform.

mod build;

use super::CommandResult;
use crate::telemetry;
use clap::Args;
use std::path::PathBuf;
use sutler::FlagValue;
use tokio::net::TcpListener;

/// Serve the API of a platform: instances and bindings of other brokers.
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct PlatformArgs {
    /// The configuration, in YAML; it must say who may come in
    #[arg(long, value_name = "FILE", env = "SUTLER_CONFIG")]
    config: Option<PathBuf>,

    /// Address to listen on [default: 127.0.0.1:8090]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,

    /// The database; created if missing [default: platform.db]
    #[arg(long, value_name = "FILE", conflicts_with = "in_memory")]
    db: Option<PathBuf>,

    /// The key file that seals the database; created if missing [default: the database's name with .key]
    #[arg(long, value_name = "FILE", conflicts_with = "in_memory")]
    key_file: Option<PathBuf>,

    /// Keep everything in memory; nothing is left when the process ends
    #[arg(long)]
    in_memory: bool,

    /// Log level: error, warn, info, debug, trace, or several such as info,sutler_platform=debug [default: info]
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

    /// Check the configuration, print every fault and every warning, and end
    #[arg(long)]
    check: bool,
}

/// What a first configuration looks like.
const EXAMPLE: &str = "\
A first configuration, platform.yaml:
  users:
  - name: ada
    password: ${file:ada.password}
  # Who may manage brokers, namespaces and orphans; who may give up what a broker may still have;
  # and who may read credentials.
  operators: [ada]
  abandon: [ada]
  credentials: [ada]
  # Brokers may be in the public internet, and in these networks.
  egress:
    networks: [10.0.0.0/8]

Every key can be set by a variable, e.g. SUTLER_LOG__LEVEL for log.level.
SIGTERM stops the platform: requests are answered, and what is in progress goes on after the next
start or with another replica.";

impl PlatformArgs {
    /// The flags as values of the configuration.
    fn flags(&self) -> Vec<FlagValue> {
        let file = |path: &Option<PathBuf>| path.as_ref().map(|it| it.display().to_string());
        let word = |given: bool, word: &str| given.then(|| word.to_owned());
        let database = file(&self.db).map(|path| format!("sqlite:{path}"));
        let all = [
            ("--listen", "listen", self.listen.clone()),
            ("--db", "store.url", database),
            ("--key-file", "store.key_file", file(&self.key_file)),
            ("--in-memory", "store.url", word(self.in_memory, "memory:")),
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

pub(crate) async fn run(args: PlatformArgs) -> CommandResult {
    let loaded = sutler::load_platform(args.config.as_deref(), &args.flags())?;
    if args.check {
        return build::print_check(&loaded, args.config.as_deref());
    }
    let telemetry = telemetry::start(&loaded.config.log, &loaded.config.audit)?;
    sutler_platform::metrics::describe();
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    sutler_server::raise_descriptor_limit();
    let address = loaded.config.listen.to_string();
    let listener = TcpListener::bind(&address).await.map_err(|error| {
        format!("{address} cannot be listened on: {error}; choose another address with --listen")
    })?;
    let platform = build::platform(&loaded.config).await?;
    let metrics = telemetry.metrics_page();
    let server = build::server(&loaded.config, platform, metrics)?;
    server.serve_until_signalled(listener).await;
    telemetry.finish().await;
    Ok(())
}
