//! New bundles have no findings, and their actions work.

use super::{Template, scaffold};
use crate::inspect::inspect;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn made(template: Template) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for file in scaffold("my-own", template).expect("a bundle") {
        let path = folder.path().join(file.path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(&path, file.content).expect("a file");
        let mode = if file.executable { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("its mode");
    }
    folder
}

#[test]
fn a_new_bundle_has_nothing_to_complain_about() {
    for template in [Template::Shell, Template::Python, Template::Ansible] {
        let folder = made(template);
        let inspection = inspect(folder.path()).expect("a bundle");
        assert_eq!(inspection.findings, [], "{template:?}");
        let manifest = inspection.manifest.expect("a manifest");
        assert_eq!(manifest.name, "my-own");
        assert_eq!(manifest.examples.len(), 2);
    }
}

#[test]
fn names_that_a_bundle_cannot_have_are_refused() {
    for name in ["", "My", "a b", "-a", "a-", "../a", &"a".repeat(51)] {
        let refused = scaffold(name, Template::Shell).expect_err(name);
        assert!(refused.contains("my-database"), "{refused}");
    }
}

/// Runs actions of a bundle as a runner would.
struct ActionRunner {
    folder: tempfile::TempDir,
    program: fn(&str) -> PathBuf,
}

impl ActionRunner {
    fn run(&self, action: &str, vars: &Value) -> (Output, PathBuf) {
        let results = self.folder.path().join(format!("results-{action}"));
        fs::create_dir_all(&results).expect("a folder");
        let file = self.folder.path().join("vars.json");
        fs::write(&file, vars.to_string()).expect("a file");
        let program = self.folder.path().join((self.program)(action));
        let output = Command::new(program)
            .arg(action)
            .arg("--extra-vars")
            .arg(format!("@{}", file.display()))
            .env("SUTLER_RESULT_DIR", &results)
            .env("SUTLER_VARS_FILE", &file)
            .output()
            .expect("it starts");
        (output, results)
    }

    fn check_life(&self) {
        let vars = json!({ "_apb_service_instance_id": "i1", "greeting": "Hi" });
        let (output, results) = self.run("provision", &vars);
        assert!(output.status.success(), "{output:?}");
        let state = read(&results, "state.json");
        assert_eq!(state, json!({ "name": "greeting-i1", "greeting": "Hi" }));
        let vars = json!({
            "_apb_service_binding_id": "b1",
            "state_name": "greeting-i1",
            "state_greeting": "Hi",
        });
        let (output, results) = self.run("bind", &vars);
        assert!(output.status.success(), "{output:?}");
        let credentials = read(&results, "credentials.json");
        assert_eq!(credentials["user"], json!("user-b1"));
        assert_eq!(credentials["greeting"], json!("Hi"));
        let password = credentials["password"].as_str().expect("a password");
        assert_eq!(password.len(), 32);
        assert_eq!(
            read(&results, "binding_state.json"),
            json!({ "user": "user-b1" })
        );
        // The other two templates write a message for the user; Ansible prints its own.
        for action in ["unbind", "deprovision"] {
            let (output, _) = self.run(action, &json!({}));
            assert!(output.status.success(), "{action}: {output:?}");
        }
    }
}

fn read(results: &Path, name: &str) -> Value {
    let text = fs::read_to_string(results.join(name)).expect("a result");
    serde_json::from_str(&text).expect("JSON")
}

/// Whether a program is on the PATH. With `CI=true` its absence is a failure.
fn is_there(program: &str) -> bool {
    let found = std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    });
    let must = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(
        found || !must,
        "{program} is not installed: the test needs it"
    );
    if !found {
        eprintln!("skipped: {program} is not installed");
    }
    found
}

#[test]
fn the_shell_template_runs_all_its_actions() {
    if !is_there("jq") {
        return;
    }
    let runner = ActionRunner {
        folder: made(Template::Shell),
        program: |action| Path::new("actions").join(action),
    };
    runner.check_life();
    let (output, results) = runner.run("update", &json!({}));
    assert_eq!(output.status.code(), Some(1));
    let error = fs::read_to_string(results.join("error")).expect("an error");
    assert!(error.contains("nothing to change"), "{error}");
}

#[test]
fn the_python_template_runs_all_its_actions() {
    if !is_there("python3") {
        return;
    }
    let runner = ActionRunner {
        folder: made(Template::Python),
        program: |_| "run".into(),
    };
    runner.check_life();
    let (output, _) = runner.run("explode", &json!({}));
    assert_eq!(output.status.code(), Some(8));
}

#[test]
fn the_ansible_template_runs_all_its_actions() {
    if !is_there("ansible-playbook") {
        return;
    }
    let folder = made(Template::Ansible);
    // A broker starts `entrypoint: playbooks` like this.
    let program = folder.path().join("start");
    let script = "#!/bin/sh\nplaybook=$(dirname \"$0\")/playbooks/$1.yml; shift\n\
                  exec ansible-playbook \"$playbook\" \"$@\"\n";
    fs::write(&program, script).expect("a file");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("its mode");
    let runner = ActionRunner {
        folder,
        program: |_| "start".into(),
    };
    runner.check_life();
}
