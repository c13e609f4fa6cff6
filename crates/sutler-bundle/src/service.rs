//! The service behind the broker: what it is told becomes runs, what runs give becomes results.
//!
//! Pure parts: `service/vars.rs` (what a run is told), `service/outcome.rs` (what its end means) and
//! `service/state.rs` (what is remembered). It runs nothing itself: that is a [`crate::Runner`].

mod outcome;
mod state;
mod vars;

pub use outcome::{Ending, NO_SUCH_ACTION, Outcome, conclude};
pub use state::{
    BindingState, By, HISTORY_MAX, HistoryEntry, InstanceState, Pin, STATE_BYTES_MAX,
    STATE_KEYS_MAX, TooMuch, Unreadable,
};
pub use vars::{BINDING_STATE_PREFIX, STATE_PREFIX, Told, vars};
