//! The measured bundles on a disk, and the files that their runs write for the measurement.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::load::BoxError;

/// The shipped bundle: a few shell commands.
const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bundles/hello");
const LOOK: Duration = Duration::from_millis(50);

/// A bundle and its ids.
#[derive(Clone, Copy)]
pub(crate) struct BenchBundle {
    pub(crate) name: &'static str,
    pub(crate) service: &'static str,
    pub(crate) plan: &'static str,
}

/// The shipped bundle.
pub(crate) const HELLO: BenchBundle = bundle("hello", "hello-id", "hello-plan");
/// A shell that only writes one file.
pub(crate) const BARE: BenchBundle = bundle("bare", "bare-id", "bare-plan");
/// Records its start time.
pub(crate) const STAMP: BenchBundle = bundle("stamp", "stamp-id", "stamp-plan");
/// Waits until it is released.
pub(crate) const WAITS: BenchBundle = bundle("waits", "waits-id", "waits-plan");

const fn bundle(name: &'static str, service: &'static str, plan: &'static str) -> BenchBundle {
    BenchBundle {
        name,
        service,
        plan,
    }
}

/// A directory of bundles.
pub(crate) struct BundleFixture {
    dir: PathBuf,
}

impl BundleFixture {
    /// Writes the bundles.
    pub(crate) fn new(dir: &Path) -> Result<Self, BoxError> {
        let dir = dir.canonicalize()?;
        let marks = dir.join("marks");
        fs::create_dir(&marks)?;
        // Runs have their own users.
        fs::set_permissions(&marks, fs::Permissions::from_mode(0o777))?;
        let marks = marks.display();
        let fixture = Self { dir: dir.clone() };
        fixture.write(
            &BARE,
            "printf '{\"made\":1}' > \"$SUTLER_RESULT_DIR/state.json\"",
        )?;
        fixture.write(
            &STAMP,
            &format!("date +%s%N > {marks}/stamp-$SUTLER_OPERATION"),
        )?;
        fixture.write(
            &WAITS,
            &format!(": > {marks}/waits-$SUTLER_OPERATION\nwhile test ! -e {marks}/go && test -d {marks}; do sleep 1; done"),
        )?;
        let manifest = fs::read_to_string(Path::new(SHIPPED).join("bundle.yml"))?;
        let manifest = manifest
            .replacen("name: hello", "name: hello\nid: hello-id", 1)
            .replacen("- name: small", "- name: small\n    id: hello-plan", 1);
        fixture.write(&HELLO, "")?;
        let hello = fixture.dir.join("bundles/hello");
        fs::write(hello.join("bundle.yml"), manifest)?;
        for name in ["lib.sh", "actions/provision"] {
            fs::copy(Path::new(SHIPPED).join(name), hello.join(name))?;
        }
        Ok(fixture)
    }

    fn write(&self, of: &BenchBundle, text: &str) -> Result<(), BoxError> {
        let folder = self.dir.join("bundles").join(of.name);
        fs::create_dir_all(folder.join("actions"))?;
        let manifest = format!(
            "version: 1.0\nname: {}\nid: {}\ndescription: Measured.\nplans: [{{name: small, id: {}, description: The only one.}}]\n",
            of.name, of.service, of.plan
        );
        fs::write(folder.join("bundle.yml"), manifest)?;
        let script = folder.join("actions/provision");
        fs::write(&script, format!("#!/bin/sh\n{text}\n"))?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
        Ok(())
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Start time of an action, in milliseconds.
    pub(crate) fn stamp(&self, operation: &str) -> Result<f64, BoxError> {
        let text = fs::read_to_string(self.dir.join(format!("marks/stamp-{operation}")))?;
        Ok(text.trim().parse::<f64>()? / 1e6)
    }

    /// Releases waiting runs.
    pub(crate) fn let_go(&self) -> Result<(), BoxError> {
        Ok(fs::write(self.dir.join("marks/go"), "")?)
    }

    pub(crate) async fn until_waiting(
        &self,
        count: usize,
        within: Duration,
    ) -> Result<(), BoxError> {
        let waiting = || entries(&self.dir.join("marks"), "waits-") == count;
        eventually(waiting, within, "not all runs came to wait").await
    }

    pub(crate) async fn until_no_run_is_left(&self, within: Duration) -> Result<(), BoxError> {
        let none = || entries(&self.dir.join("work/runs"), "") == 0;
        eventually(none, within, "runs were left").await
    }
}

fn entries(folder: &Path, prefix: &str) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(|it| it.file_name().to_string_lossy().starts_with(prefix));
    named.count()
}

async fn eventually(
    holds: impl Fn() -> bool,
    within: Duration,
    sentence: &str,
) -> Result<(), BoxError> {
    let began = Instant::now();
    while !holds() {
        if began.elapsed() > within {
            return Err(sentence.into());
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

/// Private memory of each child of a process, in kB.
pub(crate) fn private_kb_of_supervisors(parent: u32) -> Vec<f64> {
    let parent = format!("PPid:\t{parent}");
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let children = processes.filter(|it| {
        let status = fs::read_to_string(it.path().join("status")).unwrap_or_default();
        status.lines().any(|line| line == parent) && !status.contains("State:\tZ")
    });
    children.map(|it| private_kb(&it.path())).collect()
}

fn private_kb(process: &Path) -> f64 {
    let text = fs::read_to_string(process.join("smaps_rollup")).unwrap_or_default();
    let lines = text.lines().filter(|line| line.starts_with("Private_"));
    let numbers = lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    numbers.sum()
}
