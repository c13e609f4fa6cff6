//! The container runner with a real engine: the conformance suite, and tests of containers only.

use async_trait::async_trait;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use sutler_bundle::{Action, RunLimits};
use sutler_runner::conformance::Candidate;
use sutler_runner::{
    ContainerRunner, ContainerSettings, Exit, Network, RunName, RunSpec, RunStatus, Runnable,
    Runner, Vars,
};
use sutler_servers::podman::{Podman, SHELL_IMAGE, shared};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

/// A working directory of its own, and the shared engine.
struct Containers {
    folder: TempDir,
    podman: &'static Podman,
}

impl Containers {
    /// `None`: there is no engine, which is printed.
    fn fresh() -> Option<Self> {
        let podman = shared()?;
        let folder = tempfile::tempdir().expect("a folder");
        Some(Self { folder, podman })
    }

    fn settings(&self) -> ContainerSettings {
        let work = self.folder.path().join("work");
        let mut settings = ContainerSettings::new(work, self.podman.socket.clone());
        settings.grace = Duration::from_millis(500);
        settings.network = Network::None;
        settings
    }

    fn run(&self, name: RunName) -> PathBuf {
        let runs = self.folder.path().join("work/containers");
        runs.join(name.to_string())
    }
}

impl Drop for Containers {
    fn drop(&mut self) {
        let owner = format!("label=sutler.owner={}", self.settings().owner);
        let listed = self.podman.podman(&["ps", "-aq", "--filter", &owner]);
        for container in listed.lines() {
            let _ = self.podman.podman(&["rm", "-f", "-t", "0", container]);
        }
    }
}

#[async_trait]
impl Candidate for Containers {
    async fn runner(&self) -> Arc<dyn Runner> {
        Arc::new(ContainerRunner::open(self.settings()).expect("opened"))
    }

    fn shell(&self) -> Runnable {
        Runnable::Image {
            reference: SHELL_IMAGE.to_owned(),
            inline_vars: false,
        }
    }

    fn missing(&self) -> Runnable {
        // A port without a listener.
        Runnable::Image {
            reference: "127.0.0.1:9/not/there:1".to_owned(),
            inline_vars: false,
        }
    }

    async fn create_go_file(&self, name: RunName) {
        std::fs::write(self.run(name).join("result/go"), "").expect("written");
    }

    async fn lose(&self, name: RunName) {
        let container_name = format!("sutler-{name}");
        let _ = self
            .podman
            .podman(&["rm", "-f", "-t", "0", &container_name]);
    }

    async fn remove_run_dir(&self, name: RunName) {
        std::fs::remove_dir_all(self.run(name)).expect("removed");
    }

    async fn leave_interrupted_runs(&self) {
        for left in [".new-1-0-dead", ".gone-0123"] {
            let folder = self.folder.path().join("work/containers").join(left);
            std::fs::create_dir(&folder).expect("made");
            std::fs::write(folder.join("vars.json"), "secret").expect("written");
        }
    }

    async fn leftovers_of(&self, name: RunName) -> usize {
        let container_name = format!("name=sutler-{name}");
        let mut words = vec!["ps", "-q", "--filter", &container_name];
        if !self.run(name).exists() {
            // After removal, not even an ended container may be left.
            words.push("-a");
        }
        let running = self.podman.podman(&words).lines().count();
        let runs = self.folder.path().join("work/containers");
        let aside = std::fs::read_dir(runs).expect("a folder").flatten();
        let aside = aside.filter(|entry| entry.file_name().to_string_lossy().starts_with('.'));
        running + aside.count()
    }
}

mod conformance {
    use super::Containers;

    sutler_runner::runner_conformance!(match Containers::fresh() {
        Some(containers) => containers,
        None => return,
    });
}

fn spec(containers: &Containers, script: &str) -> RunSpec {
    let operation = uuid::Uuid::new_v4();
    RunSpec {
        name: RunName {
            operation,
            attempt: 1,
        },
        action: Action::Provision,
        runnable: containers.shell(),
        vars: Vars::default(),
        state: None,
        binding_state: None,
        secrets: Vec::new(),
        environment: BTreeMap::from([("SCRIPT".to_owned(), script.to_owned())]),
        labels: BTreeMap::new(),
        idempotency_key: operation.to_string(),
        limits: RunLimits::default(),
    }
}

async fn ended_eventually(runner: &dyn Runner, name: RunName) -> RunStatus {
    // Events must be read, as a broker does.
    let (lines, mut events) = tokio::sync::mpsc::channel(1);
    let watched = tokio::time::timeout(Duration::from_secs(60), runner.watch(name, lines));
    let listening = async { while events.recv().await.is_some() {} };
    let (watched, ()) = tokio::join!(watched, listening);
    watched.expect("in time").expect("watched")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_container_that_was_about_to_be_started_when_its_broker_died_never_started() {
    let Some(containers) = Containers::fresh() else {
        return;
    };
    let runner = containers.runner().await;
    let spec = spec(&containers, "exit 0");
    runner.start(&spec).await.expect("started");
    ended_eventually(runner.as_ref(), spec.name).await;
    // The marker exists, and the container is created but not started.
    containers.lose(spec.name).await;
    let container_name = format!("sutler-{}", spec.name);
    let _ = containers
        .podman
        .podman(&["create", "--name", &container_name, SHELL_IMAGE]);
    for _ in 0..2 {
        let status = runner.status(spec.name).await.expect("looked");
        assert_eq!(status, RunStatus::NeverStarted);
    }
    runner.start(&spec).await.expect("started");
    let status = ended_eventually(runner.as_ref(), spec.name).await;
    assert_eq!(status, RunStatus::Finished(Exit::Code(0)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn output_of_a_container_is_in_a_bounded_file_that_is_removed_with_it() {
    let Some(containers) = Containers::fresh() else {
        return;
    };
    let runner = containers.runner().await;
    let spec = spec(&containers, "echo said");
    runner.start(&spec).await.expect("started");
    ended_eventually(runner.as_ref(), spec.name).await;
    let container_name = format!("sutler-{}", spec.name);
    let format = "{{.HostConfig.LogConfig.Type}} {{.HostConfig.LogConfig.Path}} {{.HostConfig.LogConfig.Size}}";
    let output = containers
        .podman
        .podman(&["inspect", "--format", format, &container_name]);
    let words: Vec<&str> = output.split_whitespace().collect();
    assert!(matches!(words[0], "json-file" | "k8s-file"), "{output}");
    assert!(std::path::Path::new(words[1]).is_file(), "{output}");
    assert_ne!(words[2], "0B", "{output}");
    runner.remove(spec.name).await.expect("removed");
    assert!(!std::path::Path::new(words[1]).exists(), "{output}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn containers_have_a_user_that_no_other_process_of_the_host_has() {
    let Some(containers) = Containers::fresh() else {
        return;
    };
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let runner = containers.runner().await;
    let spec = spec(&containers, "id -u >\"$SUTLER_RESULT_DIR/error\"");
    runner.start(&spec).await.expect("started");
    ended_eventually(runner.as_ref(), spec.name).await;
    let given = runner.result(spec.name).await.expect("read");
    let uid: u32 = given.error.expect("a user").parse().expect("a number");
    // Above the ranges that distributions assign to users, services and containers.
    assert!(uid > 1_879_048_192 && uid < 2_147_483_648, "{uid}");
    assert_eq!(containers.settings().user.0, uid);
}

/// Proxy of an engine that counts requests for logs and status.
struct CountingProxy {
    socket: PathBuf,
    requests: Arc<Mutex<Vec<u8>>>,
}

impl CountingProxy {
    fn before(engine: PathBuf, folder: &std::path::Path) -> Self {
        let socket = folder.join("front");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let requests = Arc::<Mutex<Vec<u8>>>::default();
        let recorded = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let recorded = Arc::clone(&recorded);
                let server = UnixStream::connect(&engine).await.expect("an engine");
                tokio::spawn(pass_on(client, server, recorded));
            }
        });
        Self { socket, requests }
    }

    fn count(&self, word: &str) -> usize {
        let requests = self.requests.lock().expect("nobody panics");
        String::from_utf8_lossy(&requests).matches(word).count()
    }
}

async fn pass_on(client: UnixStream, server: UnixStream, recorded: Arc<Mutex<Vec<u8>>>) {
    let (mut asks, mut hears) = client.into_split();
    let (mut answers, mut is_asked) = server.into_split();
    let back = tokio::spawn(async move { tokio::io::copy(&mut answers, &mut hears).await });
    let mut bytes = vec![0; 16 << 10];
    while let Ok(read @ 1..) = asks.read(&mut bytes).await {
        recorded
            .lock()
            .expect("nobody panics")
            .extend_from_slice(&bytes[..read]);
        if is_asked.write_all(&bytes[..read]).await.is_err() {
            break;
        }
    }
    back.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn output_of_a_container_is_not_requested_again_at_every_check() {
    let Some(containers) = Containers::fresh() else {
        return;
    };
    let proxy = CountingProxy::before(containers.podman.socket.clone(), containers.folder.path());
    let mut settings = containers.settings();
    settings.socket = proxy.socket.clone();
    settings.look_again = Duration::from_millis(20);
    let runner = Arc::new(ContainerRunner::open(settings).expect("opened"));
    let script = "echo said; while [ ! -e \"$SUTLER_RESULT_DIR/go\" ]; do sleep 0.05; done";
    let spec = spec(&containers, script);
    runner.start(&spec).await.expect("started");
    let before = proxy.count("/json");
    let watching = tokio::spawn({
        let (runner, name) = (Arc::clone(&runner), spec.name);
        async move { ended_eventually(runner.as_ref(), name).await }
    });
    until_inspected(&proxy, before + 10).await;
    containers.create_go_file(spec.name).await;
    let status = watching.await.expect("no panic");
    assert_eq!(status, RunStatus::Finished(Exit::Code(0)));
    // Once while it runs, and once for the rest.
    let requests = proxy.count("/logs");
    assert!(requests <= 2, "{requests} times");
}

async fn until_inspected(proxy: &CountingProxy, times: usize) {
    let from = std::time::Instant::now();
    while proxy.count("/json") < times {
        assert!(
            from.elapsed() < Duration::from_secs(60),
            "it is not looked at"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
