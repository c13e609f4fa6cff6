//! Write three to five async functions, get a conformant, durable, idempotent service broker.

mod lifecycle;
mod refusal;

pub use lifecycle::binding::BindingSpec;
pub use lifecycle::instance::{Change, InstanceSpec};
pub use lifecycle::{Asynchrony, AuthorState, Verb};
pub use refusal::{Refusal, Resource};
