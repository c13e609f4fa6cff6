//! Finding programs on this machine, and saying which are missing and which ran.
//!
//! Not here: starting them (`dir.rs`, `guard.rs`).

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Names a file to which every run adds the servers it used; `./test` sums them up.
const RAN: &str = "SUTLER_TEST_RAN";

/// The folder with all of these programs: on the PATH, in one of the roots, or in `bin` below one.
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

/// The folders of versions below a root, by what their names sort like.
fn newest_first(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .collect();
    found.sort();
    found.reverse();
    found
}

/// Says it even while tests succeed, which macros do not.
pub fn print_line(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// A server that is not on this machine.
pub struct MissingServer {
    /// What it is called among the stores: `postgres`.
    pub name: &'static str,
    /// The program that was looked for.
    pub program: &'static str,
    /// What to do.
    pub how: &'static str,
    /// No distribution has it, so that even CI goes without.
    pub may_be: bool,
}

impl MissingServer {
    /// Says that a test is skipped.
    ///
    /// # Panics
    /// With `CI=true`, unless it may be missing there, too: CI tests everything.
    pub fn report(&self) {
        let Self { name, how, .. } = self;
        let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
        assert!(!ci || self.may_be, "{name} is missing: {how}");
        print_line(&format!("skipped: a test needs {name}: {how}"));
        record_ran(&format!("{name} skipped: no {}", self.program));
    }
}

/// Adds a line for the last line of `./test`: a server and its version, or why there was none.
pub fn record_ran(line: &str) {
    let Some(file) = std::env::var_os(RAN) else {
        return;
    };
    let file = fs::File::options().append(true).create(true).open(file);
    if let Ok(mut file) = file {
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }
}

/// The first thing in a text that looks like a version, without what distributions add to it.
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
    fn versions_are_found_in_what_servers_say_of_themselves() {
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
