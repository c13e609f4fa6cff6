//! A full disk: clean refusals, nothing acknowledged is lost, and work continues once there is space,
//! without a restart.

use crate::fixture::{VictimFixture, assert_clean, until};
use crate::requirements::can;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::{Child, Command};

/// Size of the tiny file system.
const TINY: &str = "size=1200k";
/// Bytes withheld from the store until the disk gets space again.
const BALLAST_BYTES: usize = 640 * 1024;
/// An instance that exists before the disk is full.
const FIRST: &str = "first";
/// Largest file in the other test, in the shell's unit of 512 bytes.
const BLOCKS_MAX: u32 = 512;

/// A tiny file system in its own mount namespace, until this is dropped.
struct TinyDisk {
    holder: Child,
    path: PathBuf,
}

impl TinyDisk {
    async fn new(dir: &Path) -> Self {
        let path = dir.join("tiny");
        std::fs::create_dir(&path).expect("a directory");
        let script = format!("mount -t tmpfs -o {TINY} tiny \"$1\" && exec sleep 600");
        let holder = Command::new("unshare")
            .args(["-m", "sh", "-c", &script, "sh"])
            .arg(&path)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("unshare");
        let disk = Self { holder, path };
        until("the tiny disk", async || disk.mounted()).await;
        disk
    }

    fn pid(&self) -> u32 {
        self.holder.id().expect("the holder lives")
    }

    fn mounted(&self) -> bool {
        let mounts = std::fs::read_to_string(format!("/proc/{}/mounts", self.pid()));
        mounts.is_ok_and(|it| it.contains(&self.path.display().to_string()))
    }

    /// A file on it, by its path from here.
    fn inside(&self, name: &str) -> PathBuf {
        let path = self.path.strip_prefix("/").expect("absolute");
        PathBuf::from(format!("/proc/{}/root", self.pid()))
            .join(path)
            .join(name)
    }

    fn wrapper(&self) -> Vec<String> {
        let pid = self.pid().to_string();
        ["nsenter", "-t", &pid, "-m"].map(str::to_owned).to_vec()
    }
}

/// While the disk is full: changes are refused cleanly, and existing data can still be read.
async fn assert_full_but_readable(harness: &mut VictimFixture) {
    let fetched = harness.send("GET", FIRST, &Value::Null).await;
    assert_eq!(fetched.status, 200, "{fetched:?}");
    for number in 0..5 {
        let answer = harness.provision(&format!("more-{number}")).await;
        if answer.status != 202 {
            assert_clean(&answer);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_gives_a_clean_503_until_there_is_space() {
    if !can(
        &["unshare", "-m", "mount", "-t", "tmpfs", "tiny", "/mnt"],
        "what a full disk does",
    ) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let disk = TinyDisk::new(dir.path()).await;
    let ballast = disk.inside("ballast");
    std::fs::write(&ballast, vec![7; BALLAST_BYTES]).expect("ballast");
    let mut harness = VictimFixture::new(|launch, _| {
        launch.wrapper = disk.wrapper();
        launch.db = disk.path.join("victim.db");
    })
    .await;
    harness.provision_until_accepted(FIRST).await;
    harness.everything_accepted_succeeds().await;
    let refused = harness.provision_until_refused(2000).await;
    assert_clean(&refused);
    assert_full_but_readable(&mut harness).await;
    std::fs::remove_file(&ballast).expect("room");
    harness.provision_until_accepted("after").await;
    harness.everything_accepted_succeeds().await;
    let mut harness = harness.again(|_| ()).await;
    harness.everything_accepted_succeeds().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_size_limit_gives_a_clean_503_until_it_is_lifted() {
    let script = format!("trap '' XFSZ; ulimit -S -f {BLOCKS_MAX}; exec \"$@\"");
    let limited = ["sh", "-c", &script, "sh"].map(str::to_owned).to_vec();
    let mut harness = VictimFixture::new(|launch, _| launch.wrapper = limited).await;
    let refused = harness.provision_until_refused(5000).await;
    assert_clean(&refused);
    let pid = harness
        .victim
        .pid()
        .and_then(|id| Pid::from_raw(id.cast_signed()));
    let unlimited = Rlimit {
        current: None,
        maximum: None,
    };
    prlimit(pid, Resource::Fsize, unlimited).expect("the limit is raised");
    harness.provision_until_accepted("after").await;
    harness.everything_accepted_succeeds().await;
    let mut harness = harness.again(|launch| launch.wrapper.clear()).await;
    harness.everything_accepted_succeeds().await;
}
