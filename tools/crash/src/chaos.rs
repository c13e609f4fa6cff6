//! Several replicas over one server, under load, while replicas are killed, paused and isolated and the
//! server is restarted; and checks of the results.
//!
//! `run.rs` is one round from start to end: it starts replicas (`replica.rs`), each with its own link
//! to the server (`cuttable_link.rs`), runs clients (`client.rs`) and injects faults (`fault_injector.rs`), and
//! reads the final state (`final_state.rs`).
//! Pure parts: `fault_plan.rs` plans the faults; `history.rs` records the responses to clients;
//! `sequential_model.rs`, `operation_ends.rs` and `linearizability.rs` check whether they are possible;
//! `executions.rs`, `external_world.rs` and `leftovers.rs` check executions and leftovers.
//!
//! All that is about brokers. `platform_round.rs` is the same for platforms, with `platform_client.rs`,
//! `intent_order.rs` and `breaker_watch.rs`.

mod breaker_watch;
mod client;
mod cuttable_link;
mod executions;
mod external_world;
mod fault_injector;
mod fault_plan;
mod final_state;
mod history;
mod intent_order;
mod leftovers;
mod linearizability;
mod operation_ends;
mod platform_client;
mod platform_round;
mod replica;
mod run;
mod sequential_model;
mod server_kind;

pub use executions::{Executions, KnownClaims, Pause, check_executions};
pub use external_world::ExternalWorld;
pub use fault_plan::{Fault, FaultPlan, LinkCut, PlannedFault};
pub use history::{BINDINGS, Call, ObservedReply, Progress, RecordedCall, Spec};
pub use leftovers::{FinalState, check_leftovers, lane_of};
pub use linearizability::{SearchEnd, explain};
pub use operation_ends::{EndedOperation, Names, OperationEnds};
pub use platform_round::{PlatformChaos, PlatformChaosReport, run_platform_round};
pub use run::{Chaos, ChaosReport, run_chaos_round};
pub use server_kind::ServerKind;
