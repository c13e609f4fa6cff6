//! The supervisor of process runs as an executable of its own: small, so that hundreds may wait.
//!
//! `sutler bundle-run_supervisor` does the same where only the one executable is installed.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    sutler_runner::run_supervisor(&words)
}
