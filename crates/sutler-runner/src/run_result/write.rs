//! Writes a result directory for scripts that do not write JSON themselves: `sutler bundle emit`.
//!
//! Files are replaced as a whole, and concurrent writers lose nothing. Read back by `run_result/read.rs`.

use crate::run_spec::Vars;
use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A result file with keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyedFile {
    /// Credentials for the binding application.
    Credentials,
    /// State of the instance for later actions.
    State,
    /// State of the binding for later actions.
    BindingState,
}

impl KeyedFile {
    const fn file(self) -> &'static str {
        match self {
            Self::Credentials => "credentials.json",
            Self::State => "state.json",
            Self::BindingState => "binding_state.json",
        }
    }
}

/// Writer of a result directory.
#[derive(Debug)]
pub struct ResultWriter(PathBuf);

impl ResultWriter {
    /// A writer for this directory, which is `$SUTLER_RESULT_DIR` in a run.
    #[must_use]
    pub const fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// Sets and removes keys, and keeps those that were written before.
    ///
    /// # Errors
    /// The file cannot be written, or it does not hold a JSON object.
    pub fn merge(&self, what: KeyedFile, set: Vars, remove: &[String]) -> io::Result<()> {
        let _lock = self.lock()?;
        let path = self.0.join(what.file());
        let there = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)?,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => json!({}),
            Err(fault) => return Err(fault),
        };
        let Value::Object(there) = there else {
            return Err(io::Error::other(
                "what is there holds no JSON object: remove it",
            ));
        };
        let merged = merged(what, Vars(there), set, remove);
        self.replace(&path, &serde_json::to_vec(&merged.0)?)
    }

    /// Adds a line of progress.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn progress(&self, text: &str, percent: Option<u8>) -> io::Result<()> {
        let _lock = self.lock()?;
        let mut line = match percent {
            Some(percent) => json!({"percent": percent, "text": text}).to_string(),
            None => json!({ "text": text }).to_string(),
        };
        line.push('\n');
        let path = self.0.join("progress");
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)?;
        file.write_all(line.as_bytes())
    }

    /// Writes the URL of the instance's dashboard.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn dashboard_url(&self, url: &str) -> io::Result<()> {
        self.replace(&self.0.join("dashboard_url"), url.as_bytes())
    }

    /// Writes the error text for the user.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn error(&self, text: &str) -> io::Result<()> {
        self.replace(&self.0.join("error"), text.as_bytes())
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut aside = tempfile::NamedTempFile::new_in(&self.0)?;
        aside.write_all(bytes)?;
        aside.persist(path).map_err(|fault| fault.error)?;
        Ok(())
    }

    fn lock(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let lock = options.open(self.0.join(".lock"))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        Ok(lock)
    }
}

/// Keys removed from a state are kept as null, so that the stored state is changed too; credentials just lose them.
fn merged(what: KeyedFile, mut there: Vars, set: Vars, remove: &[String]) -> Vars {
    there.0.extend(set.0);
    for key in remove {
        match what {
            KeyedFile::Credentials => drop(there.0.remove(key)),
            KeyedFile::State | KeyedFile::BindingState => {
                drop(there.0.insert(key.clone(), Value::Null))
            }
        }
    }
    there
}

#[cfg(test)]
mod tests {
    use super::{KeyedFile, ResultWriter};
    use crate::run_result::ResultDir;
    use crate::run_spec::Vars;
    use serde_json::{Value, json};

    fn vars(value: Value) -> Vars {
        Vars(value.as_object().cloned().unwrap_or_default())
    }

    #[test]
    fn results_written_in_parts_are_read_as_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let writer = ResultWriter::new(folder.path().to_owned());
        for what in [
            KeyedFile::Credentials,
            KeyedFile::State,
            KeyedFile::BindingState,
        ] {
            let merge = |set, remove: &[&str]| {
                let remove: Vec<String> = remove.iter().map(ToString::to_string).collect();
                writer.merge(what, vars(set), &remove).expect("written");
            };
            merge(json!({"a": "1", "b": 2}), &[]);
            merge(json!({"c": [3]}), &["a"]);
        }
        writer.progress("begun", None).expect("written");
        writer.progress("half", Some(50)).expect("written");
        writer
            .dashboard_url("https://example.org")
            .expect("written");
        writer.error("too small").expect("written");
        let result = ResultDir::open(folder.path()).expect("opened").read();
        assert_eq!(result.credentials, Some(vars(json!({"b": 2, "c": [3]}))));
        let state = Some(vars(json!({"a": null, "b": 2, "c": [3]})));
        assert_eq!((&result.state, &result.binding_state), (&state, &state));
        let progress = result.progress.expect("progress");
        assert_eq!(
            (progress.text.as_str(), progress.percent),
            ("half", Some(50))
        );
        assert_eq!(result.dashboard_url.as_deref(), Some("https://example.org"));
        assert_eq!(result.error.as_deref(), Some("too small"));
    }

    #[test]
    fn concurrent_writers_lose_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        std::thread::scope(|scope| {
            for n in 0..16 {
                let writer = ResultWriter::new(folder.path().to_owned());
                scope.spawn(move || {
                    let mut one = Vars::default();
                    one.0.insert(format!("key{n}"), json!(n));
                    writer.merge(KeyedFile::State, one, &[]).expect("written");
                });
            }
        });
        let result = ResultDir::open(folder.path()).expect("opened").read();
        assert_eq!(result.state.expect("state").0.len(), 16);
    }
}
