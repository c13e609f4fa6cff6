//! Views compared with recorded JSON in `tests/views/`; `SUTLER_TEST_WRITE=1` records it anew.
//!
//! `instances.rs` and `bindings.rs` make their documents by the rules of the lifecycle, `others.rs` by hand.

mod bindings;
mod instances;
mod others;

use crate::author::Author;
use jiff::Timestamp;
use serde::Serialize;
use std::path::PathBuf;

/// A word that no view may contain: everything secret in these tests has it.
const SECRET: &str = "s3cret";

/// Compares a view with its record.
#[track_caller]
fn check(name: &str, view: &impl Serialize) {
    let text = format!("{:#}\n", serde_json::to_value(view).expect("it serialises"));
    assert!(!text.contains(SECRET), "{text}");
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the tests");
    let path = PathBuf::from(folder).join(format!("tests/views/{name}.json"));
    if std::env::var_os("SUTLER_TEST_WRITE").is_some() {
        std::fs::write(&path, &text).expect("it can be written");
    }
    let recorded = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        text, recorded,
        "read the difference, then record it: SUTLER_TEST_WRITE=1"
    );
}

fn moment(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a moment")
}

fn person(name: &str) -> Author {
    Author {
        username: name.to_owned(),
        uid: format!("user:{name}"),
        groups: vec!["dev".to_owned()],
        extra: Default::default(),
        impersonated_by: None,
    }
}
