//! The victim as a platform: the API of `sutler platform` over a SQLite file or a shared server, in a process that is
//! killed at a commit.
//!
//! It prints `ready ADDRESS` when it serves. On standard input it takes orders: `arm N MOMENT` (die at the n-th commit
//! from now on) and `count` (print the number of commits so far), and it ends with that input, unless its store is a
//! server. It checks nothing.

use super::event_log::EventLog;
use super::fast_clock::FastClock;
use super::flawed_connector::{FlawedConnector, PlatformFlaw};
use super::instrumented_store::{InstrumentedStore, KillTrigger};
use super::{Flaw, Moment, STORE_VARIABLE, open_store, start_logging};
use clap::{Args, ValueEnum as _};
use std::io::{BufRead as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use sutler_client::wire::EgressPolicy;
use sutler_journal::{Clock as _, KeyRing, Store};
use sutler_platform::api::{AccessSettings, ApiSettings, PlatformServer};
use sutler_platform::brokers::{BrokersSettings, ConnectBroker, HttpConnector};
use sutler_platform::platform::{Platform, PlatformParts, PlatformSettings};
use sutler_server::{Auth, BodyLimits, Limits, ServerSettings, Users};
use sutler_store_sqlite::{SqliteSettings, SqliteStore};
use tokio::net::TcpListener;

/// Password of every user.
pub const PASSWORD: &str = "hush";
/// All users. The first one is the operator, the last one may abandon.
pub(crate) const USERS: [&str; 7] = ["ada", "anna", "bert", "carla", "dora", "rita", "olga"];
/// Largest body of a request, in bytes.
const BODY_BYTES_MAX: usize = 256 * 1024;
/// How often the clock of a process follows that of a fast store.
const FOLLOW_EVERY: Duration = Duration::from_millis(5);

/// Arguments of the platform.
#[derive(Args, Clone, Debug)]
pub struct PlatformArgs {
    /// File of the store; without it, the store is at the URL in the environment.
    #[arg(long)]
    pub db: Option<PathBuf>,
    /// File of the keys.
    #[arg(long)]
    pub keys: PathBuf,
    /// Name of the process.
    #[arg(long, default_value = "victim")]
    pub name: String,
    /// Die at the n-th commit.
    #[arg(long)]
    pub kill_at: Option<u64>,
    /// At which moment of that commit to die.
    #[arg(long, value_enum, default_value_t = Moment::Before)]
    pub moment: Moment,
    /// How many times as fast the clock of the file runs.
    #[arg(long, default_value_t = 1)]
    pub speed: u32,
    /// The machine's time from which it runs fast, in microseconds since 1970.
    #[arg(long, default_value_t = 0)]
    pub clock_from: u64,
    /// Duration of a lease, in milliseconds.
    #[arg(long, default_value_t = 30_000)]
    pub lease_ms: u64,
    /// How often operations are looked for, in milliseconds.
    #[arg(long, default_value_t = 1_000)]
    pub look_every_ms: u64,
    /// Be wrong on purpose.
    #[arg(long, value_enum)]
    pub flaw: Option<PlatformFlaw>,
}

/// Runs the platform until it is killed, until SIGTERM, or until the end of its input.
///
/// # Errors
/// It cannot start.
pub async fn run_platform(args: PlatformArgs) -> Result<(), Box<dyn std::error::Error>> {
    start_logging();
    let trigger = KillTrigger::at_commit(args.kill_at, args.moment);
    let clock = FastClock {
        from_us: args.clock_from,
        speed: args.speed,
    };
    let flaw = args.flaw;
    let forgets = flaw == Some(PlatformFlaw::AcknowledgeUnwritten);
    let store = InstrumentedStore::new(
        inner_store(&args, clock).await?,
        trigger.clone(),
        Arc::new(EventLog::Nothing),
    )
    .with(forgets.then_some(Flaw::AcknowledgeUnwritten))
    .with_late_write_ahead(flaw == Some(PlatformFlaw::LateWriteAhead))
    .lease_factor(args.speed);
    let platform = Platform::start(PlatformParts {
        store: Arc::new(store),
        keys: Arc::new(KeyRing::file(&args.keys)?),
        connector: connector(&args),
        settings: settings(&args)?,
    })
    .await?;
    if args.speed > 1 {
        let records = platform.records().clone();
        tokio::spawn(async move {
            loop {
                records.documents.clock.set(clock.now());
                tokio::time::sleep(FOLLOW_EVERY).await;
            }
        });
    }
    let server = PlatformServer::new(platform, api_settings()?);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    print_line(&format!("ready {}", listener.local_addr()?))?;
    if args.db.is_some() {
        std::thread::spawn(move || take_orders(&trigger));
    }
    server.serve_until_signalled(listener).await;
    Ok(())
}

async fn inner_store(
    args: &PlatformArgs,
    clock: FastClock,
) -> Result<Arc<dyn Store>, Box<dyn std::error::Error>> {
    let Some(db) = &args.db else {
        let url = std::env::var(STORE_VARIABLE)
            .map_err(|_| format!("set {STORE_VARIABLE} to the URL of the store"))?;
        return open_store(&url.into()).await;
    };
    let mut settings = SqliteSettings::default();
    if args.speed > 1 {
        settings.clock = Arc::new(clock);
    }
    Ok(Arc::new(SqliteStore::open_with(db, settings).await?))
}

fn connector(args: &PlatformArgs) -> Arc<dyn ConnectBroker> {
    Arc::new(FlawedConnector {
        inner: Arc::new(HttpConnector::new(EgressPolicy::Anywhere)),
        process: args.name.clone(),
        flaw: args.flaw,
    })
}

fn settings(args: &PlatformArgs) -> Result<PlatformSettings, Box<dyn std::error::Error>> {
    Ok(PlatformSettings {
        lease: Duration::from_millis(args.lease_ms),
        look_every: Duration::from_millis(args.look_every_ms),
        drain: Duration::from_secs(1),
        replica: BrokersSettings {
            replica_name: args.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
        ..PlatformSettings::of_cluster("crash-test".to_owned().try_into()?)
    })
}

fn api_settings() -> Result<ApiSettings, Box<dyn std::error::Error>> {
    let mut users = Users::new();
    for name in USERS {
        users = users.with_password(name, &PASSWORD.into())?;
    }
    let only = |name: &str| vec![name.to_owned()];
    Ok(ApiSettings {
        auth: Auth::users(users)?,
        access: AccessSettings {
            operators: only("ada"),
            abandon: only("olga"),
            credentials: only("ada"),
            impersonators: Vec::new(),
        },
        server: ServerSettings {
            drain: Duration::from_secs(2),
            limits: Limits {
                rate_per_caller: None,
                ..Limits::default()
            },
            ..ServerSettings::default()
        },
        body: BodyLimits {
            bytes_max: BODY_BYTES_MAX,
            within: Duration::from_secs(10),
        },
        tls: None,
        metrics: None,
        public_metrics: false,
    })
}

fn print_line(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{line}")?;
    out.flush()
}

fn take_orders(trigger: &KillTrigger) {
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["arm", number, moment] => {
                let moment = Moment::from_str(moment, true).ok();
                if let Some((number, moment)) = number.parse().ok().zip(moment) {
                    trigger.arm(number, moment);
                    let _ = print_line("armed");
                }
            }
            ["count"] => {
                let _ = print_line(&format!("count {}", trigger.count()));
            }
            _ => {}
        }
    }
    // The harness is gone.
    std::process::exit(1);
}
