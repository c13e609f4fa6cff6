//! Inspection of bundles that have every fault that is visible in the folder.

use super::{Inspection, Severity, inspect};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

const MANIFEST: &str = "
name: some
description: Some.
bindable: true
plans:
  - name: p
    description: P.
    parameters:
      - {name: db_password, type: string, updatable: true}
examples: [{name: one}]
";

fn write(folder: &Path, path: &str, text: &str, mode: u32) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
    fs::write(&path, text).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("its mode");
}

fn lines(inspection: &Inspection) -> Vec<String> {
    inspection
        .findings
        .iter()
        .map(super::InspectionFinding::line)
        .collect()
}

#[test]
fn all_findings_are_reported_at_once_with_hints() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    write(root, "bundle.yml", MANIFEST, 0o644);
    write(root, "apb.yml", "name: other", 0o644);
    write(root, "actions/provision", "#!/bin/sh\n", 0o644);
    write(root, "actions/deprovision", "echo hello\n", 0o755);
    write(root, "actions/update", "#!/bin/sh\r\n", 0o755);
    write(root, "actions/bind.sh", "#!/bin/sh\n", 0o755);
    write(root, "server.pem", "key", 0o666);
    symlink("/etc/hostname", root.join("actions/host")).expect("a link");
    let inspection = inspect(root).expect("a bundle");
    let expected = [
        "bundle.yml: warning: should say `secret: true` of db_password in the plan p, so that it is kept out of logs",
        "actions/bind: error: is missing, the script that makes bindings: rename actions/bind.sh to actions/bind",
        "actions/deprovision: error: must begin with `#!` and what runs it, such as `#!/bin/sh`",
        "actions/host: error: leads out of the folder, where nothing of it is taken along: copy what it leads to",
        "actions/provision: error: cannot be executed: `chmod +x actions/provision`",
        "actions/unbind: warning: is missing, the script that takes away again what bind gave: write it, or say `actions: {unbind: false}`",
        "actions/update: error: has line ends of Windows, so what runs it is not found: save it with those of Unix",
        "apb.yml: warning: is passed over, because there is a bundle.yml",
        "server.pem: warning: may be changed by everybody: `chmod o-w` it",
        "server.pem: warning: looks like a secret: everybody who gets the bundle gets it; ask for it under `secrets`",
    ];
    assert_eq!(lines(&inspection), expected);
    assert_eq!(inspection.count(Severity::Error), 5);
}

#[test]
fn faults_of_the_manifest_have_their_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    write(
        folder.path(),
        "bundle.yml",
        "name: a\nplans: 5\ncolor: x\n",
        0o644,
    );
    let inspection = inspect(folder.path()).expect("a bundle");
    let expected = [
        "bundle.yml:1:1: error: description is required: say what it is",
        "bundle.yml:2:8: error: plans must be a list, but is a number",
        "bundle.yml:3:1: error: color is not known",
    ];
    assert_eq!(lines(&inspection), expected);
}

#[test]
fn a_bundle_of_playbooks_needs_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    let manifest = "{version: 1.0, name: a, description: d, plans: [{name: p, description: d}]}";
    write(root, "apb.yml", manifest, 0o644);
    write(root, "playbooks/provision.yaml", "[]", 0o644);
    let inspection = inspect(root).expect("a bundle");
    let lines = lines(&inspection);
    let missing =
        "playbooks/deprovision.yml: error: is missing, the playbook that removes instances";
    assert!(lines.iter().any(|line| line == missing), "{lines:#?}");
    assert_eq!(inspection.count(Severity::Error), 1);
}

#[test]
fn an_entry_point_that_runs_ansible_itself_gets_a_warning() {
    const PLAIN: &str =
        "name: a\ndescription: d\nplans: [{name: p, description: d}]\nexamples: [{name: one}]\n";
    // Longer than what is read of other files.
    let program = format!("#!/bin/sh\n# {}\n", "x".repeat(1000));
    let run = format!("{program}exec ansible-playbook \"playbooks/$1.yml\" \"$@\"\n");
    let with = |entry: &str, path: &str, mode: u32, text: &str| {
        let folder = tempfile::tempdir().expect("a folder");
        let manifest = format!("{PLAIN}entrypoint: {entry}\n");
        write(folder.path(), "bundle.yml", &manifest, 0o644);
        for action in ["provision", "deprovision"] {
            let script = format!("actions/{action}");
            write(folder.path(), &script, "#!/bin/sh\n", 0o755);
        }
        write(folder.path(), path, text, mode);
        lines(&inspect(folder.path()).expect("a bundle"))
    };
    for (entry, path, mode, named) in [
        ("[./run]", "run", 0o755, "run"),
        ("[/bin/sh, run.sh]", "run.sh", 0o644, "run.sh"),
        ("scripts", "actions/bind", 0o755, "actions/bind"),
    ] {
        let lines = with(entry, path, mode, &run);
        let [line] = &lines[..] else {
            panic!("{entry}: {lines:#?}");
        };
        let warning = format!("{named}: warning: runs ansible-playbook itself");
        assert!(line.starts_with(&warning), "{line}");
        assert!(line.ends_with("write `entrypoint: playbooks`"), "{line}");
    }
    let lines = with("[ansible-playbook, site.yml]", "site.yml", 0o644, "[]");
    let [line] = &lines[..] else {
        panic!("{lines:#?}");
    };
    assert!(line.starts_with("bundle.yml: warning: runs"), "{line}");
    assert_eq!(with("[./run]", "run", 0o755, &program), [""; 0]);
    assert_eq!(with("[./run]", "notes", 0o644, &run).len(), 1, "no program");
    assert_eq!(with("scripts", "tools/other", 0o755, &run), [""; 0]);
}

#[test]
fn a_folder_without_a_bundle_gives_a_hint_how_to_begin() {
    let folder = tempfile::tempdir().expect("a folder");
    let fault = inspect(folder.path()).expect_err("nothing is there");
    assert!(fault.to_string().contains("sutler bundle new"), "{fault}");
    let fault = inspect(&folder.path().join("nowhere")).expect_err("not even a folder");
    assert!(fault.to_string().contains("cannot be read"), "{fault}");
}

#[test]
fn the_bundles_that_are_shipped_have_no_fault() {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bundles");
    let folders = fs::read_dir(shipped).expect("the bundles");
    let folders = folders.map(|entry| entry.expect("an entry").path());
    let mut bundles = 0;
    for folder in folders.filter(|path| path.is_dir()) {
        let inspection = inspect(&folder).expect("a bundle");
        let errors: Vec<String> = lines(&inspection);
        assert_eq!(inspection.count(Severity::Error), 0, "{errors:#?}");
        bundles += 1;
    }
    assert!(bundles > 0, "no bundle was found");
}
