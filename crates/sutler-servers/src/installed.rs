//! Finds installed programs, and reports which are missing and which ran.
//!
//! Programs are started in `server_dir.rs` and `server_guard.rs`.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Variable with the file to which every run adds the servers it used; `./test` prints a summary.
const RAN: &str = "SUTLER_TEST_RAN";

/// Directory that contains all these programs: on the PATH, a root, or `bin` below a root.
#[must_use]
pub fn find_programs(needed: &[&str], roots: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    for root in roots {
        folders.push(PathBuf::from(root));
        folders.extend(newest_first(Path::new(root)));
    }
    let has_all = |folder: &PathBuf| needed.iter().all(|name| folder.join(name).is_file());
    folders.into_iter().find(has_all)
}

/// Directories of versions below a root, newest first.
fn newest_first(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .collect();
    found.sort();
    found.reverse();
    found
}

/// Prints a line even while tests succeed, which macros do not.
pub fn print_line(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// A server that is not installed.
pub struct MissingServer {
    /// Name of the store: `postgres`.
    pub name: &'static str,
    /// Missing program.
    pub program: &'static str,
    /// How to install it.
    pub how: &'static str,
    /// Not packaged by distributions, so CI may lack it, too.
    pub may_be: bool,
}

impl MissingServer {
    /// Reports that a test is skipped.
    ///
    /// # Panics
    /// With `CI=true`, unless the server is optional there: CI tests everything.
    pub fn report(&self) {
        let Self { name, how, .. } = self;
        let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
        assert!(!ci || self.may_be, "{name} is missing: {how}");
        print_line(&format!("skipped: a test needs {name}: {how}"));
        record_ran(&format!("{name} skipped: no {}", self.program));
    }
}

/// Adds a line to the summary of `./test`: a server and its version, or why there is none.
pub fn record_ran(line: &str) {
    let Some(file) = std::env::var_os(RAN) else {
        return;
    };
    let file = fs::File::options().append(true).create(true).open(file);
    if let Ok(mut file) = file {
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }
}

/// The first version number in a text, without suffixes of distributions.
#[must_use]
pub fn first_version(text: &str) -> Option<String> {
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|it| it.is_ascii_digit());
    let version = |word: &str| {
        let end = word.find(|it: char| !it.is_ascii_digit() && it != '.');
        let word = &word[..end.unwrap_or(word.len())];
        (word.contains('.') && word.split('.').all(is_number)).then(|| word.to_owned())
    };
    let words = text.split(|it: char| it.is_whitespace() || "=v".contains(it));
    words.into_iter().find_map(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_the_output_of_servers() {
        for (text, version) in [
            (
                "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)",
                "15.18",
            ),
            (
                "mariadbd  Ver 10.11.14-MariaDB-0+deb12u2 for debian-linux-gnu on x86_64",
                "10.11.14",
            ),
            ("/usr/sbin/mysqld  Ver 8.0.43 for Linux on x86_64", "8.0.43"),
            ("etcd Version: 3.4.23\nGit SHA: Not provided", "3.4.23"),
            ("Redis server v=7.0.15 sha=00000000:0 malloc=x", "7.0.15"),
            ("db version v8.2.1\nBuild Info: {", "8.2.1"),
        ] {
            assert_eq!(first_version(text).as_deref(), Some(version), "{text}");
        }
        assert_eq!(first_version("no version at all, 3"), None);
    }

    #[test]
    fn programs_are_found_together_or_not_at_all() {
        assert_eq!(
            find_programs(&["sh", "no-such-program-at-all"], &["/bin"]),
            None
        );
        assert!(find_programs(&["sh"], &["/bin"]).is_some());
    }
}
