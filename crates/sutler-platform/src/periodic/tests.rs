//! Tests of the periodic tasks, through the engine. Time is tokio's and does not pass by itself.

mod due_bindings;
mod retention;
mod settled_orphans;
