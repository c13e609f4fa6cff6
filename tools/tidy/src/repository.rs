//! The files of the repository: everything except build output and hidden directories.

use std::fs;
use std::path::{Path, PathBuf};

/// The working tree.
#[derive(Clone, Debug)]
pub struct Repository {
    root: PathBuf,
}

impl Repository {
    /// The repository whose tests cargo runs. Not the one this was compiled in: a build directory may be
    /// shared by several working trees.
    #[must_use]
    pub fn here() -> Self {
        let told = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let manifest = told.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
        let root = manifest.ancestors().nth(2).unwrap_or(&manifest);
        Self {
            root: root.to_owned(),
        }
    }

    /// Its top directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// All files, by their path from the top, sorted.
    ///
    /// # Panics
    /// A directory cannot be read.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        self.collect(&self.root, &mut found);
        found.sort();
        found
    }

    /// All files whose name has this suffix.
    #[must_use]
    pub fn files_ending(&self, ending: &str) -> Vec<PathBuf> {
        let mut files = self.files();
        files.retain(|path| path.to_string_lossy().ends_with(ending));
        files
    }

    /// The text of a file; `None` if it does not exist or is not text.
    #[must_use]
    pub fn read(&self, path: impl AsRef<Path>) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }

    fn collect(&self, folder: &Path, found: &mut Vec<PathBuf>) {
        let entries = fs::read_dir(folder).expect("a folder of the repository can be read");
        for entry in entries.flatten() {
            let path = entry.path();
            let name = entry.file_name();
            let name = name.to_string_lossy();
            // `.ci` is ours; other hidden directories and the build output are not.
            let hidden = name.starts_with('.') && name != ".ci";
            if hidden || name == "target" {
                continue;
            }
            if path.is_dir() {
                self.collect(&path, found);
            } else if let Ok(inside) = path.strip_prefix(&self.root) {
                found.push(inside.to_owned());
            }
        }
    }
}
