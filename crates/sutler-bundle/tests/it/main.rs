//! Bundles as they are run: real processes on this host.

mod process;
