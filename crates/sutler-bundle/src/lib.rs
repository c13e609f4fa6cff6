//! Bundles: a service offered without writing a broker, by a manifest and scripts or an image.
//!
//! A bundle is run once per action of an operation. What is to be run is an [`Order`], who runs it a
//! [`Runner`], what it gave back [`Given`]. Nothing here answers a platform: that is `sutler-broker`.

mod action;
mod given;
mod order;
mod runner;

pub use action::{Action, UnknownAction};
pub use given::{Given, Progress};
pub use order::{Limits, Order, RunName, Runnable, SecretFiles, Vars};
pub use runner::{Exit, Line, RunFault, Runner, Seen};
