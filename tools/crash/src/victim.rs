//! The victim: a small broker that is meant to be killed, alone over a SQLite file or as one of several
//! replicas over a server. `victim/platform_process.rs` is the other victim: a platform.
//!
//! It prints `ready ADDRESS` when it serves. Its hooks (`victim/service.rs`) log effects, its store
//! (`victim/instrumented_store.rs`) logs durable changes and kills the process at given moments. The log is
//! `victim/effect_log.rs`, or `victim/replica_log.rs` if replicas share it. It checks nothing: that is done
//! from outside.

mod effect_log;
mod event_log;
mod fast_clock;
mod flawed_connector;
mod instrumented_store;
mod platform_process;
mod replica;
mod replica_log;
mod service;

pub use effect_log::{EffectEntry, EffectLog, ParseError};
pub use fast_clock::FastClock;
pub use flawed_connector::PlatformFlaw;
pub use platform_process::{PASSWORD, PlatformArgs, run_platform};
pub use replica::{Flaw, ReplicaArgs, STORE_VARIABLE, open_store, run_replica};
pub use replica_log::{ReplicaBoot, ReplicaEvent, now_us};
pub use service::steps_of;

use clap::{Args, ValueEnum};
use event_log::EventLog;
use instrumented_store::{InstrumentedStore, KillTrigger};
use service::ClockworkService;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use sutler_broker::{Broker, CatalogFile};
use sutler_journal::KeyRing;
use sutler_store_sqlite::{SqliteSettings, SqliteStore};
use tokio::net::TcpListener;

/// Catalog.
const CATALOG: &str = include_str!("victim/catalog.yaml");

/// Arguments of the victim.
#[derive(Args, Clone, Debug)]
pub struct VictimArgs {
    /// File of the store; the key file is in the same directory.
    #[arg(long)]
    pub db: PathBuf,
    /// File of the effect log.
    #[arg(long)]
    pub ledger: PathBuf,
    /// Number of this start, for the log.
    #[arg(long, default_value_t = 1)]
    pub boot: u64,
    /// Duration of each step of a hook, in milliseconds.
    #[arg(long, default_value_t = 1)]
    pub step_ms: u64,
    /// Hooks of instances with the parameter `gated` begin when this file exists.
    #[arg(long)]
    pub gate: Option<PathBuf>,
    /// Die at the n-th moment of the kind that `--moment` names.
    #[arg(long)]
    pub kill_at: Option<u64>,
    /// At which moment of that call to die.
    #[arg(long, value_enum, default_value_t = Moment::Before)]
    pub moment: Moment,
    /// Answer before the sync, as `synchronous = NORMAL` does: wrong on purpose.
    #[arg(long)]
    pub answer_before_sync: bool,
}

/// A moment of a call to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Moment {
    /// Before the call reaches the store.
    Before,
    /// While the store is at it, from another thread.
    During,
    /// After the store has answered, before the caller gets the result.
    After,
    /// In the writer's thread: all is written, nothing is committed.
    Written,
    /// In the thread of the writer: COMMIT has returned, no caller has an answer.
    Synced,
}

impl Moment {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Before,
        Self::During,
        Self::After,
        Self::Written,
        Self::Synced,
    ];

    /// As a command-line argument.
    pub fn word(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::During => "during",
            Self::After => "after",
            Self::Written => "written",
            Self::Synced => "synced",
        }
    }
}

/// Runs the victim until it is killed, or until SIGTERM.
///
/// # Errors
/// It cannot start.
pub async fn run(args: VictimArgs) -> Result<(), Box<dyn std::error::Error>> {
    start_logging();
    let event_log = Arc::new(EventLog::Alone(EffectLog::open(&args.ledger, args.boot)?));
    let trigger = KillTrigger::new(args.kill_at, args.moment);
    let mut faults = trigger.faults();
    if args.answer_before_sync {
        faults = faults.answering_before_sync();
    }
    let settings = SqliteSettings {
        faults,
        ..SqliteSettings::default()
    };
    let store = SqliteStore::open_with(&args.db, settings).await?;
    let store = InstrumentedStore::new(Arc::new(store), trigger, event_log.clone());
    let clockwork = ClockworkService {
        event_log,
        step: Duration::from_millis(args.step_ms),
        large: 1,
        gate: args.gate,
    };
    let keys = KeyRing::file(args.db.with_extension("key"))?;
    let broker = recipe(clockwork)?.store(store, keys);
    serve(broker).await
}

fn start_logging() {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .init();
}

fn recipe(clockwork: ClockworkService) -> Result<Broker, Box<dyn std::error::Error>> {
    Ok(Broker::new(CatalogFile::parse(CATALOG, None)?)
        .service("clockwork", clockwork)
        .settings(|settings| settings.limits.rate_per_caller = None)
        .without_auth())
}

async fn serve(broker: Broker) -> Result<(), Box<dyn std::error::Error>> {
    let running = broker.start().await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let mut out = std::io::stdout();
    writeln!(out, "ready {}", listener.local_addr()?)?;
    out.flush()?;
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    running
        .serve(listener, async move {
            terminate.recv().await;
        })
        .await;
    Ok(())
}
