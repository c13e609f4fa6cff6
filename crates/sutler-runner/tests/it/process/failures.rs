//! Failures of process runs: full disks, killed supervisors, restrictive umasks.
//!
//! Some tests cannot run in the same process as others: such a test starts this executable again, with its own name,
//! under a program that isolates it.

use super::{Processes, ended_eventually, processes_with, spec, until};
use std::process::Command;
use sutler_bundle_service::VersionStore;
use sutler_runner::conformance::Candidate;
use sutler_runner::{Exit, ProcessRunner, RunStatus, RunUser, Runnable, Runner, WorkDir};

/// Environment variable that is set in an isolated test.
const ALONE: &str = "SUTLER_TEST_ALONE";

/// Runs a test of this file again under this command; `false`: it is already isolated.
fn again_under(words: &[&str], test: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return false;
    }
    let own = std::env::current_exe().expect("a program");
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(own);
    command.args([
        "--exact",
        &format!("process::failures::{test}"),
        "--nocapture",
    ]);
    let ended = command.env(ALONE, "1").output().expect("it runs");
    let output = String::from_utf8_lossy(&ended.stdout);
    let why = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{output}\n{why}");
    assert!(output.contains("1 passed"), "{output}");
    true
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_does_not_lose_the_end_of_a_run() {
    let test = "a_full_disk_does_not_lose_the_end_of_a_run";
    let flag = if is_root() { "-m" } else { "-rm" };
    let possible = Command::new("unshare").args([flag, "true"]).status();
    if !possible.is_ok_and(|ended| ended.success()) {
        sutler_servers::print_line(&format!(
            "skipped: {test}: this user may not make mounts of its own"
        ));
        return;
    }
    if again_under(&["unshare", flag], test) {
        return;
    }
    let processes = Processes::fresh();
    let work = processes.work();
    std::fs::create_dir(&work).expect("a folder");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=512k,mode=755", "small"])
        .arg(&work)
        .status();
    assert!(mounted.expect("mount runs").success());
    let mut settings = processes.settings();
    if !is_root() {
        settings.user = RunUser::Own;
    }
    let runner = ProcessRunner::open(settings).expect("opened");
    let script = "cd \"$SUTLER_RESULT_DIR\"; echo '{\"made\":1}' >state.json\n\
        head -c 9000000 /dev/zero >fill 2>/dev/null\n\
        head -c 9000000 /dev/zero >\"$HOME/fill\" 2>/dev/null\n\
        exit 3";
    let spec = spec(&processes, script);
    runner.start(&spec).await.expect("started");
    let status = ended_eventually(&runner, spec.name).await;
    assert_eq!(status, RunStatus::Finished(Exit::Code(3)));
    let given = runner.result(spec.name).await.expect("read");
    assert_eq!(given.state.expect("state").0["made"], 1);
    runner.remove(spec.name).await.expect("removed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_umask_does_not_close_the_way_to_runs_of_other_users() {
    let test = "a_umask_does_not_close_the_way_to_runs_of_other_users";
    if !is_root() {
        return;
    }
    if again_under(&["sh", "-c", "umask 077; exec \"$0\" \"$@\""], test) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).expect("open to runs");
    let bundle = folder.path().join("bundle");
    std::fs::create_dir(&bundle).expect("made");
    let manifest =
        "version: '1.0'\nname: open\ndescription: d\nplans: [{name: dev, description: d}]\n";
    std::fs::write(bundle.join("bundle.yml"), manifest).expect("written");
    std::fs::write(bundle.join("entry"), "#!/bin/sh\neval \"$SCRIPT\"\n").expect("written");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(bundle.join("entry"), executable).expect("executable");
    let work = WorkDir::open(&folder.path().join("deep/down/work")).expect("opened");
    let version_store = VersionStore::open(work.path()).expect("opened");
    let copy = version_store.take_in(&bundle).expect("taken in");
    let processes = Processes::fresh();
    let mut settings = processes.settings();
    settings.work = work.path().to_owned();
    let runner = ProcessRunner::open(settings).expect("opened");
    let script = "[ \"$(id -u)\" != 0 ] && cat \"${ANSIBLE_LIBRARY%%:*}/asb_set_state.py\" \
        \"${ANSIBLE_ROLES_PATH%%:*}/ansibleplaybookbundle.asb-modules/tasks/main.yml\" >/dev/null";
    let mut spec = spec(&processes, script);
    spec.runnable = Runnable::Folder {
        path: copy.folder.clone(),
        entrypoint: vec!["entry".to_owned()],
    };
    runner.start(&spec).await.expect("started");
    let status = ended_eventually(&runner, spec.name).await;
    assert_eq!(status, RunStatus::Finished(Exit::Code(0)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_hides_from_a_killed_supervisor_is_found_by_its_user() {
    if !is_root() {
        return;
    }
    let processes = Processes::fresh();
    let runner = processes.runner().await;
    // Two runs: the other one must not be affected.
    let script = "env -i setsid sh -c 'echo $$ >\"$0/error\"; exec sleep 1000' \"$SUTLER_RESULT_DIR\" & sleep 1000";
    let [one, other] = [(); 2].map(|()| spec(&processes, script));
    let mut hidden = Vec::new();
    for spec in [&one, &other] {
        runner.start(spec).await.expect("started");
        let at = processes.run(spec.name).join("result/error");
        let output = || std::fs::read_to_string(&at).unwrap_or_default();
        until(|| output().ends_with('\n')).await;
        hidden.push(output().trim().to_owned());
    }
    processes.lose(one.name).await;
    runner.stop(one.name).await.expect("stopped");
    let there = |pid: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.contains("(sleep) S")
    };
    assert!(!there(&hidden[0]), "it goes on");
    assert!(there(&hidden[1]), "another run was hit");
    runner.stop(other.name).await.expect("stopped");
    assert!(!there(&hidden[1]), "it goes on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_supervisor_whose_directory_is_taken_away_does_not_stay() {
    let processes = Processes::fresh();
    let runner = processes.runner().await;
    let spec = spec(&processes, "echo up; sleep 1000");
    runner.start(&spec).await.expect("started");
    let output = processes.run(spec.name).join("output");
    until(|| std::fs::read(&output).is_ok_and(|output| !output.is_empty())).await;
    processes.remove_run_dir(spec.name).await;
    runner.stop(spec.name).await.expect("stopped");
    let name = spec.name.to_string();
    until(|| {
        let line = |process: std::path::PathBuf| {
            let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&name)
        };
        processes_with(line).is_empty()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_waits_for_an_abandoned_start() {
    let processes = Processes::fresh();
    let runner = processes.runner().await;
    for _ in 0..10 {
        let spec = spec(&processes, "sleep 1000");
        let begun = tokio::time::timeout(std::time::Duration::ZERO, runner.start(&spec)).await;
        let status = runner.status(spec.name).await.expect("looked");
        assert_eq!(status, RunStatus::Running, "{begun:?}");
        runner.stop(spec.name).await.expect("stopped");
    }
}
