//! The process runner: what it shares with all runners, and what only processes can suffer.

use async_trait::async_trait;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use sutler_bundle::conformance::Candidate;
use sutler_bundle::{ProcessRunner, ProcessSettings, RunName, Runnable, Runner};
use tempfile::TempDir;

/// A working directory and a bundle, both of their own.
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
        settings.supervisor = vec![env!("CARGO_BIN_EXE_sutler-supervisor").to_owned()];
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

    async fn let_go(&self, name: RunName) {
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

    async fn left_of(&self, name: RunName) -> usize {
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

    sutler_bundle::runner_conformance!(Processes::fresh());
}
