//! Kills a broker with SIGKILL, fills its disk, fails its syncs, and checks that nothing it
//! acknowledged is lost and nothing it wrote down is done twice. The same for replicas over a server,
//! which are also paused and cut off, is in `chaos.rs`; what follows is about one process on one file.
//!
//! Two halves, in two processes. The *victim* (`victim.rs`) is a small broker over a SQLite store that
//! logs every effect and every memo. The rest plays the platform: `process.rs` starts and kills the
//! victim, `platform.rs` sends requests and remembers what was acknowledged, `effects.rs` and
//! `audit.rs` judge the logs and the store afterwards, `rounds.rs` and `points.rs` say when to kill.
//! `trace.rs` reads system-call traces. Run it long with `cargo run -p sutler-crash -- --kills 5000`.

mod audit;
pub mod chaos;
mod dice;
mod effects;
mod knowledge;
mod platform;
mod points;
mod process;
mod rounds;
mod trace;
pub mod victim;
mod violation;
mod wire;

pub use audit::{Audited, audit};
pub use dice::Dice;
pub use effects::{EffectsReport, check_effects};
pub use knowledge::Known;
pub use platform::{Act, Home, Pace, Platform, SCRIPT, Target};
pub use points::{PointsReport, kill_at_every_point, live_through};
pub use process::{Launch, VictimProcess};
pub use rounds::{Rounds, RoundsReport, kill_at_random};
pub use trace::{Left, TRACER, TraceReport, ends_with_kill_of, read_trace};
pub use violation::{Checked, Violation};
pub use wire::{Answer, Lost, Wire};
