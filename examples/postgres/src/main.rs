//! Serves databases on a PostgreSQL server. The settings are in `README.md`, the service is in `service.rs`.

use postgres_broker::{PlanLimits, Postgres, Settings};
use std::io::IsTerminal as _;
use std::process::ExitCode;
use sutler_broker::prelude::*;
use sutler_store_sqlite::SqliteStore;
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> ExitCode {
    match serve().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("postgres-broker: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let filter = EnvFilter::try_from_env("RUST_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    let settings = Settings::read(|name| std::env::var(name).ok())?;
    let catalog = match &settings.catalog {
        Some(path) => CatalogFile::read(path)?,
        None => CatalogFile::parse(include_str!("../catalog.yaml"), None)?,
    };
    let service = Postgres::new(&settings, PlanLimits::of(&catalog)?);
    let keys = KeyRing::file(settings.db.with_extension("key"))?;
    let broker = Broker::new(catalog)
        .service("postgres", service)
        .store(SqliteStore::open(&settings.db).await?, keys);
    Ok(broker.auth_from_env()?.serve(&settings.listen).await?)
}
