//! `sutler broker`: a catalog file, served.

use super::CommandResult;
use crate::demo::Demo;
use clap::Args;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;
use sutler_broker::{Broker, CatalogFile, DeletedPoll, MissingVersion};
use sutler_journal::KeyRing;
use sutler_store_sqlite::SqliteStore;
use tracing_subscriber::EnvFilter;

/// Serve a catalog file as a service broker.
#[derive(Args)]
pub(crate) struct BrokerArgs {
    /// The catalog: YAML with `services:`, or an `application.yaml` of Spring Cloud Open Service Broker [default: a demo catalog]
    #[arg(long, value_name = "FILE")]
    catalog: Option<PathBuf>,

    /// Where to listen
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8080",
        env = "SUTLER_LISTEN"
    )]
    listen: String,

    /// The database; made if it is not there
    #[arg(
        long,
        value_name = "FILE",
        default_value = "sutler.db",
        conflicts_with = "in_memory"
    )]
    db: PathBuf,

    /// The keys that seal the database; made if they are not there [default: the database's name with .key]
    #[arg(long, value_name = "FILE", conflicts_with = "in_memory")]
    key_file: Option<PathBuf>,

    /// Keep everything in memory and forget it at the end
    #[arg(long)]
    in_memory: bool,

    /// Serve everybody; otherwise BROKER_USERNAME and BROKER_PASSWORD must be set
    #[arg(long)]
    no_auth: bool,

    /// Answer 412 instead of 400 when X-Broker-API-Version is missing, as before OSB 2.16
    #[arg(long)]
    compat_missing_version: bool,

    /// Answer 410 at once when a finished delete is polled
    #[arg(long)]
    compat_deleted_gone: bool,
}

pub(crate) async fn run(args: BrokerArgs) -> CommandResult {
    let filter = EnvFilter::try_from_env("SUTLER_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // A log in a file is read by programs too.
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    let file = match &args.catalog {
        Some(path) => CatalogFile::read(path)?,
        None => CatalogFile::parse(include_str!("../demo-catalog.yaml"), None)?,
    };
    for warning in &file.warnings {
        tracing::warn!("{warning}");
    }
    let offerings: Vec<String> = file
        .catalog
        .services()
        .iter()
        .map(|it| it.id.as_str().to_owned())
        .collect();
    let mut broker = Broker::new(file).settings(|settings| {
        if args.compat_missing_version {
            settings.missing_version = MissingVersion::PreconditionFailed;
        }
        if args.compat_deleted_gone {
            settings.deleted_poll = DeletedPoll::Gone;
        }
    });
    for id in offerings {
        broker = broker.untyped_service(&id, Arc::new(Demo));
    }
    let broker = if args.no_auth {
        broker.without_auth()
    } else {
        broker.auth_from_env()?
    };
    let broker = if args.in_memory {
        broker.in_memory()
    } else {
        let keys = args
            .key_file
            .unwrap_or_else(|| args.db.with_extension("key"));
        broker.store(SqliteStore::open(&args.db).await?, KeyRing::file(keys)?)
    };
    broker.serve(&args.listen).await?;
    Ok(())
}
