//! Paths into credentials.

use crate::lifecycle::binding::{
    CredentialPath, CredentialPathError, PATH_BYTES_MAX, PATH_SEGMENTS_MAX,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn path(text: &str) -> Result<CredentialPath, CredentialPathError> {
    text.to_owned().try_into()
}

fn found(text: &str) -> Option<Value> {
    let document = json!({
        "uri": "u",
        "hosts": [{"name": "a"}, {"name": "b"}],
        "host name": {"a/b": 1, "m~n": 2, "": 3, "0": 4},
    });
    path(text).expect("a path").find(&document).cloned()
}

#[test]
fn a_path_finds_members_and_items() {
    for (text, value) in [
        ("$.uri", json!("u")),
        ("/uri", json!("u")),
        ("$.hosts[1].name", json!("b")),
        ("/hosts/1/name", json!("b")),
        ("$['hosts'][0][\"name\"]", json!("a")),
        ("$['host name']['a/b']", json!(1)),
        ("/host name/a~1b", json!(1)),
        ("/host name/m~0n", json!(2)),
        ("/host name/", json!(3)),
        ("/host name/0", json!(4)),
        ("$['host name'].0", json!(4)),
    ] {
        assert_eq!(found(text), Some(value), "{text}");
    }
}

#[test]
fn a_path_to_nothing_finds_nothing() {
    for text in [
        "$.missing",
        "$.uri.more",
        "$.hosts[2]",
        "/hosts/01",
        "/hosts/-",
        "/hosts/+1",
        "/hosts/99999999999999999999999",
    ] {
        assert_eq!(found(text), None, "{text}");
    }
    assert!(
        found("$").is_some_and(|it| it.is_object()),
        "the whole document"
    );
}

#[test]
fn what_could_select_more_than_one_value_is_no_path() {
    for text in [
        "$..name",
        "$.*",
        "$.hosts[*]",
        "$.hosts[0:1]",
        "$.hosts[?(@.name)]",
        "$[",
        "$.",
        "$[]",
        "$['a",
        "$['a'",
        "$['']",
        "$['a\\'b']",
        "$[01]",
        "$[-1]",
        "$a",
        "$.a]",
        "$['a'b]",
    ] {
        assert_eq!(path(text), Err(CredentialPathError::NotSimple), "{text}");
    }
    for text in ["", "uri", ".uri", "{.uri}"] {
        assert_eq!(
            path(text),
            Err(CredentialPathError::WrongBeginning),
            "{text}"
        );
    }
    for text in ["/a~", "/a~2"] {
        assert_eq!(path(text), Err(CredentialPathError::BrokenEscape), "{text}");
    }
}

#[test]
fn a_path_has_bounds() {
    let segments = |count: usize| path(&"/a".repeat(count));
    assert!(segments(PATH_SEGMENTS_MAX).is_ok());
    let error = CredentialPathError::TooManySegments;
    assert_eq!(segments(PATH_SEGMENTS_MAX + 1), Err(error));
    let long = format!("/{}", "a".repeat(PATH_BYTES_MAX));
    assert_eq!(path(&long), Err(CredentialPathError::TooLong));
    assert!(path(&long[..PATH_BYTES_MAX]).is_ok());
}

proptest! {
    /// Law: a JSON pointer finds what `serde_json` finds, and both notations of a name are one path.
    #[test]
    fn pointers_are_those_of_the_standard(
        pointer in "(/([ab~/01]|~0|~1){0,3}){1,4}",
        name in "[a-z 0-9/~.]{1,5}",
    ) {
        let document = json!({"a": {"b": [1, {"~": 2, "/": 3, "": 4}], "0": [5]}, "": {"": 6}, "b": [[7]]});
        if let Ok(path) = path(&pointer) {
            prop_assert_eq!(path.find(&document), document.pointer(&pointer));
        }
        let document = json!({name.clone(): 1});
        let escaped = name.replace('~', "~0").replace('/', "~1");
        for text in [format!("/{escaped}"), format!("$['{name}']")] {
            prop_assert_eq!(path(&text).expect("a path").find(&document), Some(&json!(1)));
        }
    }

    /// Law: no text makes the parser fail otherwise than with an error, and what it takes is written as it was read.
    #[test]
    fn every_text_is_a_path_or_an_error(text in "[$/.\\['\"\\]~a0é*]{0,12}") {
        if let Ok(path) = path(&text) {
            prop_assert_eq!(path.as_str(), &text);
            let _found = path.find(&json!({"a": [0]}));
        }
    }
}
