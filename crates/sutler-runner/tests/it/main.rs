//! Runners with real processes and a real container engine.

#[cfg(feature = "containers")]
mod container;
mod process;
#[cfg(feature = "containers")]
mod pulls;
mod starts;
