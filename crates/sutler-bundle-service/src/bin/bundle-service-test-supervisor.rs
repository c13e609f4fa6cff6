//! Supervisor of process runs for `tests/it`: Cargo gives a test the path of executables of its own package only.
//!
//! The shipped one is `sutler-runner/src/bin/sutler-supervisor.rs`.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    sutler_runner::run_supervisor(&words)
}
