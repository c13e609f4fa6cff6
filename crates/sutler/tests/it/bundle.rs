//! `sutler bundle`: from a new bundle to an image of it, and faults as people and machines read them.

use crate::said::{folder, said};
use std::fs;

#[test]
fn help_of_bundles_names_every_verb() {
    let said = said(folder().path(), &["bundle", "--help"]);
    assert_eq!(said.code, Some(0));
    for verb in ["new", "check", "docs", "pack", "emit"] {
        let line = format!("\n  {verb} ");
        assert!(said.stdout.contains(&line), "{verb}: {}", said.stdout);
    }
}

#[test]
fn a_new_bundle_can_be_checked_shown_and_packed() {
    let folder = folder();
    let run = |arguments: &[&str]| said(folder.path(), &[&["bundle"], arguments].concat());
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
fn faults_of_a_bundle_are_told_with_their_places() {
    let folder = folder();
    let manifest = "name: hello\ndescription: Says hello.\nplan:\n  - {name: p}\n";
    fs::write(folder.path().join("bundle.yml"), manifest).expect("a manifest");
    let checked = said(folder.path(), &["bundle", "check"]);
    let expected = "\
bundle.yml:1:1: error: plans must have at least one plan
bundle.yml:3:1: error: plan is not known, did you mean `plans`?
.: 2 errors, 0 warnings
";
    assert_eq!((checked.code, checked.stdout.as_str()), (Some(1), expected));
    let checked = said(folder.path(), &["bundle", "check", "-o", "json", "."]);
    assert_eq!(checked.code, Some(1));
    let told: serde_json::Value = serde_json::from_str(&checked.stdout).expect("JSON");
    assert_eq!(told["errors"], 2);
    assert_eq!(told["findings"][1]["line"], 3);
    assert_eq!(told["findings"][1]["severity"], "error");
}
