//! A small flood, bounded to a minute: all other users are served, nothing leaks, memory is bounded.
//!
//! Times are not checked here: tests run on busy machines.

use std::process::Command;

#[test]
fn a_small_flood_leaves_others_served_memory_bounded_and_no_descriptor_open() {
    let ran = Command::new(env!("CARGO_BIN_EXE_sutler-flood"))
        .args(["--held", "300", "--slow", "40", "--flood", "16"])
        .args(["--seconds", "1", "--pairs", "1", "--ratio-max", "1000"])
        .output()
        .expect("the program runs");
    let printed = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{printed}");
    assert!(printed.contains("all at once"), "{printed}");
    assert!(!printed.contains("MISSED"), "{printed}");
}
