//! Checks that need only the manifest, the names in the folder and the beginnings of its programs. Pure.
//!
//! Reading the folder is `inspect.rs`.

use super::{InspectionFinding, Severity};
use crate::action::Action;
use crate::folder::{EntryKind, FolderEntry};
use crate::manifest::{Entrypoint, MANIFEST_FILES, Manifest, Parameter, ValueKind};
use std::collections::BTreeMap;

/// Largest folder that gets no warning, in bytes.
const BYTES_USUAL: u64 = 64 * 1024 * 1024;

/// Suffixes of file names that usually hold secrets.
const SECRET_NAMES: [&str; 6] = [".env", ".pem", ".key", "id_rsa", "id_ed25519", ".pgpass"];

/// Words in the names of parameters that usually hold secrets.
const SECRET_WORDS: [&str; 4] = ["password", "passwd", "secret", "token"];

/// Program that evaluates texts of users as templates, unless they are marked as `entrypoint: playbooks` does.
const ANSIBLE: &str = "ansible-playbook";

/// Findings from names and kinds of files.
pub(super) fn names(entries: &[FolderEntry], manifest: &str) -> Vec<InspectionFinding> {
    let mut findings = Vec::new();
    let mut bytes = 0;
    for entry in entries {
        let path = entry.path.as_str();
        let file_name = path.rsplit('/').next().unwrap_or(path);
        match &entry.kind {
            EntryKind::File {
                bytes: size, open, ..
            } => {
                bytes += size;
                if *open {
                    let message = "may be changed by everybody: `chmod o-w` it";
                    findings.push(warning(path, message));
                }
                if SECRET_NAMES.iter().any(|end| file_name.ends_with(end)) {
                    let message = "looks like a secret: everybody who gets the bundle gets it; \
                                   ask for it under `secrets`";
                    findings.push(warning(path, message));
                }
                if path != manifest && MANIFEST_FILES.contains(&path) {
                    let message = format!("is passed over, because there is a {manifest}");
                    findings.push(warning(path, &message));
                }
            }
            EntryKind::Link { .. } if entry.leads_out() => {
                let message = "leads out of the folder, where nothing of it is taken along: copy \
                               what it leads to";
                findings.push(error(path, message));
            }
            EntryKind::Strange => {
                findings.push(error(
                    path,
                    "is not a file: remove the pipe, socket or device",
                ));
            }
            EntryKind::Folder | EntryKind::Link { .. } => (),
        }
    }
    if bytes > BYTES_USUAL {
        let message = format!(
            "stands in a folder of {} MiB, which is copied for every version: keep only what the \
             bundle needs",
            bytes >> 20
        );
        findings.push(warning(manifest, &message));
    }
    findings
}

/// Checks that every action the manifest promises can be started.
pub(super) fn actions(
    manifest: &Manifest,
    file: &str,
    entries: &[FolderEntry],
    heads: &BTreeMap<String, Vec<u8>>,
) -> Vec<InspectionFinding> {
    // Only the build of an image knows its actions.
    if manifest.image.is_some() {
        return Vec::new();
    }
    let mut findings = started(manifest, entries, heads);
    findings.extend(raw_ansible(manifest, file, heads));
    findings
}

/// Paths of files that the entry point may start: words of its command line, or scripts.
pub(super) fn entry_paths(manifest: &Manifest) -> Vec<String> {
    match &manifest.entry {
        Entrypoint::Program(words) => words.iter().map(|word| below(word).to_owned()).collect(),
        Entrypoint::Scripts => {
            let actions = Action::ALL.iter();
            actions.map(|action| format!("actions/{action}")).collect()
        }
        Entrypoint::Playbooks => Vec::new(),
    }
}

/// Warnings about an entry point that runs Ansible itself, which then gets the texts of users as templates.
fn raw_ansible(
    manifest: &Manifest,
    file: &str,
    heads: &BTreeMap<String, Vec<u8>>,
) -> Vec<InspectionFinding> {
    let message = format!(
        "runs {ANSIBLE} itself, which evaluates texts of users as templates, and those can run \
         commands: put the playbooks into playbooks/ACTION.yml and write `entrypoint: playbooks`"
    );
    let mut findings = Vec::new();
    for path in entry_paths(manifest) {
        let head = heads.get(&path).map_or(&[][..], Vec::as_slice);
        if path.contains(ANSIBLE) {
            findings.push(warning(file, &message));
        } else if head
            .windows(ANSIBLE.len())
            .any(|it| it == ANSIBLE.as_bytes())
        {
            findings.push(warning(&path, &message));
        }
    }
    findings
}

/// Checks that the entry point of every action is there and can be started.
fn started(
    manifest: &Manifest,
    entries: &[FolderEntry],
    heads: &BTreeMap<String, Vec<u8>>,
) -> Vec<InspectionFinding> {
    match &manifest.entry {
        Entrypoint::Program(words) => program(words, entries, heads),
        Entrypoint::Scripts => needed(manifest)
            .into_iter()
            .flat_map(|need| script(need, entries, heads))
            .collect(),
        Entrypoint::Playbooks => needed(manifest)
            .into_iter()
            .flat_map(|need| playbook(need, entries))
            .collect(),
    }
}

/// An action, why the bundle needs it, and the severity if it is missing.
type Need = (Action, &'static str, Severity);

fn needed(manifest: &Manifest) -> Vec<Need> {
    let plans = &manifest.plans;
    let changes = plans.iter().any(|plan| {
        let updatable = plan.parameters.iter().any(|it| it.updatable);
        updatable || !plan.updates_to.is_empty()
    });
    let binds = plans.iter().any(|plan| manifest.is_bindable(plan));
    let shares = manifest.share_provision_credentials;
    let mut needed: Vec<Need> = vec![
        (Action::Provision, "makes instances", Severity::Error),
        (Action::Deprovision, "removes instances", Severity::Error),
    ];
    if changes {
        let why = "makes the changes that its plans allow";
        needed.push((Action::Update, why, Severity::Error));
    }
    if binds && !shares {
        needed.push((Action::Bind, "makes bindings", Severity::Error));
        let why = "takes away again what bind gave";
        needed.push((Action::Unbind, why, Severity::Warning));
    }
    needed.retain(|(action, _, _)| manifest.rules(*action).offered);
    needed
}

fn script(
    (action, why, severity): Need,
    entries: &[FolderEntry],
    heads: &BTreeMap<String, Vec<u8>>,
) -> Vec<InspectionFinding> {
    let path = format!("actions/{action}");
    let Some(entry) = entries.iter().find(|it| it.path == path) else {
        let prefix = format!("{path}.");
        let other = entries.iter().find(|it| it.path.starts_with(&prefix));
        let hint = match other {
            Some(other) => format!("rename {} to {path}", other.path),
            None => format!("write it, or say `actions: {{{action}: false}}`"),
        };
        let message = format!("is missing, the script that {why}: {hint}");
        return vec![finding(severity, &path, &message)];
    };
    startable(entry, heads)
}

fn program(
    words: &[String],
    entries: &[FolderEntry],
    heads: &BTreeMap<String, Vec<u8>>,
) -> Vec<InspectionFinding> {
    let word = words.first().map_or("", String::as_str);
    let path = below(word);
    match entries.iter().find(|it| it.path == path) {
        Some(entry) => startable(entry, heads),
        // A name without a slash is searched on the PATH of the host.
        None if !word.contains('/') || word.starts_with('/') => Vec::new(),
        None => {
            let message = "is missing, the entry point that the manifest names";
            vec![error(path, message)]
        }
    }
}

/// A word of a command line as a path below the folder.
fn below(word: &str) -> &str {
    word.strip_prefix("./").unwrap_or(word)
}

/// Checks that a file can be started.
fn startable(entry: &FolderEntry, heads: &BTreeMap<String, Vec<u8>>) -> Vec<InspectionFinding> {
    let path = entry.path.as_str();
    match &entry.kind {
        EntryKind::File { executable, .. } if !executable => {
            let message = format!("cannot be executed: `chmod +x {path}`");
            vec![error(path, &message)]
        }
        EntryKind::Folder | EntryKind::Strange => vec![error(path, "must be a file")],
        EntryKind::File { .. } | EntryKind::Link { .. } => {
            let head = heads.get(path).map_or(&b"#!"[..], Vec::as_slice);
            let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
            if head.starts_with(b"\x7fELF") {
                Vec::new()
            } else if !head.starts_with(b"#!") {
                let message = "must begin with `#!` and what runs it, such as `#!/bin/sh`";
                vec![error(path, message)]
            } else if line.ends_with(b"\r") {
                let message = "has line ends of Windows, so what runs it is not found: save it \
                               with those of Unix";
                vec![error(path, message)]
            } else {
                Vec::new()
            }
        }
    }
}

fn playbook((action, why, severity): Need, entries: &[FolderEntry]) -> Option<InspectionFinding> {
    let mut names = ["playbooks", "project", "actions"]
        .into_iter()
        .flat_map(|place| ["yaml", "yml"].map(|ending| format!("{place}/{action}.{ending}")));
    if names.any(|name| entries.iter().any(|it| it.path == name)) {
        return None;
    }
    let path = format!("playbooks/{action}.yml");
    let message = format!("is missing, the playbook that {why}");
    Some(finding(severity, &path, &message))
}

/// Warnings about parts of the manifest that should be changed.
pub(super) fn advice(manifest: &Manifest, file: &str) -> Vec<InspectionFinding> {
    let mut findings = Vec::new();
    if manifest.examples.is_empty() {
        let message = "has no `examples`: they show users what works, and are what `sutler bundle \
                       test` runs";
        findings.push(warning(file, message));
    }
    for plan in &manifest.plans {
        let both = plan.parameters.iter().chain(&plan.bind_parameters);
        for parameter in both.filter(|it| looks_secret(it) && !it.secret) {
            let message = format!(
                "should say `secret: true` of {} in the plan {}, so that it is kept out of logs",
                parameter.name, plan.name
            );
            findings.push(warning(file, &message));
        }
    }
    findings
}

fn looks_secret(parameter: &Parameter) -> bool {
    let name = parameter.name.to_ascii_lowercase();
    let text = matches!(parameter.value_type.kind, ValueKind::Text { .. });
    text && SECRET_WORDS.iter().any(|word| name.contains(word))
}

fn finding(severity: Severity, file: &str, message: &str) -> InspectionFinding {
    InspectionFinding {
        severity,
        file: file.to_owned(),
        place: None,
        message: message.to_owned(),
    }
}

fn error(file: &str, message: &str) -> InspectionFinding {
    finding(Severity::Error, file, message)
}

fn warning(file: &str, message: &str) -> InspectionFinding {
    finding(Severity::Warning, file, message)
}
