//! Cases: limits of output and memory, and the user of a run.

use super::Candidate;
use super::fixture::{run, run_for_output, spec};
use crate::runner::{Exit, RunStatus};

/// Excess output is dropped, and the run continues.
pub async fn output_is_kept_within_its_limit(candidate: &dyn Candidate) {
    let mut spec = spec(candidate, "head -c 3000000 /dev/zero | tr '\\0' x; exit 5");
    spec.limits.output = 10_000;
    let watched = run(candidate, &spec).await;
    assert_eq!(watched.status, RunStatus::Finished(Exit::Code(5)));
    let (length, cut) = (watched.output.len(), watched.output.contains("[cut here"));
    assert!(
        (10_000..10_200).contains(&length) && cut,
        "{length} bytes, {cut}"
    );
}

/// Allocations over the limit fail.
pub async fn memory_is_limited(candidate: &dyn Candidate) {
    let mut spec = spec(
        candidate,
        "x=$(head -c 300000000 /dev/zero | tr '\\0' x); echo ${#x}",
    );
    spec.limits.memory = 64 << 20;
    let watched = run(candidate, &spec).await;
    assert!(!watched.output.contains("300000000"), "{}", watched.output);
    let failed = match watched.status {
        RunStatus::Finished(Exit::Code(code)) => code != 0,
        RunStatus::Finished(Exit::Memory | Exit::Signal(_)) => true,
        _ => false,
    };
    assert!(failed, "{:?}", watched.status);
}

/// The run spec sets the limit, and the run cannot raise it.
pub async fn open_files_are_limited(candidate: &dyn Candidate) {
    let mut spec = spec(
        candidate,
        "ulimit -n; ulimit -n 4096 2>/dev/null; ulimit -n",
    );
    spec.limits.open_files = 64;
    let watched = run(candidate, &spec).await;
    assert_eq!(watched.output, "64\n64\n");
}

/// A fork bomb affects only its own run.
pub async fn processes_are_limited(candidate: &dyn Candidate) {
    let script = "i=0; while [ $i -lt 60 ]; do sleep 5 & i=$((i+1)); done 2>/dev/null; echo all";
    let mut spec = spec(candidate, script);
    spec.limits.processes = 20;
    let watched = run(candidate, &spec).await;
    assert!(!watched.output.contains("all"), "{watched:?}");
}

/// Not root, and unable to become root.
pub async fn a_run_has_no_privileges(candidate: &dyn Candidate) {
    let output = run_for_output(
        candidate,
        &spec(candidate, "id -u; grep NoNewPrivs /proc/self/status"),
    )
    .await;
    let own = rustix::process::getuid();
    assert!(!output.starts_with("0\n") || !own.is_root(), "{output}");
    assert!(output.ends_with("NoNewPrivs:\t1\n"), "{output}");
}
