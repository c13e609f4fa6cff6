//! A start that fails at any step leaves nothing behind.
//!
//! The steps are counted from outside: this executable is started again under `strace`, which makes the n-th call of
//! one kind fail in every thread and process, for every n until no call fails any more.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use sutler_bundle::{Action, RunLimits};
use sutler_runner::{
    ProcessRunner, ProcessSettings, RunName, RunSpec, RunStatus, Runnable, Runner, Supervisor, Vars,
};
use tempfile::TempDir;

/// Variable with the folder of a start that is made to fail.
const PLACE: &str = "SUTLER_TEST_START_IN";
/// Output of a start that was refused and left nothing.
const CLEAN: &str = "refused, and nothing is left";
const TIMEOUT: Duration = Duration::from_secs(60);
/// More steps of one kind than a start has; only opening files has more, at its end, to list processes.
const STEPS_MAX: usize = 40;

/// Kinds of steps, and the error of each.
const STEPS: [(&str, &str); 8] = [
    ("mkdir,mkdirat", "ENOSPC"),
    ("openat", "ENOSPC"),
    ("mknod,mknodat", "ENOSPC"),
    ("rename,renameat,renameat2", "EIO"),
    ("fsync,fdatasync", "EIO"),
    ("lchown,fchownat", "EPERM"),
    ("vfork,fork,clone,clone3", "EAGAIN"),
    ("execve", "ENOMEM"),
];

fn settings(place: &Path) -> ProcessSettings {
    let mut settings = ProcessSettings::new(place.join("work"));
    settings.supervisor = Supervisor::at(env!("CARGO_BIN_EXE_sutler-supervisor").as_ref());
    settings.grace = Duration::from_millis(500);
    settings
}

fn spec(place: &Path) -> RunSpec {
    let operation = uuid::Uuid::new_v4();
    let vars = |key: &str| Vars(serde_json::Map::from_iter([(key.to_owned(), 1.into())]));
    RunSpec {
        name: RunName {
            operation,
            attempt: 1,
        },
        action: Action::Provision,
        runnable: Runnable::Folder {
            path: place.join("bundle"),
            entrypoint: vec!["entry".to_owned()],
        },
        vars: vars("a"),
        state: Some(vars("b")),
        binding_state: Some(vars("c")),
        secrets: Vec::new(),
        environment: BTreeMap::new(),
        labels: BTreeMap::new(),
        idempotency_key: operation.to_string(),
        limits: RunLimits::default(),
    }
}

/// A folder with a bundle, accessible to the users of runs.
fn place() -> TempDir {
    let place = tempfile::tempdir().expect("a folder");
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(place.path(), open.clone()).expect("permissions");
    fs::create_dir(place.path().join("bundle")).expect("a folder");
    let entry = place.path().join("bundle/entry");
    fs::write(&entry, "#!/bin/sh\nexit 0\n").expect("a script");
    fs::set_permissions(&entry, open).expect("permissions");
    place
}

/// Names of the entries in the folder of runs.
fn left_in(place: &Path) -> Vec<String> {
    let entries = fs::read_dir(place.join("work/runs")).into_iter().flatten();
    let names = entries.flatten().map(|it| it.file_name());
    names.map(|it| it.to_string_lossy().into_owned()).collect()
}

async fn ended_eventually(runner: &ProcessRunner, name: RunName) -> RunStatus {
    let (lines, _) = tokio::sync::mpsc::channel(1);
    let watched = tokio::time::timeout(TIMEOUT, runner.watch(name, lines)).await;
    watched.expect("in time").expect("watched")
}

/// Started again by the test below; by itself, a successful start.
#[tokio::test]
async fn a_start_is_there_whole_or_not_at_all() {
    let named = std::env::var_os(PLACE).map(PathBuf::from);
    let own = place();
    let at = named.clone().unwrap_or(own.path().to_owned());
    let runner = ProcessRunner::open(settings(&at)).expect("opened");
    let spec = spec(&at);
    match runner.start(&spec).await {
        Ok(()) => {
            let status = ended_eventually(&runner, spec.name).await;
            assert!(
                named.is_some() || matches!(status, RunStatus::Finished(_)),
                "{status:?}"
            );
            runner.remove(spec.name).await.expect("removed");
        }
        Err(fault) => {
            assert!(named.is_some(), "{fault}");
            let outcome = match left_in(&at).as_slice() {
                [] => CLEAN.to_owned(),
                left => format!("{fault}: {left:?} is left"),
            };
            fs::write(at.join("said"), outcome).expect("written");
        }
    }
}

/// Makes the n-th step of a kind fail; returns whether there was one.
fn fail_step(place: &Path, calls: &str, error: &str, nth: usize) -> bool {
    let trace = place.join("trace");
    let status = Command::new("strace")
        .args(["-f", "-qq", "-e", &format!("trace={calls}")])
        .args(["-e", &format!("inject={calls}:error={error}:when={nth}")])
        .arg("-o")
        .arg(&trace)
        .arg(std::env::current_exe().expect("this executable"))
        .args([
            "--exact",
            "interrupted_starts::a_start_is_there_whole_or_not_at_all",
        ])
        .env(PLACE, place)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.expect("strace runs");
    let trace = fs::read(&trace).unwrap_or_default();
    String::from_utf8_lossy(&trace).contains("(INJECTED)")
}

/// Asserts that runs that are left can be read and removed, and that then neither files nor processes are left.
fn nothing_is_left_eventually(place: &Path, what: &str) {
    let outcome = fs::read_to_string(place.join("said")).unwrap_or(CLEAN.to_owned());
    assert_eq!(outcome, CLEAN, "{what}");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let runner = ProcessRunner::open(settings(place)).expect("opened");
        for name in runner.list().await.expect("listed") {
            ended_eventually(&runner, name).await;
            runner.remove(name).await.expect("removed");
        }
    });
    assert_eq!(left_in(place), [] as [String; 0], "{what}");
    let begun = Instant::now();
    while processes_in(place) > 0 {
        assert!(begun.elapsed() < TIMEOUT, "{what}: a process is left");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Number of processes that refer to a folder.
fn processes_in(place: &Path) -> usize {
    let word = place.display().to_string();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let named = processes.filter(|it| {
        let line = fs::read(it.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&word)
    });
    named.count()
}

/// A partly created sandbox stayed, and the bundle was sometimes run in it.
///
/// Regression: R32.
#[test]
fn a_start_that_fails_at_any_step_leaves_nothing() {
    if !strace_works() {
        assert!(
            std::env::var_os("CI").is_none(),
            "strace does not work here"
        );
        eprintln!("skipped: strace does not work here");
        return;
    }
    std::thread::scope(|scope| {
        for (calls, error) in STEPS {
            scope.spawn(move || fail_each_step(calls, error));
        }
    });
}

fn strace_works() -> bool {
    let mut command = Command::new("strace");
    let status = command.args(["-qq", "-o", "/dev/null", "true"]).status();
    status.is_ok_and(|status| status.success())
}

fn fail_each_step(calls: &str, error: &str) {
    for nth in 1..=STEPS_MAX {
        let place = place();
        let failed = fail_step(place.path(), calls, error, nth);
        nothing_is_left_eventually(place.path(), &format!("{calls}, the {nth}th"));
        if !failed {
            assert!(nth > 1, "{calls}: nothing was struck");
            return;
        }
    }
    assert_eq!(calls, "openat", "more steps than {STEPS_MAX}");
}
