//! Trees read into types, and the diagnostics of faulty trees.

use crate::{Diagnostic, parse, read};
use serde::Deserialize;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Sample {
    name: String,
    open: bool,
    shelves: u16,
    sort: Sort,
    owners: Vec<Owner>,
    note: Option<String>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Sort {
    #[default]
    ByName,
    ByAge,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Owner {
    name: String,
    #[serde(default)]
    share: u8,
}

fn read_sample(text: &str) -> (Option<Sample>, Vec<String>) {
    let documents = parse(text).expect("YAML");
    let read = read(&documents[0]);
    (
        read.value,
        read.faults.iter().map(Diagnostic::to_string).collect(),
    )
}

#[track_caller]
fn faults(text: &str, expected: &[&str]) {
    let (_, found) = read_sample(text);
    assert_eq!(found, expected, "{text}");
}

#[test]
fn a_tree_is_read_with_any_spelling_of_its_values() {
    let text = "name: 1.10\nopen: on\nshelves: '7'\nsort: by_age\nowners:\nnote: ~\n";
    let (sample, faults) = read_sample(text);
    let expected = Sample {
        name: "1.10".to_owned(),
        open: true,
        shelves: 7,
        sort: Sort::ByAge,
        owners: Vec::new(),
        note: None,
    };
    assert_eq!((sample, faults), (Some(expected), Vec::new()));
}

#[test]
fn every_fault_is_reported_at_once_with_its_location_and_path() {
    faults(
        "nmae: x\nopen: perhaps\nshelves: 70000\nowners:\n  - {name: a, shaer: 1}\n  - {share: 2}\n  - {name: [b]}\nsort: by_agee\n",
        &[
            "line 1, column 1: nmae is not a key; did you mean `name`?",
            "line 2, column 7: open must be true or false, but is text",
            "line 3, column 10: shelves must be a whole number from 0 to 65535",
            "line 5, column 15: owners[0].shaer is not a key; did you mean `share`?",
            "line 6, column 5: owners[1] needs `name`, which is not there",
            "line 7, column 12: owners[2].name must be text, but is a list",
            "line 8, column 7: sort must be `by_name` or `by_age`; did you mean `by_age`?",
        ],
    );
}

#[test]
fn the_value_without_its_faulty_parts_is_returned() {
    let (sample, faults) = read_sample("name: x\nopen: perhaps\nowners: [{share: 1}, {name: b}]\n");
    assert_eq!(faults.len(), 2);
    let sample = sample.expect("something is left");
    assert_eq!((sample.name.as_str(), sample.owners.len()), ("x", 1));
}

#[test]
fn an_unknown_key_without_a_near_match_lists_the_known_keys() {
    faults(
        "owners: [{name: a, colour: red}]\n",
        &["line 1, column 20: owners[0].colour is not a key; the keys here are `name` and `share`"],
    );
}

#[test]
fn a_tree_of_the_wrong_kind_is_one_fault() {
    faults(
        "- a\n- b\n",
        &["line 1, column 1: the file must be a mapping, but is a list"],
    );
    faults(
        "owners: {name: a}\n",
        &["line 1, column 9: owners must be a list, but is a mapping"],
    );
}

#[test]
fn values_are_never_quoted() {
    let texts = ["open: hush", "shelves: hush", "sort: hush", "owners: hush"];
    for text in texts {
        let (_, faults) = read_sample(text);
        assert_eq!(faults.len(), 1, "{text}");
        assert!(!faults[0].contains("hush"), "{faults:?}");
    }
    let documents = parse("hush: [hush, {hush: hush}]").expect("YAML");
    assert!(!format!("{documents:?}").contains("hush"));
}

#[test]
fn faults_are_reported_up_to_a_limit() {
    let many: String = (0..500).map(|nth| format!("key{nth}: 1\n")).collect();
    assert_eq!(read_sample(&many).1.len(), super::FAULTS_MAX);
}
