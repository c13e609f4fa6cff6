//! Builds the test binaries of the copy once, and returns their paths.

use crate::BoxError;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The crates of the mutated lines; each may depend only on those before it. Faults of the simulation may also be in
/// other crates.
const CRATES: [&str; 3] = ["sutler-osb", "sutler-server", "sutler-broker"];

/// The simulation, whose program is built with its tests.
const SIMULATION: &str = "sutler-simulate";

/// A built test binary.
#[derive(Clone, Debug)]
pub(crate) struct Binary {
    pub path: PathBuf,
    /// The package's directory in the copy: tests run there.
    pub package: PathBuf,
    /// The crate's root in the source, such as `src/lib.rs`.
    pub source: PathBuf,
    /// All tests in it.
    pub tests: Vec<String>,
}

impl Binary {
    /// Whether a mutation of that file can affect this binary.
    pub(crate) fn sees(&self, file: &Path) -> bool {
        let nth = |path: &Path| {
            let named = |name: &&str| path.iter().any(|part| *part == **name);
            CRATES.iter().position(named)
        };
        nth(file) <= nth(&self.package)
    }

    /// The command that runs it, as cargo would.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command
            .current_dir(&self.package)
            .env("CARGO_MANIFEST_DIR", &self.package)
            .env("INSTA_UPDATE", "no")
            .env("INSTA_WORKSPACE_ROOT", &self.package)
            .env_remove("SUTLER_MUTANT")
            .stdin(Stdio::null());
        command
    }
}

/// Builds all of them.
pub(crate) fn build(tree: &Path, into: &Path) -> Result<Vec<Binary>, BoxError> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(["test", "--no-run", "--tests", "--message-format=json"])
        .current_dir(tree);
    command.args(CRATES.iter().flat_map(|name| ["-p", name]));
    command.args(["-p", SIMULATION]);
    let built = command
        .env("CARGO_TARGET_DIR", into)
        .stderr(Stdio::inherit())
        .output()?;
    let messages = String::from_utf8_lossy(&built.stdout);
    let messages = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut binaries = Vec::new();
    for message in messages {
        let word = |pointer: &str| message.pointer(pointer).and_then(Value::as_str);
        if word("/message/level") == Some("error") {
            eprintln!("{}", word("/message/rendered").unwrap_or_default());
        }
        let (Some(path), Some(manifest), Some(source), Some(true)) = (
            word("/executable"),
            word("/manifest_path"),
            word("/target/src_path"),
            message.pointer("/profile/test").and_then(Value::as_bool),
        ) else {
            continue;
        };
        let package = Path::new(manifest).parent().unwrap_or(tree).to_owned();
        let source = Path::new(source).strip_prefix(&package)?.to_owned();
        let binary = Binary {
            path: path.into(),
            package,
            source,
            tests: Vec::new(),
        };
        binaries.push(Binary {
            tests: tests_of(&binary)?,
            ..binary
        });
    }
    if built.status.success() {
        Ok(binaries)
    } else {
        Err("the copy with the mutations does not build".into())
    }
}

fn tests_of(binary: &Binary) -> Result<Vec<String>, BoxError> {
    let listed = binary
        .command()
        .args(["--list", "--format=terse"])
        .output()?;
    let text = String::from_utf8(listed.stdout)?;
    Ok(text
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .map(str::to_owned)
        .collect())
}
