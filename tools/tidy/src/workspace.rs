//! Metadata of cargo: packages, their dependencies and their licences.

use crate::Repository;
use serde::Deserialize;
use std::path::PathBuf;
use std::process::Command;

/// All packages, ours and third-party ones.
#[derive(Debug, Deserialize)]
pub struct Workspace {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
}

/// One package.
#[derive(Debug, Deserialize)]
pub struct Package {
    id: String,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its licence expression.
    pub license: Option<String>,
    /// Its `Cargo.toml`.
    pub manifest_path: PathBuf,
    /// Its dependencies.
    #[serde(rename = "dependencies")]
    pub arrows: Vec<Arrow>,
}

/// One dependency.
#[derive(Debug, Deserialize)]
pub struct Arrow {
    /// Name of the package.
    pub name: String,
    /// Kind; `None` for a dependency of the product.
    #[serde(default)]
    pub kind: Option<ArrowKind>,
}

/// Kind of a dependency that is not part of the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ArrowKind {
    /// Build scripts.
    Build,
    /// Tests, examples and benchmarks.
    Dev,
}

impl Workspace {
    /// Runs `cargo metadata`.
    ///
    /// # Panics
    /// Cargo fails, for instance because `Cargo.lock` is not up to date.
    #[must_use]
    pub fn of(repository: &Repository) -> Self {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["metadata", "--format-version", "1", "--locked"])
            .current_dir(repository.root())
            .output()
            .expect("cargo can be run");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "cargo metadata: {complaint}");
        serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON of the known form")
    }

    /// The packages of this repository.
    pub fn members(&self) -> impl Iterator<Item = &Package> {
        let is_ours = |package: &&Package| self.workspace_members.contains(&package.id);
        self.packages.iter().filter(is_ours)
    }

    /// Every package in the lock file, including ours.
    #[must_use]
    pub fn packages(&self) -> &[Package] {
        &self.packages
    }
}

impl Package {
    /// Its directory from the top of the repository, such as `crates/sutler`.
    #[must_use]
    pub fn folder(&self, repository: &Repository) -> PathBuf {
        let folder = self.manifest_path.parent().unwrap_or(&self.manifest_path);
        folder
            .strip_prefix(repository.root())
            .unwrap_or(folder)
            .to_owned()
    }
}
