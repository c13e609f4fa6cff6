//! Several replicas over one server, under load, while replicas are killed, paused and cut off and the
//! server is restarted; and whether everything was as it should be.
//!
//! `run.rs` is one round from beginning to end: it starts replicas (`replica.rs`), each with its own way
//! to the server (`cuttable_link.rs`), has clients ask (`client.rs`) and things broken (`fault_injector.rs`), and reads
//! what is left (`final_state.rs`).
//! Pure parts: `fault_plan.rs` plans the faults; `history.rs` records what clients saw; `sequential_model.rs`,
//! `operation_ends.rs` and `linearizability.rs` check whether it is possible; `executions.rs`, `external_world.rs`
//! and
//! `leftovers.rs` check what was done and what is left.

mod client;
mod cuttable_link;
mod executions;
mod external_world;
mod fault_injector;
mod fault_plan;
mod final_state;
mod history;
mod leftovers;
mod linearizability;
mod operation_ends;
mod replica;
mod run;
mod sequential_model;
mod server_kind;

pub use executions::{Executions, Pause, check_executions};
pub use external_world::ExternalWorld;
pub use fault_plan::{Fault, FaultPlan, LinkCut, PlannedFault};
pub use history::{BINDINGS, Call, ObservedReply, Progress, RecordedCall, Spec};
pub use leftovers::{FinalState, check_leftovers, lane_of};
pub use linearizability::{SearchEnd, explain};
pub use operation_ends::{EndedOperation, Names, OperationEnds};
pub use run::{Chaos, ChaosReport, unleash};
pub use server_kind::ServerKind;
