//! The victim as one of several replicas over a server.
//!
//! The store's URL is passed in the environment, as for `sutler broker`: no password in the list of
//! processes. A flaw can be enabled, to test whether the harness detects it.

use super::event_log::{EventLog, SharedEventLog};
use super::instrumented_store::{InstrumentedStore, KillTrigger};
use super::replica_log::ReplicaBoot;
use super::service::ClockworkService;
use super::{Moment, recipe, serve, start_logging};
use clap::{Args, ValueEnum};
use secrecy::{ExposeSecret as _, SecretString};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::{KeyRing, Store};
use sutler_store_etcd::EtcdStore;
use sutler_store_mongodb::{MongoSettings, MongoStore};
use sutler_store_sql::{MySqlStore, PostgresStore, SqlSettings};

/// Environment variable with the store's URL.
pub const STORE_VARIABLE: &str = "SUTLER_CRASH_STORE";

/// Arguments of a replica.
#[derive(Args, Clone, Debug)]
pub struct ReplicaArgs {
    /// The keys that all replicas share.
    #[arg(long)]
    pub keys: PathBuf,
    /// File of events, shared by all replicas.
    #[arg(long)]
    pub ledger: PathBuf,
    /// Number of the replica, for the log.
    #[arg(long)]
    pub replica: usize,
    /// Number of its start, for the log.
    #[arg(long)]
    pub boot: u64,
    /// Duration of each step of a hook, in milliseconds.
    #[arg(long)]
    pub step_ms: u64,
    /// Factor for steps of large instances.
    #[arg(long)]
    pub large: u32,
    /// Duration of a lease, in milliseconds.
    #[arg(long)]
    pub lease_ms: u64,
    /// Be wrong on purpose.
    #[arg(long, value_enum)]
    pub flaw: Option<Flaw>,
}

/// A way to be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Flaw {
    /// Commits are acknowledged when they were not made, now and then.
    AcknowledgeUnwritten,
    /// Claims are not looked at when something is written.
    IgnoreFence,
}

impl Flaw {
    /// As a command-line argument.
    pub fn word(self) -> &'static str {
        match self {
            Self::AcknowledgeUnwritten => "acknowledge-unwritten",
            Self::IgnoreFence => "ignore-fence",
        }
    }
}

/// Runs a replica until it is killed, or until SIGTERM.
///
/// # Errors
/// It cannot start.
pub async fn run_replica(args: ReplicaArgs) -> Result<(), Box<dyn std::error::Error>> {
    start_logging();
    let by = ReplicaBoot {
        replica: args.replica,
        boot: args.boot,
    };
    let event_log = Arc::new(EventLog::Shared(SharedEventLog::open(&args.ledger, by)?));
    let url = std::env::var(STORE_VARIABLE)
        .map_err(|_| format!("set {STORE_VARIABLE} to the URL of the store"))?;
    let store = open_store(&url.into()).await?;
    let trigger = KillTrigger::new(None, Moment::Before);
    let every_other = (by.replica as u64 + by.boot).is_multiple_of(2);
    let store = InstrumentedStore::new(store, trigger, event_log.clone())
        .with(args.flaw)
        .detached(every_other);
    let clockwork = ClockworkService {
        event_log,
        step: Duration::from_millis(args.step_ms),
        large: args.large,
        gate: None,
    };
    let lease = Duration::from_millis(args.lease_ms);
    let broker = recipe(clockwork)?
        .settings(|settings| settings.lease = lease)
        .store(store, KeyRing::file(args.keys)?);
    serve(broker).await
}

/// Opens a store by its URL, with shorter time limits than a broker: chaos runs are short.
///
/// # Errors
/// The server is unreachable, or the URL is invalid.
pub async fn open_store(url: &SecretString) -> Result<Arc<dyn Store>, Box<dyn std::error::Error>> {
    let settings = SqlSettings {
        connect_timeout: Duration::from_secs(1),
        wait_timeout: Duration::from_secs(1),
        statement_timeout: Duration::from_secs(1),
        lock_timeout: Duration::from_millis(700),
        answer_timeout: Duration::from_millis(1_500),
        ..SqlSettings::default()
    };
    let mongo = MongoSettings {
        connect_timeout: Duration::from_secs(1),
        select_timeout: Duration::from_secs(1),
        command_timeout: Duration::from_secs(1),
        answer_timeout: Duration::from_millis(1_500),
        ..MongoSettings::default()
    };
    let scheme = url.expose_secret().split(':').next().unwrap_or_default();
    Ok(match scheme {
        "postgres" => Arc::new(PostgresStore::open_with(url, settings).await?),
        "mysql" => Arc::new(MySqlStore::open_with(url, settings).await?),
        "etcd" => Arc::new(EtcdStore::open(url).await?),
        "mongodb" => Arc::new(MongoStore::open_with(url, mongo).await?),
        _ => return Err("the store's URL names no server that is known here".into()),
    })
}
