//! Runners with real processes and a real container engine.

#[cfg(feature = "containers")]
mod container;
#[cfg(feature = "containers")]
mod image_pulls;
mod interrupted_starts;
mod process;
