//! Allowed dependencies between crates: the picture in `docs/ARCHITECTURE.md`, enforced.

use crate::none;
use std::collections::BTreeSet;
use sutler_tidy::{ArrowKind, Package, Repository, Workspace, licence, picture};

/// The crates of the product, and the others of them that each may depend on.
const ALLOWED: [(&str, &[&str]); 20] = [
    ("sutler-yaml", &[]),
    ("sutler-schema", &[]),
    ("sutler-osb", &[]),
    ("sutler-journal", &[]),
    ("sutler-store-sqlite", &["sutler-journal"]),
    ("sutler-store-sql", &["sutler-journal"]),
    ("sutler-store-etcd", &["sutler-journal"]),
    ("sutler-server", &[]),
    ("sutler-records", &["sutler-journal"]),
    (
        "sutler-broker",
        &[
            "sutler-osb",
            "sutler-journal",
            "sutler-records",
            "sutler-server",
            "sutler-schema",
            "sutler-yaml",
        ],
    ),
    ("sutler-client", &["sutler-osb"]),
    (
        "sutler-platform",
        &[
            "sutler-client",
            "sutler-osb",
            "sutler-journal",
            "sutler-records",
            "sutler-server",
            "sutler-schema",
        ],
    ),
    ("sutler-servers", &[]),
    ("sutler-store-mongodb", &["sutler-journal"]),
    (
        "sutler-bundle",
        &["sutler-osb", "sutler-schema", "sutler-yaml"],
    ),
    ("sutler-runner", &["sutler-bundle"]),
    (
        "sutler-bundle-service",
        &[
            "sutler-broker",
            "sutler-bundle",
            "sutler-osb",
            "sutler-registry",
            "sutler-runner",
            "sutler-yaml",
        ],
    ),
    ("sutler-registry", &["sutler-yaml"]),
    ("sutler-check", &["sutler-client"]),
    (
        "sutler",
        &[
            "sutler-client",
            "sutler-check",
            "sutler-osb",
            "sutler-journal",
            "sutler-store-sqlite",
            "sutler-store-sql",
            "sutler-store-etcd",
            "sutler-store-mongodb",
            "sutler-broker",
            "sutler-bundle",
            "sutler-bundle-service",
            "sutler-platform",
            "sutler-registry",
            "sutler-runner",
            "sutler-server",
            "sutler-yaml",
        ],
    ),
];

/// Third-party crates that only some crates of the product may depend on: each marks a seam.
const RESERVED: [(&str, &[&str]); 9] = [
    ("serde-saphyr", &["sutler-yaml"]),
    (
        "axum",
        &["sutler-server", "sutler-broker", "sutler-platform"],
    ),
    (
        "hyper",
        &["sutler-server", "sutler-broker", "sutler-platform"],
    ),
    ("hyper-util", &["sutler-server"]),
    ("rusqlite", &["sutler-store-sqlite"]),
    ("mongodb", &["sutler-store-mongodb"]),
    ("bollard", &["sutler-runner"]),
    ("clap", &["sutler"]),
    (
        "tokio",
        &[
            "sutler-journal",
            "sutler-store-sqlite",
            "sutler-store-sql",
            "sutler-store-etcd",
            "sutler-store-mongodb",
            "sutler-server",
            "sutler-records",
            "sutler-broker",
            "sutler-platform",
            "sutler-bundle-service",
            "sutler-runner",
            "sutler-registry",
            "sutler-client",
            "sutler-check",
            "sutler-servers",
            "sutler",
        ],
    ),
];

fn ours() -> (Repository, Workspace) {
    let repository = Repository::here();
    let workspace = Workspace::of(&repository);
    (repository, workspace)
}

fn is_product(package: &Package, repository: &Repository) -> bool {
    package.folder(repository).starts_with("crates")
}

#[test]
fn crates_depend_only_on_the_crates_they_may_know() {
    let (repository, workspace) = ours();
    let members: BTreeSet<&str> = workspace.members().map(|it| it.name.as_str()).collect();
    let mut complaints = Vec::new();
    for package in workspace.members().filter(|it| is_product(it, &repository)) {
        let name = &package.name;
        let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| known == name) else {
            complaints.push(format!("{name}: say in ALLOWED what it may depend on"));
            continue;
        };
        for arrow in package
            .arrows
            .iter()
            .filter(|it| members.contains(it.name.as_str()))
        {
            let target = arrow.name.as_str();
            let product = ALLOWED.iter().any(|(known, _)| *known == target);
            let fine = match arrow.kind {
                // Tests may depend on any crate of the product except the executable, and on no tools.
                Some(ArrowKind::Dev) => product && target != "sutler",
                Some(ArrowKind::Build) | None => allowed.contains(&target),
            };
            if !fine {
                complaints.push(format!(
                    "{name} → {target}: this arrow is not in the design"
                ));
            }
        }
    }
    none(&complaints);
}

#[test]
fn nothing_depends_on_tools_or_examples_but_tools() {
    let (repository, workspace) = ours();
    let product: BTreeSet<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
    let members: BTreeSet<&str> = workspace.members().map(|it| it.name.as_str()).collect();
    let mut complaints = Vec::new();
    for package in workspace.members() {
        if package.folder(&repository).starts_with("tools") {
            continue;
        }
        for arrow in &package.arrows {
            let target = arrow.name.as_str();
            if members.contains(target) && !product.contains(target) {
                complaints.push(format!(
                    "{} → {target}: tools and examples are leaves",
                    package.name
                ));
            }
        }
    }
    none(&complaints);
}

#[test]
fn web_servers_databases_and_runtimes_stay_behind_their_seams() {
    let (repository, workspace) = ours();
    let mut complaints = Vec::new();
    for package in workspace.members().filter(|it| is_product(it, &repository)) {
        for arrow in package
            .arrows
            .iter()
            .filter(|it| it.kind != Some(ArrowKind::Dev))
        {
            let reserved = RESERVED.iter().find(|(name, _)| *name == arrow.name);
            if reserved.is_some_and(|(_, users)| !users.contains(&package.name.as_str())) {
                complaints.push(format!("{} must not know {}", package.name, arrow.name));
            }
        }
    }
    none(&complaints);
}

#[test]
fn every_dependency_has_an_accepted_licence() {
    let (_, workspace) = ours();
    let mut complaints = Vec::new();
    for package in workspace.packages() {
        let stated = package.license.as_deref().unwrap_or_default();
        if !licence::is_accepted(stated) {
            complaints.push(format!(
                "{} {}: licence {stated:?}",
                package.name, package.version
            ));
        }
    }
    none(&complaints);
}

#[test]
fn the_licences_accepted_here_are_those_of_deny_toml() {
    let text = Repository::here()
        .read("deny.toml")
        .expect("deny.toml is there");
    let mut list = text
        .split("allow = [")
        .nth(1)
        .and_then(|it| it.split(']').next());
    let quoted = list
        .take()
        .unwrap_or_default()
        .split('"')
        .skip(1)
        .step_by(2);
    let listed: BTreeSet<&str> = quoted.collect();
    assert_eq!(listed, licence::ACCEPTED.into_iter().collect());
}

#[test]
fn every_member_inherits_the_lints_and_the_versions_of_the_workspace() {
    let (repository, workspace) = ours();
    let mut complaints = Vec::new();
    for package in workspace.members() {
        let path = package.folder(&repository).join("Cargo.toml");
        let text = repository.read(&path).unwrap_or_default();
        let mut section = "";
        let mut lints = false;
        for line in text.lines().map(str::trim) {
            if line.starts_with('[') {
                section = line;
            } else if section == "[lints]" && line == "workspace = true" {
                lints = true;
            } else if section.ends_with("dependencies]")
                && !line.is_empty()
                && !line.starts_with('#')
                && !line.contains("workspace = true")
            {
                complaints.push(format!(
                    "{}: not from the workspace: {line}",
                    path.display()
                ));
            }
        }
        if !lints {
            complaints.push(format!(
                "{}: says no `[lints] workspace = true`",
                path.display()
            ));
        }
    }
    none(&complaints);
}

#[test]
fn the_diagram_of_the_crates_matches_cargo_metadata() {
    let (repository, workspace) = ours();
    let text = repository.read(picture::PAGE).unwrap_or_default();
    let drawn = picture::draw(&repository, &workspace);
    let fresh = picture::with_picture(&text, &drawn);
    assert_eq!(fresh.as_deref(), Ok(text.as_str()), "{}", picture::COMMAND);
}

/// Repeated requests are compared with stored ones: a decimal must be the same after it was stored and read.
#[test]
fn decimals_of_json_are_read_exactly() {
    let manifest = Repository::here().read("Cargo.toml").unwrap_or_default();
    let mut lines = manifest.lines();
    let serde_json = lines.find(|line| line.starts_with("serde_json = "));
    assert!(
        serde_json.is_some_and(|line| line.contains("\"float_roundtrip\"")),
        "Cargo.toml: serde_json needs the feature float_roundtrip"
    );
}
