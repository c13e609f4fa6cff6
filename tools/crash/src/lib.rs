//! Kills a broker with SIGKILL, fills its disk, fails its syncs, and checks that nothing it
//! acknowledged is lost and nothing it recorded is done twice. The same for replicas over a server,
//! which are also paused and isolated, is in `chaos.rs`; the rest is about one process on one file.
//!
//! Two halves, in two processes. The *victim* (`victim.rs`) is a small broker over a SQLite store that logs every
//! effect and every memo. The rest is the platform: `process.rs` starts and kills the victim, `platform.rs` sends
//! requests and remembers acknowledgements, `effects.rs` and `audit.rs` check the logs and the store afterwards,
//! `random_kills.rs` and `kill_points.rs` decide when to kill. `trace.rs` reads system-call traces. `platform_kills.rs`
//! is about the other side: it kills `sutler platform`, whose broker is a `recording_broker.rs`. For a long run: `cargo
//! run -p sutler-crash -- --kills 5000`.

mod audit;
pub mod chaos;
mod effects;
mod expected_state;
mod http_client;
mod kill_points;
mod platform;
pub mod platform_kills;
mod process;
mod random_kills;
pub mod recording_broker;
mod trace;
pub mod victim;
mod violation;

pub use audit::{AuditReport, audit};
pub use effects::{EffectsReport, check_effects};
pub use expected_state::ExpectedState;
pub use http_client::{HttpClient, HttpResponse, Lost};
pub use kill_points::{KillPointsReport, kill_at_every_point, live_through};
pub use platform::{
    PLAN, Platform, PlatformAction, RequestMode, SCRIPT, SERVICE, Target, TargetReceiver,
    provision_body,
};
pub use process::{Launch, VictimProcess};
pub use random_kills::{RandomKills, RandomKillsReport, kill_at_random};
pub use trace::{SentAnswer, TRACER, TraceReport, ends_with_kill_of, read_trace};
pub use violation::{CheckResult, Violation};
