//! The machine of the figures: file system, and the duration of one fdatasync.

use crate::load::BoxError;
use crate::report::{median, print_line};
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

/// Prints it, and refuses a file system without durable storage.
pub(crate) fn describe(dir: &Path) -> Result<(), BoxError> {
    let output = std::process::Command::new("stat")
        .args(["-f", "-c", "%T"])
        .arg(dir)
        .output()?;
    let kind = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if kind == "tmpfs" || kind == "ramfs" {
        return Err(
            "this directory is in memory, where fsync costs nothing; give --dir on a disk".into(),
        );
    }
    let cores = std::thread::available_parallelism()?;
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    print_line(&format!(
        "file system {kind}, {cores} cores, load average {}",
        load.trim()
    ));
    print_line(&format!(
        "one fdatasync after a 4 kB write: {:.0} µs (median of 100)",
        sync_micros(dir)?
    ));
    Ok(())
}

fn sync_micros(dir: &Path) -> std::io::Result<f64> {
    let path = dir.join("sync-probe");
    let mut file = std::fs::File::create(&path)?;
    let mut times = Vec::new();
    for _ in 0..100 {
        file.write_all(&[7; 4096])?;
        let start = Instant::now();
        file.sync_data()?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    std::fs::remove_file(path)?;
    Ok(median(&times))
}
