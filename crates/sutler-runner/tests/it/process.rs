//! The process runner: the conformance suite, and tests of processes only.

mod failures;

use async_trait::async_trait;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use sutler_bundle::{Action, RunLimits};
use sutler_runner::conformance::Candidate;
use sutler_runner::{
    Exit, ProcessRunner, ProcessSettings, RunName, RunSpec, RunStatus, RunUser, Runnable, Runner,
    Supervisor, Vars,
};
use tempfile::TempDir;

/// A working directory and a bundle of its own.
struct Processes {
    folder: TempDir,
}

impl Processes {
    fn fresh() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open.clone()).expect("open to runs");
        let bundle = folder.path().join("bundle");
        std::fs::create_dir(&bundle).expect("a folder");
        let entry = bundle.join("entry");
        std::fs::write(&entry, "#!/bin/sh\neval \"$SCRIPT\"\n").expect("written");
        std::fs::set_permissions(&entry, open).expect("executable");
        Self { folder }
    }

    fn settings(&self) -> ProcessSettings {
        let mut settings = ProcessSettings::new(self.work());
        settings.supervisor = Supervisor::at(env!("CARGO_BIN_EXE_sutler-supervisor").as_ref());
        settings.grace = Duration::from_millis(500);
        settings
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    fn run(&self, name: RunName) -> PathBuf {
        self.work().join("runs").join(name.to_string())
    }
}

#[async_trait]
impl Candidate for Processes {
    async fn runner(&self) -> Arc<dyn Runner> {
        Arc::new(ProcessRunner::open(self.settings()).expect("opened"))
    }

    fn shell(&self) -> Runnable {
        Runnable::Folder {
            path: self.folder.path().join("bundle"),
            entrypoint: vec!["entry".to_owned()],
        }
    }

    fn missing(&self) -> Runnable {
        Runnable::Folder {
            path: self.folder.path().join("bundle"),
            entrypoint: vec!["./not-there".to_owned()],
        }
    }

    async fn create_go_file(&self, name: RunName) {
        std::fs::write(self.run(name).join("result/go"), "").expect("written");
    }

    async fn lose(&self, name: RunName) {
        let supervisors = processes_with(|process| {
            let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            line.contains("sutler-supervisor")
                && line.contains(&name.to_string())
                && !line.contains("--launch")
        });
        assert_eq!(supervisors.len(), 1, "one supervisor");
        let pid = rustix::process::Pid::from_raw(supervisors[0]).expect("a number");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("killed");
    }

    async fn remove_run_dir(&self, name: RunName) {
        std::fs::remove_dir_all(self.run(name)).expect("removed");
    }

    async fn leave_interrupted_runs(&self) {
        for left in [".new-1-0-dead", ".gone-0123"] {
            let folder = self.work().join("runs").join(left);
            std::fs::create_dir(&folder).expect("made");
            std::fs::write(folder.join("vars.json"), "secret").expect("written");
        }
    }

    async fn leftovers_of(&self, name: RunName) -> usize {
        let mark = format!("SUTLER_RUN={name}");
        let marked = processes_with(|process| {
            let environment = std::fs::read(process.join("environ")).unwrap_or_default();
            environment
                .split(|byte| *byte == 0)
                .any(|word| word == mark.as_bytes())
        });
        let aside = std::fs::read_dir(self.work().join("runs"))
            .expect("a folder")
            .flatten();
        let aside = aside.filter(|entry| entry.file_name().to_string_lossy().starts_with('.'));
        marked.len() + aside.count()
    }
}

fn processes_with(wanted: impl Fn(PathBuf) -> bool) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc")
        .expect("a list of processes")
        .flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers
        .filter(|pid: &i32| wanted(PathBuf::from(format!("/proc/{pid}"))))
        .collect()
}

mod conformance {
    use super::Processes;

    sutler_runner::runner_conformance!(Processes::fresh());
}

fn spec(processes: &Processes, script: &str) -> RunSpec {
    let environment = BTreeMap::from([("SCRIPT".to_owned(), script.to_owned())]);
    let operation = uuid::Uuid::new_v4();
    RunSpec {
        name: RunName {
            operation,
            attempt: 1,
        },
        action: Action::Provision,
        runnable: processes.shell(),
        vars: Vars::default(),
        state: None,
        binding_state: None,
        secrets: Vec::new(),
        environment,
        labels: BTreeMap::new(),
        idempotency_key: operation.to_string(),
        limits: RunLimits::default(),
    }
}

async fn ended_eventually(runner: &dyn Runner, name: RunName) -> RunStatus {
    let (lines, _) = tokio::sync::mpsc::channel(1);
    let watched = tokio::time::timeout(Duration::from_secs(60), runner.watch(name, lines));
    watched.await.expect("in time").expect("watched")
}

#[tokio::test]
async fn a_start_that_died_before_its_supervisor_is_never_started_and_made_again() {
    let processes = Processes::fresh();
    let spec = spec(&processes, "exit 0");
    // Fails as a broker that dies would: the directory exists, but has no supervisor.
    let mut settings = processes.settings();
    settings.supervisor = Supervisor::at("/bin/true".as_ref());
    let first = ProcessRunner::open(settings).expect("opened");
    first.start(&spec).await.expect("started");
    let runner = processes.runner().await;
    assert_eq!(
        ended_eventually(runner.as_ref(), spec.name).await,
        RunStatus::NeverStarted
    );
    assert_eq!(runner.list().await.expect("listed"), [spec.name]);
    runner.start(&spec).await.expect("started");
    let status = ended_eventually(runner.as_ref(), spec.name).await;
    assert_eq!(status, RunStatus::Finished(Exit::Code(0)));
}

#[tokio::test]
async fn a_supervisor_that_cannot_be_started_leaves_nothing() {
    let processes = Processes::fresh();
    let spec = spec(&processes, "exit 0");
    let mut settings = processes.settings();
    settings.supervisor = Supervisor::at("/not/there".as_ref());
    let runner = ProcessRunner::open(settings).expect("opened");
    let fault = runner.start(&spec).await.expect_err("not there");
    assert!(fault.to_string().contains("/not/there"), "{fault}");
    assert_eq!(runner.list().await.expect("listed"), []);
    assert_eq!(processes.leftovers_of(spec.name).await, 0);
}

#[tokio::test]
async fn runs_of_the_same_time_are_not_the_same_user() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let processes = Processes::fresh();
    let mut settings = processes.settings();
    settings.user = RunUser::Range {
        first: 70_000,
        count: 2,
    };
    let runner = ProcessRunner::open(settings).expect("opened");
    let script = "id -u >\"$SUTLER_RESULT_DIR/error\"; while [ ! -e \"$SUTLER_RESULT_DIR/go\" ]; do sleep 0.05; done";
    let [one, two, three] = [(); 3].map(|()| spec(&processes, script));
    for spec in [&one, &two] {
        runner.start(spec).await.expect("started");
        let at = processes.run(spec.name).join("result/error");
        until(|| std::fs::read(&at).is_ok_and(|output| !output.is_empty())).await;
    }
    runner.start(&three).await.expect("started");
    let status = ended_eventually(&runner, three.name).await;
    assert_eq!(status, RunStatus::Finished(Exit::Code(125)));
    let given = runner.result(three.name).await.expect("read");
    assert!(given.error.expect("a sentence").contains("all 2 users"));
    let mut users = Vec::new();
    for spec in [&one, &two] {
        processes.create_go_file(spec.name).await;
        ended_eventually(&runner, spec.name).await;
        users.push(
            runner
                .result(spec.name)
                .await
                .expect("read")
                .error
                .expect("a user"),
        );
    }
    users.sort();
    assert_eq!(users, ["70000", "70001"]);
}

async fn until(mut holds: impl FnMut() -> bool) {
    let from = std::time::Instant::now();
    while !holds() {
        assert!(from.elapsed() < Duration::from_secs(60), "it does not come");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Kilobytes of private memory of a process.
fn kilobytes_of(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Private_Dirty:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_runs_wait_at_once_in_little_memory() {
    const RUNS: u64 = 200;
    let processes = Processes::fresh();
    let runner = processes.runner().await;
    let script = "while [ ! -e ../go ]; do sleep 1; done";
    let run_specs: Vec<RunSpec> = (0..RUNS).map(|_| spec(&processes, script)).collect();
    for spec in &run_specs {
        runner.start(spec).await.expect("started");
    }
    let work = processes.work().display().to_string();
    let ours = |process: PathBuf| {
        let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line.contains("sutler-supervisor") && line.contains(&work)
    };
    until(|| {
        let waiting = |spec: &RunSpec| processes.run(spec.name).join("started").exists();
        run_specs.iter().all(waiting) && processes_with(ours).len() as u64 == RUNS
    })
    .await;
    let kilobytes: u64 = processes_with(ours).into_iter().map(kilobytes_of).sum();
    let mut stops = tokio::task::JoinSet::new();
    for spec in run_specs {
        let runner = Arc::clone(&runner);
        stops.spawn(async move { runner.stop(spec.name).await });
    }
    for stopped in stops.join_all().await {
        stopped.expect("stopped");
    }
    assert!(kilobytes / RUNS <= 200, "{} kB each", kilobytes / RUNS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_is_started_twenty_milliseconds_after_its_order_at_the_latest() {
    let processes = Processes::fresh();
    let runner = processes.runner().await;
    let mut best = Duration::MAX;
    // Other processes may use this machine: one fast start is enough.
    for _ in 0..20 {
        let spec = spec(&processes, ": >\"$SUTLER_RESULT_DIR/error\"");
        let from = std::time::SystemTime::now();
        runner.start(&spec).await.expect("started");
        ended_eventually(runner.as_ref(), spec.name).await;
        let made = std::fs::metadata(processes.run(spec.name).join("result/error"));
        let made = made.and_then(|made| made.modified()).expect("it ran");
        best = best.min(made.duration_since(from).unwrap_or_default());
    }
    assert!(best <= Duration::from_millis(20), "{best:?} at best");
}
