//! Tests of the periodic tasks, through the engine. Time is tokio's and does not pass by itself.

mod abandoned_brokers;
mod due_bindings;
mod retention;
mod settled_orphans;
