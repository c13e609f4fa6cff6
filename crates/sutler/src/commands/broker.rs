//! `sutler broker`: a configuration, served.
//!
//! What is configured and where it comes from is the library's affair (`sutler::load`); `broker/`
//! turns it into a broker.

mod build;

use super::CommandResult;
use clap::Args;
use std::path::PathBuf;
use sutler::Flag;

/// Serve a catalog as a service broker.
#[derive(Args)]
pub(crate) struct BrokerArgs {
    #[command(flatten)]
    config: ConfigArgs,
}

/// The configuration: a file, and flags that win over it.
#[derive(Args)]
pub(crate) struct ConfigArgs {
    /// The configuration: YAML, or an `application.yaml` of Spring Cloud Open Service Broker
    #[arg(long, value_name = "FILE", env = "SUTLER_CONFIG")]
    pub(crate) config: Option<PathBuf>,

    /// The catalog: YAML with `services:`, or an `application.yaml` of Spring Cloud Open Service Broker [default: a demo catalog]
    #[arg(long, value_name = "FILE")]
    catalog: Option<PathBuf>,

    /// Where to listen [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,

    /// The database; made if it is not there [default: sutler.db]
    #[arg(long, value_name = "FILE", conflicts_with = "in_memory")]
    db: Option<PathBuf>,

    /// The keys that seal the database; made if they are not there [default: the database's name with .key]
    #[arg(long, value_name = "FILE", conflicts_with = "in_memory")]
    key_file: Option<PathBuf>,

    /// Keep everything in memory and forget it at the end
    #[arg(long)]
    in_memory: bool,

    /// Serve everybody; otherwise the configuration must name users, or BROKER_USERNAME and BROKER_PASSWORD be set
    #[arg(long)]
    no_auth: bool,

    /// Answer 412 instead of 400 when X-Broker-API-Version is missing, as before OSB 2.16
    #[arg(long)]
    compat_missing_version: bool,

    /// Answer 410 at once when a finished delete is polled
    #[arg(long)]
    compat_deleted_gone: bool,
}

impl ConfigArgs {
    /// The flags as values of the configuration.
    pub(crate) fn flags(&self) -> Vec<Flag> {
        let file = |path: &Option<PathBuf>| path.as_ref().map(|it| it.display().to_string());
        let word = |given: bool, word: &str| given.then(|| word.to_owned());
        let database = file(&self.db).map(|path| format!("sqlite:{path}"));
        let all = [
            ("--catalog", "catalog.file", file(&self.catalog)),
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
        ];
        let given = all.into_iter();
        given
            .filter_map(|(name, path, value)| value.map(|value| Flag { name, path, value }))
            .collect()
    }
}

pub(crate) async fn run(args: BrokerArgs) -> CommandResult {
    let flags = args.config.flags();
    let loaded = sutler::load(args.config.config.as_deref(), &flags)?;
    build::log(&loaded.config.log)?;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    let listen = loaded.config.listen.to_string();
    build::broker(&loaded).await?.serve(&listen).await?;
    Ok(())
}
