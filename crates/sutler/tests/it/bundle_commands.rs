//! `sutler bundle`: from a new bundle to its image, and faults as text and JSON.

use crate::process::{folder, run_sutler};
use std::fs;
use std::path::Path;

#[test]
fn help_of_bundles_names_every_verb() {
    let output = run_sutler(folder().path(), &["bundle", "--help"]);
    assert_eq!(output.code, Some(0));
    for verb in ["new", "check", "docs", "pack", "run", "test", "emit"] {
        let line = format!("\n  {verb} ");
        assert!(output.stdout.contains(&line), "{verb}: {}", output.stdout);
    }
}

#[test]
fn a_new_bundle_can_be_checked_shown_and_packed() {
    let folder = folder();
    let run = |arguments: &[&str]| run_sutler(folder.path(), &[&["bundle"], arguments].concat());
    for template in ["shell", "python", "ansible"] {
        let made = run(&["new", template, "--template", template]);
        assert_eq!((made.code, made.stderr.as_str()), (Some(0), ""));
        let checked = run(&["check", "--strict", template]);
        assert_eq!(
            checked.stdout,
            format!("{template}: 0 errors, 0 warnings\n")
        );
        assert_eq!(checked.code, Some(0));
    }
    let again = run(&["new", "shell"]);
    let expected = "sutler: shell is there already: choose another name, or another --dir\n";
    assert_eq!((again.code, again.stderr.as_str()), (Some(1), expected));
    let page = run(&["docs", "shell"]);
    assert!(page.stdout.starts_with("# shell\n"), "{}", page.stdout);
    let packed = run(&["pack", "shell", "-o", "one.tar"]);
    assert_eq!(packed.code, Some(0), "{}", packed.stderr);
    assert_eq!(
        run(&["pack", "shell", "-o", "two.tar"]).stdout,
        packed.stdout
    );
    let read = |name: &str| fs::read(folder.path().join(name)).expect("an image");
    assert!(
        read("one.tar") == read("two.tar"),
        "the same bundle gives the same bytes"
    );
    let refused = run(&["pack", "nowhere", "-o", "three.tar"]);
    assert_eq!(refused.code, Some(1));
    let left = fs::read_dir(folder.path()).expect("a folder");
    let left = left.filter(|it| it.as_ref().is_ok_and(|it| it.path().is_file()));
    assert_eq!(left.count(), 2, "half an image is left");
}

#[test]
fn faults_of_a_bundle_are_printed_with_their_locations() {
    let folder = folder();
    let manifest = "name: hello\ndescription: Says hello.\nplan:\n  - {name: p}\n";
    fs::write(folder.path().join("bundle.yml"), manifest).expect("a manifest");
    let checked = run_sutler(folder.path(), &["bundle", "check"]);
    let expected = "\
bundle.yml:1:1: error: plans must have at least one plan
bundle.yml:3:1: error: plan is not known, did you mean `plans`?
.: 2 errors, 0 warnings
";
    assert_eq!((checked.code, checked.stdout.as_str()), (Some(1), expected));
    let checked = run_sutler(folder.path(), &["bundle", "check", "-o", "json", "."]);
    assert_eq!(checked.code, Some(1));
    let report: serde_json::Value = serde_json::from_str(&checked.stdout).expect("JSON");
    assert_eq!(report["errors"], 2);
    assert_eq!(report["findings"][1]["line"], 3);
    assert_eq!(report["findings"][1]["severity"], "error");
}

/// Writes a bundle whose provision is this script; all other actions do nothing and succeed.
fn write_bundle(at: &Path, provision: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let manifest = "\
name: things
description: Makes things.
plans:
  - name: small
    description: One thing.
    parameters:
      - {name: size, type: integer, minimum: 1, updatable: true}
examples:
  - {name: grows, plan: small, parameters: {size: 1}, update: {parameters: {size: 2}}}
";
    fs::create_dir_all(at.join("actions")).expect("a folder");
    fs::write(at.join("bundle.yml"), manifest).expect("a manifest");
    for (action, text) in [
        ("provision", provision),
        ("update", ""),
        ("deprovision", ""),
    ] {
        let path = at.join("actions").join(action);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
    }
}

/// Replaces the parts of a report that differ between runs.
fn settled(report: &str) -> String {
    let line = |line: &str| {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        if let Some(unit) = words.iter().position(|it| *it == "ms") {
            words[unit - 1] = "N";
        }
        if let Some(logs) = words.iter().position(|it| *it == "logs") {
            words[logs + 1] = "OPERATION.";
        }
        words.join(" ") + "\n"
    };
    report.lines().map(line).collect()
}

#[test]
fn a_bundle_test_prints_its_rounds_and_the_result_of_every_step() {
    let folder = folder();
    write_bundle(&folder.path().join("things"), "echo a thing is made");
    let tested = run_sutler(folder.path(), &["bundle", "test", "things"]);
    assert_eq!(
        settled(&tested.stdout),
        include_str!("cli_messages/bundle-test.txt"),
        "{}",
        tested.stderr
    );
    assert_eq!(tested.code, Some(0));
}

#[test]
fn a_failed_step_is_printed_with_its_output_and_its_resources_are_removed() {
    let folder = folder();
    let provision = "echo no clay left; exit 3";
    write_bundle(&folder.path().join("things"), provision);
    let tested = run_sutler(folder.path(), &["bundle", "test", "things"]);
    assert_eq!(
        settled(&tested.stdout),
        include_str!("cli_messages/bundle-test-failed.txt"),
        "{}",
        tested.stderr
    );
    let expected = "sutler: 3 of 6 steps failed\n";
    assert_eq!((tested.stderr.as_str(), tested.code), (expected, Some(1)));
}

#[test]
fn parameters_that_a_broker_would_refuse_are_refused_before_anything_is_run() {
    let folder = folder();
    let (things, noted) = (folder.path().join("things"), folder.path().join("noted"));
    write_bundle(&things, &format!("touch {}", noted.display()));
    let run = |action: &str, parameters: &str| {
        fs::write(folder.path().join("p.json"), parameters).expect("a file");
        let words = ["bundle", "run", action, "things", "--params", "p.json"];
        run_sutler(folder.path(), &words)
    };
    for (parameters, sentence) in [
        (
            r#"{"size": 0}"#,
            "the parameters do not fit the schema of the plan: `size` must be at least 1",
        ),
        (
            r#"{"state_size": 1}"#,
            "the parameters do not fit the schema of the plan: `state_size` is not allowed",
        ),
        (
            "[1]",
            "p.json:1:0: must be a JSON object, such as {\"size\": 1}",
        ),
    ] {
        let refused = run("provision", parameters);
        assert_eq!(refused.stderr, format!("sutler: {sentence}\n"));
        assert_eq!((refused.stdout.as_str(), refused.code), ("", Some(1)));
    }
    assert!(!noted.exists(), "nothing was run");
    assert_eq!(run("provision", r#"{"size": 1}"#).code, Some(0));
    assert!(noted.exists());
    let refused = run("bind", "{}");
    assert!(
        refused.stderr.contains("cannot be bound"),
        "{}",
        refused.stderr
    );
}
