//! Executable that supervises one process run. Small, because hundreds may wait at the same time.
//!
//! `sutler bundle-supervisor` does the same where only `sutler` is installed. The code is
//! `run/process/supervise.rs`.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    sutler_runner::run_supervisor(&words)
}
