//! Processes of this run: started, inspected, and ended by their handle.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

/// One line on standard output.
pub(crate) fn print_line(line: &str) {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

/// A part of this run in a separate process; ended when dropped.
pub(crate) struct ChildProcess {
    child: Child,
    /// First line of its output.
    pub first_line: String,
}

impl ChildProcess {
    /// Starts this executable again, and waits for its first line.
    pub(crate) fn start(arguments: &[&str]) -> std::io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut first_line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut first_line)?;
        }
        let first_line = first_line.trim().to_owned();
        Ok(Self { child, first_line })
    }

    /// Number of its open files and connections.
    pub(crate) fn descriptors(&self) -> std::io::Result<usize> {
        let folder = format!("/proc/{}/fd", self.child.id());
        Ok(std::fs::read_dir(folder)?.count())
    }

    /// Its peak memory, in bytes.
    pub(crate) fn peak_memory(&self) -> std::io::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        peak_of(&status).ok_or_else(|| std::io::ErrorKind::InvalidData.into())
    }
}

fn peak_of(status: &str) -> Option<u64> {
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::peak_of;

    #[test]
    fn the_peak_is_read_in_bytes() {
        assert_eq!(peak_of("VmRSS: 7 kB\nVmHWM:\t  12 kB\n"), Some(12 * 1024));
        assert_eq!(peak_of(""), None);
    }
}
