//! The corpus: handwritten seeds, and every input that ever broke a property.
//!
//! One directory per target. The name of a file describes it; `regression-…` was found by a run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// One input of the corpus.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The file's name.
    pub name: String,
    /// The input.
    pub bytes: Vec<u8>,
}

/// The corpus of a target, by name.
///
/// # Errors
/// The directory or a file cannot be read.
pub fn entries(target: &str) -> io::Result<Vec<Entry>> {
    let mut found = Vec::new();
    for file in fs::read_dir(folder(target))? {
        let path = file?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        found.push(Entry {
            name,
            bytes: fs::read(&path)?,
        });
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

/// Saves an input; returns its path.
///
/// # Errors
/// The file cannot be written.
pub fn keep(target: &str, prefix: &str, input: &[u8]) -> io::Result<PathBuf> {
    // FNV-1a: the name only has to be unique.
    let hash = input.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let path = folder(target).join(format!("{prefix}-{hash:016x}"));
    fs::create_dir_all(folder(target))?;
    fs::write(&path, input)?;
    Ok(path)
}

fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target)
}
