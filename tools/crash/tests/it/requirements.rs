//! Requirements of some tests on the machine. In CI they must be met; elsewhere a test that cannot run
//! prints that and does nothing.

use std::io::Write;
use std::process::{Command, Stdio};

/// Whether a command works here.
///
/// # Panics
/// In CI, if it does not.
pub(crate) fn can(command: &[&str], what_for: &str) -> bool {
    let (program, arguments) = command.split_first().expect("a command");
    let tried = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if tried.is_ok_and(|status| status.success()) {
        return true;
    }
    let missing = format!("`{}` does not work here, so {what_for}", command.join(" "));
    assert!(
        std::env::var("CI").as_deref() != Ok("true"),
        "{missing}; install it, or run as root"
    );
    let _ = writeln!(std::io::stderr(), "skipped: {missing} was not shown");
    false
}

/// Whether system calls can be traced and failed.
pub(crate) fn can_trace(what_for: &str) -> bool {
    can(
        &[
            "strace",
            "-D",
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            "trace=fsync",
            "true",
        ],
        what_for,
    )
}
