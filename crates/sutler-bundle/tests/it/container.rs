//! The container runner, with a real engine: what it shares with all runners.

use async_trait::async_trait;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use sutler_bundle::conformance::Candidate;
use sutler_bundle::{ContainerRunner, ContainerSettings, Network, RunName, Runnable, Runner};
use sutler_servers::podman::{Podman, SHELL_IMAGE, shared};
use tempfile::TempDir;

/// A working directory of its own, and the engine of all.
struct Containers {
    folder: TempDir,
    podman: &'static Podman,
}

impl Containers {
    /// None: there is no engine here, and that is said.
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
        // Nobody listens there.
        Runnable::Image {
            reference: "127.0.0.1:9/not/there:1".to_owned(),
            inline_vars: false,
        }
    }

    async fn let_go(&self, name: RunName) {
        std::fs::write(self.run(name).join("result/go"), "").expect("written");
    }

    async fn lose(&self, name: RunName) {
        let called = format!("sutler-{name}");
        let _ = self.podman.podman(&["rm", "-f", "-t", "0", &called]);
    }

    async fn misplace(&self, name: RunName) {
        std::fs::remove_dir_all(self.run(name)).expect("removed");
    }

    async fn cut_short(&self) {
        for left in [".new-1-0-dead", ".gone-0123"] {
            let folder = self.folder.path().join("work/containers").join(left);
            std::fs::create_dir(&folder).expect("made");
            std::fs::write(folder.join("vars.json"), "secret").expect("written");
        }
    }

    async fn left_of(&self, name: RunName) -> usize {
        let called = format!("name=sutler-{name}");
        let mut words = vec!["ps", "-q", "--filter", &called];
        if !self.run(name).exists() {
            // Removed: not even one that ended may be left.
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

    sutler_bundle::runner_conformance!(match Containers::fresh() {
        Some(containers) => containers,
        None => return,
    });
}
